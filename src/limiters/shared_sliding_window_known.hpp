// What a client of a shared sliding window remembers. Threading: immutable.
#pragma once

#include "sluice/limiters/shared_sliding_window.hpp"
#include "sluice/limiters/sliding_window.hpp"

namespace sluice {

/// A setting that was read, and the log that it stands for.
struct SharedSlidingWindow::Known {
  RateSetting setting;
  Time first_end;  // of the windows that are kept; zero: there are none
  std::string log_name;
  SlidingWindow log;
};

}  // namespace sluice
