// A limit as observers are told it. Threading: pure.
#pragma once

#include <optional>
#include <span>

#include "sluice/extend/operation.hpp"
#include "sluice/plan.hpp"

namespace sluice::detail {

/// The step, under the name of its limiter. The log of a SharedSlidingWindow has another name with
/// each configuration; the step before it, which expects the configuration, has that of the
/// limiter: a copy with that name is in `renamed`.
inline const Step& told_step(std::span<const Step> steps, std::size_t index,
                             std::optional<Step>& renamed) noexcept {
  if (index == 0 || steps[index - 1].operation->kind != StateKind::shared_sliding_window) {
    return steps[index];
  }
  renamed = steps[index];
  renamed->key = steps[index - 1].key;
  return *renamed;
}

}  // namespace sluice::detail
