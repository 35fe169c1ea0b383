// The conformance suite as a Catch2 assertion: one line a store.
// Threading: the thread that runs the test case.
#pragma once

#include <string>

#include "sluice/testing/conformance.hpp"
#include "sluice/virtual_clock.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

/// Every claim is an assertion; the test's seed and scale are the suite's. `share`: of the usual
/// length, for stores that are slow.
inline void check_store(Store& store, VirtualClock* clock = nullptr, double share = 1,
                        bool prefetch = false) {
  testing::ConformanceOptions options;
  options.prefetch = prefetch;
  options.seed = seed();
  options.scale = share * static_cast<double>(scaled(1000)) / 1000;
  options.clock = clock;
  const testing::Report report = testing::check_conformance(store, options);
  for (const testing::CheckedClaim& claim : report.claims) {
    INFO(claim.name << ": " << claim.failure);
    CHECK(claim.ok);
  }
  CHECK(report);
}

}  // namespace sluice::test
