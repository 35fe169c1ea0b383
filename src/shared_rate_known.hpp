// What a client of a shared rate remembers. Threading: immutable.
#pragma once

#include "sluice/shared_rate.hpp"
#include "sluice/sliding_windows.hpp"

namespace sluice {

/// A setting that was read, and the log that it stands for.
struct SharedRateLimiter::Known {
  RateSetting setting;
  Time first_end;  // of the windows that are kept; zero: there are none
  std::string log_name;
  SlidingWindows log;
};

}  // namespace sluice
