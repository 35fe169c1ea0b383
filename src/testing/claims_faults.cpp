// Claims about invalid requests: each fails with its own error, names its step, and changes
// nothing.
#include <array>
#include <span>
#include <utility>

#include "src/testing/claims.hpp"
#include "src/testing/subjects.hpp"

namespace sluice::testing::detail {

void duplicate_keys_are_errors(Context& context) {
  for_each_kind([&](const Generator& generator) {
    const std::string tag = context.fresh_tag();
    const Configuration config = plain_configuration(context, generator, 3);
    Subject one(tag, "one", generator, config);
    Subject two(tag, "two", generator, config);
    const std::string copy_of_tag = tag;  // the same bytes at another address
    Subject again(copy_of_tag, "one", generator, config);
    const auto step = [&](Subject& subject) { return plain_step(context, subject); };
    const std::array<Step, 2> pair{step(one), step(again)};
    require_error(context.store(), pair, Errc::duplicate_key, 1);
    const std::array<Step, 3> apart{step(one), step(two), step(again)};
    require_error(context.store(), apart, Errc::duplicate_key, 2);
    require_untouched(context, one, 3);
    require_untouched(context, two, 3);
  });
}

void invalid_keys_are_errors(Context& context) {
  for_each_kind([&](const Generator& generator) {
    const std::string tag = context.fresh_tag();
    const Configuration config = plain_configuration(context, generator, 2);
    const std::string too_long(Key::max_part_bytes + 1, 'x');
    Subject good(tag, "good", generator, config);
    for (const auto& [bad_tag, bad_name] : std::vector<std::pair<std::string, std::string>>{
             {"", "name"}, {tag, ""}, {"", ""}, {too_long, "name"}, {tag, too_long}}) {
      Subject bad(bad_tag, bad_name, generator, config);
      const std::array<Step, 2> steps{plain_step(context, good), plain_step(context, bad)};
      require_error(context.store(), std::span(steps).last(1), Errc::invalid_key, 0);
      require_error(context.store(), steps, Errc::invalid_key, 1);
    }
    require_untouched(context, good, 2);
  });
}

void invalid_sizes_are_errors(Context& context) {
  require_error(context.store(), {}, Errc::invalid_plan, 0);
  for_each_kind([&](const Generator& generator) {
    const std::string tag = context.fresh_tag();
    Subjects subjects;
    std::vector<Step> steps;
    for (std::size_t i = 0; i < Plan::max_steps * 4; ++i) {
      subjects.emplace_back(tag, std::to_string(i), generator,
                            plain_configuration(context, generator, 1));
      steps.push_back(plain_step(context, subjects.back()));
    }
    require_error(context.store(), steps, Errc::invalid_plan, 0);
    require_error(context.store(), std::span(steps).first(Plan::max_steps + 1), Errc::invalid_plan,
                  0);
    for (Subject& subject : subjects) require_untouched(context, subject, 1);
  });
}

void impossible_requests_are_errors(Context& context) {
  for (const Operation* row : operations()) {
    const Generator* generator = find_generator(row->kind);
    if (generator == nullptr) continue;
    const std::string tag = context.fresh_tag();
    const Configuration config = plain_configuration(context, *generator, 3);
    Subject good(tag, "good", *generator, config);
    Subject bad(tag, "bad", *generator, config);
    const Step call = bad.draw(context.rng(), *row);
    for (const Flaw& flaw : flaws(*generator, *row, call.args)) {
      Step step = call;
      step.args[flaw.index] = flaw.value;
      const auto code = static_cast<Errc>(-row->check(step.args));
      require_error(context.store(), {&step, 1}, code, 0);
      const std::array<Step, 2> steps{plain_step(context, good), step};
      require_error(context.store(), steps, code, 1);
    }
    require_untouched(context, good, 3);
    require_untouched(context, bad, 3);
  }
}

/// A key belongs to the kind of rule that wrote it; operations of other kinds fail on it, alone and
/// in a plan, and change nothing.
void other_kinds_are_errors(Context& context) {
  for_each_spender([&](const Generator& owner, const Spender& spender) {
    for (const Generator& other : generators()) {
      // A constant may be answered before any state is read.
      if (other.kind == owner.kind || other.kind == StateKind::constant) continue;
      const std::string tag = context.fresh_tag();
      Subject owned(tag, "k", owner, spender.frozen(2));
      step_once(context.store(), owned, owned.acquire(1));
      Subject good(tag, "good", owner, spender.frozen(1));
      Subject stranger(tag, "k", other, other.any(context.rng()));
      for (const Operation* row : rows_of(other.kind)) {
        const std::array<Step, 2> steps{good.acquire(1), stranger.draw(context.rng(), *row)};
        require_error(context.store(), std::span(steps).last(1), Errc::wrong_kind, 0);
        require_error(context.store(), steps, Errc::wrong_kind, 1);
      }
      exhaust(context, owned, 1);
      exhaust(context, good, 1);
      // Peeks and refusals on a fresh key do not assign it to a kind.
      Subject fresh(tag, "fresh", other, other.any(context.rng()));
      const std::array<Step, 2> refused{good.acquire(1), plain_step(context, fresh)};
      require(!ask(context.store(), refused).decision.allowed, "spent, and not refused");
      Subject free(tag, "fresh", owner, spender.frozen(1));
      step_once(context.store(), free, free.peek(1));
      Subject taker(tag, "fresh", other, other.any(context.rng()));
      for (int i = 0; i < 4; ++i) {
        step_once(context.store(), taker, taker.draw(context.rng()));
      }
    }
  });
}

}  // namespace sluice::testing::detail
