// A limit as observers are told it. Threading: pure.
#pragma once

#include <span>

#include "sluice/extend/operation.hpp"
#include "sluice/plan.hpp"

namespace sluice::detail {

/// The step whose key has the name of the limiter of `steps[index]`. The log of a
/// SharedSlidingWindow has another name with each configuration; the step before it, which expects
/// the configuration, has the limiter's.
inline const Step& named_by(std::span<const Step> steps, std::size_t index) noexcept {
  const bool is_log =
      index > 0 && steps[index - 1].operation->kind == StateKind::shared_sliding_window;
  return steps[is_log ? index - 1 : index];
}

/// The step, under that name.
inline Step told_step(std::span<const Step> steps, std::size_t index) noexcept {
  Step step = steps[index];
  step.key = named_by(steps, index).key;
  return step;
}

}  // namespace sluice::detail
