// The cached configuration of a shared sliding window. Threading: immutable.
#pragma once

#include "sluice/limiters/shared_sliding_window.hpp"
#include "sluice/limiters/sliding_window.hpp"

namespace sluice {

/// A configuration that was read, and its log.
struct SharedSlidingWindow::Known {
  RateSetting setting;
  Time first_end;  // of the kept windows; zero: there are none
  std::string log_name;
  SlidingWindow log;
};

}  // namespace sluice
