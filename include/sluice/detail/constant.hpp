// Limits of 0 and unlimited ones, for limiters and stores; see sluice/rules/constant.hpp.
#pragma once

#include "sluice/decision.hpp"
#include "sluice/plan.hpp"

namespace sluice {

class Completion;

namespace detail {

/// True of a limit whose answer depends on nothing else.
[[nodiscard]] constexpr bool is_constant(Word limit) noexcept {
  return limit == 0 || limit == unlimited;
}

/// The step of the constant rule in the place of this one, whose first argument is such a limit.
/// The unit of its key is "never" or "unlimited", under which no state is ever stored.
[[nodiscard]] Step constant_step(const Step& step) noexcept;
/// The same, or the step as it is if its limit is another one.
[[nodiscard]] inline Step by_limit(const Step& step) noexcept {
  return is_constant(step.args[0]) ? constant_step(step) : step;
}

/// True if every step is of the constant rule, and the plan has no id, which a store remembers, and
/// is not over.
[[nodiscard]] bool is_constant(const Plan& plan) noexcept;
/// Answers such a plan as a store would at `now`.
void answer_constant(const Plan& plan, Time now, Source source, Completion& done) noexcept;

}  // namespace detail
}  // namespace sluice
