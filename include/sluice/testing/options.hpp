// The options of the conformance suite. A plain value.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/virtual_clock.hpp"

namespace sluice::testing {

/// The options of one run of the suite.
struct ConformanceOptions {
  /// The seed of the run. 0: SLUICE_SEED from the environment, else a random one. The report
  /// contains it, and the same seed makes the same calls.
  std::uint64_t seed = 0;
  /// Multiplies the lengths of the random histories. Above 0.
  double scale = 1;
  /// The prefix of every tag, so that other keys of a shared server are not touched. Empty: a
  /// random one, which is not drawn from the seed, so that a repeated run has fresh keys.
  std::string key_prefix = {};
  /// The clock of the store, if it is a VirtualClock: enables the claims that move time. Null omits
  /// them. REQUIRES: nothing else moves it.
  VirtualClock* clock = nullptr;
  /// The store holds units ahead of need (LeasedStore). Omits the claims by which every decision is
  /// the kernel's; what is left must be equal: see docs/leased_capacity.md.
  bool leased = false;
  /// The number of threads in the claims about concurrency, 2 or more.
  unsigned threads = 4;
};

}  // namespace sluice::testing
