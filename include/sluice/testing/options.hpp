// The options of the conformance suite. A plain value.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/virtual_clock.hpp"

namespace sluice::testing {

/// How a run of the suite is made.
struct ConformanceOptions {
  /// What the run draws from. 0: SLUICE_SEED from the environment, else a random one. The report
  /// names it, and the same seed asks the same questions.
  std::uint64_t seed = 0;
  /// Multiplies the lengths of the random histories. Above 0.
  double scale = 1;
  /// Every tag begins with it, so that a shared server is not disturbed. Empty: a random one,
  /// which does not come from the seed, so that a repeated run meets fresh keys again.
  std::string key_prefix = {};
  /// The clock that the store runs on, if it is one that can be moved: enables the claims that
  /// move time. Null leaves them out. REQUIRES: nothing else moves it meanwhile.
  VirtualClock* clock = nullptr;
  /// Callers at once in the claims about concurrency. 2 or more.
  unsigned threads = 4;
};

}  // namespace sluice::testing
