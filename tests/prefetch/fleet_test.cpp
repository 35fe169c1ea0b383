// The bound of prefetched units in simulated fleets with crashes, pauses, partitions and failovers,
// by a judge that counts the calls at the upstream. Threading: single-threaded.
#include "tests/prefetch/fleet.hpp"
#include <chrono>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

TEST_CASE("whatever dies or freezes, no interval has more than the bound", "[prefetch][fleet]") {
  Random random("whatever dies or freezes, no interval has more than the bound");
  CAPTURE(random.repeat());
  PrefetchFleetResult sum;
  for (std::size_t i = 0; i < scaled(200); ++i) {
    const std::uint64_t seed = random.below(1'000'000'000);
    CAPTURE(seed);
    const PrefetchFleetResult result = run_with_faults(seed);
    CHECK(result.breach == "");
    sum.calls += result.calls;
    sum.crashes += result.crashes;
    sum.pauses += result.pauses;
    sum.failovers += result.failovers;
  }
  CHECK(sum.calls > scaled(200) * 10);
  CHECK(sum.crashes + sum.pauses > scaled(200));
  CHECK(sum.failovers > 0);
}

TEST_CASE("a saturated fleet uses its quota, in equal parts, with few operations",
          "[prefetch][fleet]") {
  PrefetchFleetOptions options;
  options.workers = 200;
  options.prefetch = PrefetchStoreOptions{.hold = std::chrono::minutes{1}, .most = 100};
  PrefetchFleet fleet(options);
  fleet.run_for(std::chrono::minutes{2});
  const PrefetchFleetResult before = fleet.result();
  fleet.run_for(std::chrono::minutes{5});
  PrefetchFleetResult after = fleet.result();
  const std::uint64_t calls = after.calls - before.calls;
  const std::uint64_t operations = after.operations - before.operations;
  for (std::size_t i = 0; i < options.workers; ++i) after.calls_of[i] -= before.calls_of[i];
  CHECK(calls >= 50'000 * 99 / 100);
  CHECK(operations * 20 <= calls);
  CHECK(after.jain() >= 0.98);
  CHECK(after.breach == "");
}

TEST_CASE("below the quota, callers that are rare do not wait for units that lapse elsewhere",
          "[prefetch][fleet]") {
  PrefetchFleetOptions options;
  options.workers = 2000;
  options.load = 90;
  options.prefetch = PrefetchStoreOptions{.hold = std::chrono::minutes{1}, .most = 100};
  PrefetchFleet fleet(options);
  fleet.run_for(std::chrono::minutes{6});
  PrefetchFleetResult result = fleet.result();
  // All ask at once in the beginning, so that they wait for each other then.
  result.waits.erase(result.waits.begin(), result.waits.end() - 10'000);
  CHECK(result.wait_at(0.99) <= 5000);
  CHECK(result.breach == "");
}

TEST_CASE("the shares of a saturated fleet become equal, however many there are",
          "[prefetch][fleet]") {
  PrefetchFleetOptions options;
  options.workers = GENERATE(50U, 700U);
  options.prefetch = PrefetchStoreOptions{.hold = std::chrono::minutes{1}, .most = 100};
  PrefetchFleet fleet(options);
  fleet.run_for(std::chrono::minutes{10});
  const PrefetchFleetResult before = fleet.result();
  fleet.run_for(std::chrono::minutes{30});
  PrefetchFleetResult after = fleet.result();
  for (std::size_t i = 0; i < options.workers; ++i) after.calls_of[i] -= before.calls_of[i];
  CHECK(after.jain() >= 0.99);
}

}  // namespace sluice::test
