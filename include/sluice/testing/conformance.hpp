// The conformance suite: checks the contract of Store on any store, including your own. It needs no
// test framework:
//
//     const auto report = sluice::testing::check_conformance(store);
//     if (!report) std::cerr << report.text();
//
// The store may have any clock: the suite replays each history through the kernels at the times in
// the decisions, and requires the same integers. Threading: one thread calls check_conformance();
// some claims start threads, which have ended when it returns.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/detail/arguments.hpp"
#include "sluice/store.hpp"
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
  /// The store holds units ahead of need (PrefetchStore). Omits the claims by which every decision
  /// is the kernel's; what is left must be equal: see docs/prefetch.md.
  bool prefetch = false;
  /// The number of threads in the claims about concurrency, 2 or more.
  unsigned threads = 4;
};

/// One claim about the store, and whether it holds.
struct CheckedClaim {
  std::string_view name;  ///< a sentence: "a refused plan leaves every key as it was"
  bool ok = false;
  std::string failure;  ///< the expected and the actual result, and the seed that repeats it
};

/// The result of a run. Converts to true if every claim holds.
struct Report {
  std::uint64_t seed = 0;
  std::vector<CheckedClaim> claims;

  [[nodiscard]] explicit operator bool() const noexcept;
  /// True if the claim of this name was checked and does not hold.
  [[nodiscard]] bool rejects(sluice::detail::TextArg name) const noexcept;
  /// One line a claim, with the reasons of failures.
  [[nodiscard]] std::string text() const;
};

/// Checks every claim on `store`, by keys with the prefix of the run and plans of one tag each. The
/// report contains all claims; `on_failure` is called for each failure. Takes about a second on a
/// store in memory. Throws only std::bad_alloc, and what std::thread throws if it makes no thread.
Report check_conformance(Store& store, ConformanceOptions options = {},
                         const std::function<void(const CheckedClaim&)>& on_failure = {});

}  // namespace sluice::testing
