// Limits of 0 and unlimited ones: the steps of their limiters, and their answers without a store.
#include "sluice/detail/limit_of.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "sluice/extend/conclude.hpp"
#include "sluice/rules/constant.hpp"

namespace sluice::detail {
namespace {

std::string_view name_of(Word limit) noexcept { return limit == 0 ? "never" : "unlimited"; }

/// An amount of either sign as a cost. One that no rule accepts is none here either.
Word amount_of(Word given, bool has_sign) noexcept {
  if (given < -word_limit || given > word_limit) return -1;
  return has_sign ? std::abs(given) : given;
}

}  // namespace

Step constant_step(const Step& step) noexcept {
  const Operation& row = *step.operation;
  const bool grants = row.grants != Operation::Grants::nothing;
  Step result(grants ? &constant_acquire : &constant_peek,
              step.key.with_unit(name_of(step.args[0])), {step.args[0]});
  result.store = step.store;
  auto& [limit, cost, least, wait, unused4, unused5, unused6, unused7] = result.args;
  for (const Argument& each : row.arguments) {
    const Word given = step.args[each.index];
    const std::string_view name = each.name;
    if (each.role == Argument::Role::cost) cost = given;
    if (name == "least") least = given;
    if (name == "amount") cost = amount_of(given, each.range != nullptr);
    if (std::string_view(each.unit) == "us") wait = given;
  }
  const bool asks = row.arguments.find(Argument::Role::cost) != nullptr;
  if (asks && row.grants != Operation::Grants::up_to_cost) least = cost;
  return result;
}

bool is_constant(const Plan& plan) noexcept {
  if (plan.id() || plan.timeout() < Span{0} || plan.stop().stop_requested()) return false;
  const auto steps = plan.steps();
  return !steps.empty() && std::all_of(steps.begin(), steps.end(), [](const Step& step) {
    return step.operation->kind == StateKind::constant;
  });
}

void answer_constant(const Plan& plan, Time now, Source source, Completion& done) noexcept {
  if (const PlanFault fault = find_fault(plan); fault.error) {
    return done.fail(fault.error, fault.step);
  }
  const auto steps = plan.steps();
  std::array<Verdict, Plan::max_steps> verdicts;
  std::array<Word, Plan::max_steps * ConstantRule::output> output{};
  std::size_t told = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Effects effects;
    verdicts[i] = run(*steps[i].operation, {}, {steps[i].args, {}}, to_word(now), effects);
    for (const Word word : effects.output()) output[told++] = word;
  }
  conclude(steps, {verdicts.data(), steps.size()}, {output.data(), told}, now, source, done);
}

}  // namespace sluice::detail
