// The ranges of sliding windows.
#pragma once

#include <vector>

#include "sluice/limiters/window_limit.hpp"

namespace sluice::detail {

/// Throws std::invalid_argument if a SlidingWindow does not accept these windows.
void require_windows(const std::vector<WindowLimit>& windows);

}  // namespace sluice::detail
