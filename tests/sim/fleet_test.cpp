// The fleet: bookkeeping, the promise to the API, the same jobs for every limiter, the same run
// for the same seed. Threading: single-threaded.
#include "sluice/sim/fleet.hpp"

#include <stdexcept>

#include "tests/catch.hpp"
#include "tests/sim/pinned_trace.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace std::chrono_literals;

namespace {

FleetResult run(FleetOptions options, Span length) {
  Fleet fleet(options);
  fleet.run_for(length);
  return fleet.result();
}

void check_bookkeeping(const FleetResult& r) {
  CHECK(r.calls == r.successes + r.rejected + r.in_flight);
  CHECK(r.jobs == r.successes + r.in_flight + r.waiting);
  CHECK(r.wait.count() == r.jobs);
  CHECK(r.ideal_wait.count() == r.jobs);
  CHECK(r.judged <= r.calls);
  CHECK(r.judged_rejected >= r.rejected);
  CHECK(r.errors == 0);
}

}  // namespace

TEST_CASE("every call and every job of a fleet is accounted for, and the API's limit is its own") {
  for (const Limiting limiting : {Limiting::none, Limiting::per_process, Limiting::shared}) {
    const FleetResult r = run({.limiting = limiting, .seed = 5}, 7min);
    check_bookkeeping(r);
    CHECK(r.successes > 0);
    CHECK(r.successes <= r.ideal_successes);
    CHECK(r.busiest_admitted <= 10'000);
  }
}

TEST_CASE("a shared limiter is never answered 429 and comes near the ideal, for any seed") {
  for (std::size_t i = 0; i < test::scaled(5, 1); ++i) {
    const std::uint64_t seed = test::seed() + i;
    CAPTURE(test::repeat_line(
        "a shared limiter is never answered 429 and comes near the ideal, for any seed"));
    const FleetResult r = run({.limiting = Limiting::shared, .seed = seed}, 30min);
    check_bookkeeping(r);
    CHECK(r.judged_rejected == 0);
    CHECK(r.busiest_window <= 10'000);
    CHECK(r.successes * 100 >= r.ideal_successes * 98);
    CHECK(r.store_operations <= 2 * r.calls);
  }
}

TEST_CASE("without a limiter the API is overrun") {
  const FleetResult r = run({.limiting = Limiting::none, .seed = 5}, 10min);
  CHECK(r.rejected > r.successes);
  CHECK(r.busiest_window > 10'000);
  CHECK(r.store_operations == 0);
}

TEST_CASE("equal shares for each process waste what calm ones leave, and wait longer") {
  const FleetResult each = run({.limiting = Limiting::per_process, .seed = 5}, 30min);
  const FleetResult shared = run({.limiting = Limiting::shared, .seed = 5}, 30min);
  CHECK(each.judged_rejected == 0);
  CHECK(each.successes * 10 < shared.successes * 9);
  CHECK(each.wait.quantile(99, 100) > shared.wait.quantile(99, 100));
}

TEST_CASE("the limiter changes neither the jobs nor the ideal") {
  const FleetResult none = run({.limiting = Limiting::none, .seed = 9}, 5min);
  const FleetResult shared = run({.limiting = Limiting::shared, .seed = 9}, 5min);
  CHECK(none.jobs == shared.jobs);
  CHECK(none.ideal_successes == shared.ideal_successes);
  CHECK(none.ideal_wait.quantile(99, 100) == shared.ideal_wait.quantile(99, 100));
  CHECK(none.trace != shared.trace);
}

TEST_CASE("the same options give the same trace, run in one go or in slices") {
  const FleetOptions options{.seed = 77};
  Fleet sliced(options);
  for (int i = 0; i < 240; ++i) sliced.run_for(500ms);
  const FleetResult whole = run(options, 2min);
  CHECK(sliced.result().trace == whole.trace);
  CHECK(sliced.result().events == whole.events);
  CHECK(run({.seed = 78}, 2min).trace != whole.trace);
}

TEST_CASE("two minutes with seed 1 have the trace they have always had") {
  for (const auto& [limiting, expected] : test::pinned_traces) {
    CHECK(test::trace_of(limiting) == expected);
  }
}

TEST_CASE("a quota with a margin for jitter keeps to the limit in the worst case") {
  const Quota quota = safe_quota(10'000, 60s, 20, 500ms);
  CHECK(quota.capacity() == 20);
  // burst + rate * (window + jitter), exactly.
  CHECK(20 + quota.refill() * 60'500'000 / quota.period() == 10'000);
  CHECK(safe_quota(50, 60s, 1, 0s).capacity() == 1);
}

TEST_CASE("a fleet of one worker and a small limit works as well") {
  FleetOptions options;
  options.workers = 1;
  options.limit = 5;
  options.window = 1s;
  options.burst = 2;
  options.largest_batch = 2;
  options.demand = {9, 2, 5s};
  for (const Limiting limiting : {Limiting::none, Limiting::per_process, Limiting::shared}) {
    options.limiting = limiting;
    const FleetResult r = run(options, 2min);
    check_bookkeeping(r);
    CHECK(r.busiest_admitted <= 5);
    if (limiting != Limiting::none) CHECK(r.judged_rejected == 0);
  }
}

TEST_CASE("a fleet's options are checked where it is built") {
  const auto refused = [](auto change) {
    FleetOptions options;
    change(options);
    CHECK_THROWS_AS(Fleet(options), std::invalid_argument);
  };
  refused([](FleetOptions& o) { o.workers = 0; });
  refused([](FleetOptions& o) { o.workers = 2'001; });
  refused([](FleetOptions& o) { o.limit = 4; });
  refused([](FleetOptions& o) { o.window = 0s; });
  refused([](FleetOptions& o) { o.burst = 5'001; });
  refused([](FleetOptions& o) { o.largest_batch = 21; });
  refused([](FleetOptions& o) { o.demand.busy = 0; });
  refused([](FleetOptions& o) { o.demand.phase = 0s; });
  refused([](FleetOptions& o) { o.backoff.cap = 1us; });
}
