// A backlog of many processes that know nothing of each other: what it costs, who is served, and
// that nothing is left unused.
#include <array>
#include <string>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/waiting/crowd.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

template <class L, class... Args>
Crowded run(const CrowdOptions& options, const Args&... args) {
  return Crowd<L>(options, [&](Store& store) { return L(store, "x", args...); }).run();
}

Crowded run_bucket(CrowdOptions options) {
  options.rate = 10;
  return run<TokenBucket>(options, Quota::per_second(10).burst(1));
}

/// Of limits that grant a unit as soon as it is there, grants in the last ten minutes as a share of
/// ten a second.
double used(const Crowded& backlog) {
  const Time from = backlog.granted_at.back() - 10min;
  const auto count = std::ranges::count_if(backlog.granted_at, [&](Time at) { return at > from; });
  return static_cast<double>(count) / 6'000.0;
}

/// What grants may cost: of each, a caller's ticket, its turn, of which it is told before there is
/// a unit, and the request that is granted; and each 1.5 s a ticket is renewed.
double most_operations(const CrowdOptions& options, const Crowded& backlog) {
  const double seconds = static_cast<double>(options.length.count()) / 1e6;
  return 3 * backlog.grants() + static_cast<double>(options.processes) * seconds / 1.5 * 1.05;
}

}  // namespace

TEST_CASE("processes with a backlog are one queue, at three operations a grant",
          "[waiting][backlog][statistics]") {
  struct Row {
    std::size_t processes;
    double load;
    Span slowest;
    Span length = 30min;
  };
  std::vector<Row> rows{{2, 1.3, 1ms, 10min}, {7, 1.3, 1ms, 10min}};
  for (const double load : {0.9, 1.0, 1.05, 1.3, 2.0}) {
    for (const Span slowest : {0ms, 1ms}) rows.push_back({20, load, slowest});
  }
  for (const CrowdedLimit& limit : crowded_limits()) {
    // A release costs one more, and what a counter estimates leaves a part unused.
    if (limit.name == ConcurrencyLimiter::type_name) continue;
    if (limit.name == SlidingWindowCounter::type_name) continue;
    for (const Row& row : rows) {
      CAPTURE(limit.name, row.processes, row.load, row.slowest);
      const CrowdOptions options{.processes = row.processes,
                                 .arrivals = 10 * row.load,
                                 .rate = 10,
                                 .length = row.length,
                                 .slowest = row.slowest};
      const Crowded backlog = limit.run(options);
      CAPTURE(backlog.operations_per_grant(), backlog.fairness(), backlog.grants());
      CHECK(static_cast<double>(backlog.operations) <= most_operations(options, backlog));
      CHECK(backlog.is_fifo);
      CHECK(backlog.refusals == 0);
      if (row.processes < 20) continue;
      CHECK(backlog.fairness() >= 0.99);
      // Who is refused at the same hint as another takes a ticket then.
      CHECK(backlog.passed_over <= 500ms);
      if (row.load >= 1.05) CHECK(used(backlog) >= (row.slowest == Span{0} ? 0.999 : 0.985));
    }
  }
}

TEST_CASE("without tickets all processes ask at the hint, each of them once a grant",
          "[waiting][backlog][statistics]") {
  for (const CrowdedLimit& limit : crowded_limits()) {
    if (limit.name != TokenBucket::type_name && limit.name != SharedTokenBucket::type_name)
      continue;
    CAPTURE(limit.name);
    const Crowded backlog = limit.run({.processes = 20,
                                       .arrivals = 13,
                                       .rate = 10,
                                       .length = 30min,
                                       .slowest = 1ms,
                                       .across_processes = false});
    CAPTURE(backlog.operations_per_grant(), backlog.fairness());
    CHECK(backlog.operations_per_grant() <= 22);
    CHECK(backlog.is_fifo);
    CHECK(used(backlog) >= 0.99);  // a round trip of each tenth of a second
  }
}

TEST_CASE("a backlog uses its limit also where no wake-up arrives",
          "[waiting][backlog][statistics]") {
  for (const CrowdedLimit& limit : crowded_limits()) {
    // What comes back is found within a recheck.
    if (limit.name == ConcurrencyLimiter::type_name) continue;
    for (const std::size_t processes : {2U, 6U, 20U}) {
      CAPTURE(limit.name, processes);
      const Crowded backlog = limit.run({.processes = processes,
                                         .arrivals = 13,
                                         .rate = 10,
                                         .length = 15min,
                                         .slowest = 1ms,
                                         .loses_wake_ups = true});
      CAPTURE(backlog.operations_per_grant(), backlog.fairness(), backlog.grants());
      CHECK(used(backlog) >= (limit.name == SlidingWindowCounter::type_name ? 0.945 : 0.985));
      CHECK(backlog.operations_per_grant() <= static_cast<double>(processes) + 3);
      CHECK(backlog.fairness() >= 0.99);
      CHECK(backlog.is_fifo);
    }
  }
}

TEST_CASE("a backlog of one process costs one operation a grant of a bucket",
          "[waiting][backlog]") {
  for (const double load : {1.05, 2.0}) {
    const Crowded backlog = run_bucket({.arrivals = 10 * load, .length = 30min});
    CAPTURE(load, backlog.operations_per_grant());
    CHECK(backlog.operations_per_grant() <= 1.1);
    CHECK(backlog.is_fifo);
    CHECK(used(backlog) >= 0.999);
  }
}

TEST_CASE("callers with deadlines are told in time, and nothing is unused",
          "[waiting][backlog][L3][statistics]") {
  for (const std::size_t processes : {1U, 20U}) {
    for (const double load : {1.3, 2.0}) {
      for (const double patience : {10.0, 60.0}) {
        CAPTURE(processes, load, patience);
        const Crowded backlog = run_bucket({.processes = processes,
                                            .arrivals = 10 * load,
                                            .length = 30min,
                                            .leaving = Leaving::deadline,
                                            .patience = patience});
        CHECK(backlog.refusals > 0);
        CHECK_FALSE(backlog.is_told_late);
        // One process knows all who are ahead.
        if (processes == 1) CHECK(backlog.longest_refusal == Span{0});
        CHECK(used(backlog) >= 0.999);
        CHECK(backlog.fairness() >= 0.99);
      }
    }
  }
}

TEST_CASE("a fixed window is asked no more often than it has units and there are processes",
          "[waiting][backlog][statistics]") {
  for (const bool across : {false, true}) {
    const Crowded backlog = run<FixedWindow>(
        {.processes = 20, .arrivals = 13, .length = 1h, .slowest = 1ms, .across_processes = across},
        600, Calendar::every(1min));
    CAPTURE(across, backlog.operations_per_grant(), backlog.fairness(), backlog.passed_over);
    // Without one queue, each of the 20 also looks every second: 20 * 60 times for 600 units.
    CHECK(backlog.operations_per_grant() <= (across ? 3 : 1.5 + 2));
    CHECK(used(backlog) >= 0.999);
    if (across) CHECK(backlog.passed_over <= 1s);
  }
}

TEST_CASE("a fleet that is far from its store uses what the limit grants",
          "[waiting][backlog][statistics]") {
  const Quota quota = Quota::per_second(1000).burst(500);
  for (const Span slowest : {1ms, 8ms}) {
    CAPTURE(slowest);
    const CrowdOptions options{
        .processes = 20, .arrivals = 1300, .length = 10s, .slowest = slowest};
    for (const Crowded& backlog :
         {run<TokenBucket>(options, quota), run<FixedWindow>(options, 1000, Calendar::every(1s))}) {
      CAPTURE(backlog.operations_per_grant(), backlog.fairness());
      CHECK(backlog.grants() >= 9'700);
      CHECK(backlog.operations_per_grant() <= 3);
      CHECK(backlog.fairness() >= 0.98);
    }
  }
  // The callers of a busy process have come long before those of others, who ask in vain.
  const Crowded busy = run<TokenBucket>(
      {.processes = 20, .arrivals = 1300, .length = 10s, .slowest = 8ms, .busy = 40}, quota);
  CAPTURE(busy.operations_per_grant());
  CHECK(busy.grants() >= 9'700);
  CHECK(busy.operations_per_grant() <= 2.5);
}

}  // namespace sluice::test
