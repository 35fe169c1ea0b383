// How much of its quota a simulated fleet with prefetched units uses, how equally, and by how many
// trips; no interval has more than the bound. Threading: single-threaded.
#include "tests/prefetch/fleet.hpp"
#include <chrono>

#include "tests/catch.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

const PrefetchStoreOptions for_a_minute{.hold = 1min, .most = 100};

TEST_CASE("a saturated fleet uses its quota, in equal parts, with few operations",
          "[prefetch][fleet]") {
  PrefetchFleetOptions options;
  options.workers = GENERATE(50U, 200U, 700U);
  options.prefetch = for_a_minute;
  PrefetchFleet fleet(options);
  fleet.run_for(10min);
  const PrefetchFleetResult before = fleet.result();
  fleet.run_for(20min);
  PrefetchFleetResult after = fleet.result();
  const std::uint64_t calls = after.calls - before.calls;
  const std::uint64_t operations = after.operations - before.operations;
  for (std::size_t i = 0; i < options.workers; ++i) after.calls_of[i] -= before.calls_of[i];
  CAPTURE(options.workers);
  CHECK(calls >= 200'000 * 99 / 100);
  if (options.workers <= 200) CHECK(operations * 20 <= calls);
  CHECK(after.jain() >= 0.99);
  CHECK(after.breach == "");
}

TEST_CASE("below the quota, callers that are rare do not wait for units that lapse elsewhere",
          "[prefetch][fleet]") {
  PrefetchFleetOptions options;
  options.workers = 2000;
  options.load = 90;
  options.prefetch = for_a_minute;
  PrefetchFleet fleet(options);
  fleet.run_for(6min);
  PrefetchFleetResult result = fleet.result();
  // All ask at once in the beginning, so that they wait for each other then.
  result.waits.erase(result.waits.begin(), result.waits.end() - 10'000);
  CHECK(result.wait_at(0.99) <= 5000);
  CHECK(result.breach == "");
}

}  // namespace sluice::test
