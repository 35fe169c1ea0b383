// The kernel of the constant rule. Its twin is backends/redis/lua/rules/constant.lua: same names,
// same order.
#include "sluice/rules/constant.hpp"

#include <algorithm>

#include "sluice/detail/limit_of.hpp"

namespace sluice {
namespace {

using Args = ConstantRule::Args;

Word check(const Arguments& words) noexcept {
  const auto args = detail::unpack<Args>(words);
  if (args.cost < 0 || args.least < 0) return -static_cast<Word>(Errc::invalid_cost);
  if (args.cost > word_limit) return -static_cast<Word>(Errc::cost_exceeds_capacity);
  const bool fits = detail::is_constant(args.limit) && args.least <= args.cost && args.wait >= 0 &&
                    args.wait <= word_limit;
  return fits ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

Verdict decide(const Arguments& words, Effects* effects) noexcept {
  if (const Word status = check(words); status < 0) return {status, 0, 0, 0};
  const auto args = detail::unpack<Args>(words);
  const Word granted = std::min(args.cost, args.limit);
  const bool allowed = granted >= args.least;
  if (effects != nullptr) {
    for (const Word word : {granted, Word{0}, Word{0}, word_limit}) {
      effects->add_output(allowed ? word : 0);
    }
  }
  if (!allowed) return {Verdict::refused, 0, Decision::never.count(), 0};
  return {Verdict::allowed, args.limit, 0, 0};
}

Verdict acquire(const StateView& /*state*/, const RuleRequest& request, Word /*now*/,
                Effects& effects) noexcept {
  return decide(request.args, &effects);
}

Verdict peek(const StateView& /*state*/, const RuleRequest& request, Word /*now*/,
             Effects& /*effects*/) noexcept {
  return decide(request.args, nullptr);
}

Word ttl(const Arguments& /*words*/) noexcept { return 0; }

}  // namespace

constinit const Operation constant_acquire{
    .name = "constant.acquire",
    .id = 75,
    .kind = StateKind::constant,
    .writes = true,  // as a request that charges, although nothing is stored
    .argument_count = 4,
    .check = check,
    .ttl = ttl,
    .decide = acquire,
    .output = ConstantRule::output,
    .grants = Operation::Grants::up_to_cost,
    .without_store = Operation::WithoutStore::fresh_state,
    .share = Operation::Share::limit,
    .arguments = {{.index = 1, .name = "cost", .role = Argument::Role::cost},
                  {.index = 3, .name = "wait", .unit = "us", .role = Argument::Role::wait}},
};
constinit const Operation constant_peek{
    .name = "constant.peek",
    .id = 76,
    .kind = StateKind::constant,
    .writes = false,
    .argument_count = 4,
    .check = check,
    .ttl = ttl,
    .decide = peek,
    .without_store = Operation::WithoutStore::fresh_state,
    .share = Operation::Share::limit,
    .arguments = {{.index = 1, .name = "cost", .role = Argument::Role::cost},
                  {.index = 3, .name = "wait", .unit = "us", .role = Argument::Role::wait}},
};

}  // namespace sluice
