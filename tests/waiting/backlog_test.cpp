// A backlog longer than the horizon, before many processes that know nothing of each other: what it
// costs, who is served, and that nothing is left unused.
#include <array>
#include <functional>
#include <string>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/waiting/backlog.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

using detail::KeyedRequest;

template <class L>
Backlog run_keyed(const BacklogOptions& options, const typename Processes<L>::Make& make) {
  return Processes<L>(options, make,
                      [](const L& limiter) { return L::Waiting::request(limiter, "a", 1); })
      .run();
}

Backlog run_bucket(const BacklogOptions& options, Word rate = 10) {
  return run_keyed<TokenBucket>(options, [&](Store& store) {
    return std::make_unique<TokenBucket>(store, "b", Quota::per_second(rate).burst(1));
  });
}
Backlog run_windows(const BacklogOptions& options) {
  return run_keyed<SlidingWindow>(options, [](Store& store) {
    return std::make_unique<SlidingWindow>(
        store, "w", std::initializer_list<WindowLimit>{{5, 500ms}, {600, 60s}});
  });
}
Backlog run_shared_token_bucket(const BacklogOptions& options) {
  return run_keyed<SharedTokenBucket>(options, [](Store& store) {
    auto bucket = std::make_unique<SharedTokenBucket>(store, "b");
    bucket->configure("a", Quota::per_second(10).burst(1));
    return bucket;
  });
}
Backlog run_slots(const BacklogOptions& options) {
  return Processes<SlotLock>(
             options, [](Store& store) { return std::make_unique<SlotLock>(store, "s", 100ms); },
             [](const SlotLock&) { return KeyedRequest("a", 1); })
      .run();
}
Backlog run_shared_sliding_window(const BacklogOptions& options) {
  using Waited = SharedSlidingWindow::Waited;
  std::vector<std::unique_ptr<SharedSlidingWindow>> limiters;
  return Processes<Waited>(
             options,
             [&](Store& store) {
               limiters.push_back(std::make_unique<SharedSlidingWindow>(store, "api", "rate"));
               limiters.back()->configure(RateType::overall, 10, 1s, SpentPermits::forgotten);
               return std::make_unique<Waited>(*limiters.back());
             },
             [](const Waited&) { return Waited::Waiting::Request(1); })
      .run();
}

/// All of ten a second.
const std::vector<std::pair<std::string, std::function<Backlog(const BacklogOptions&)>>> limiters{
    {"token bucket", [](const BacklogOptions& options) { return run_bucket(options); }},
    {"windows", run_windows},
    {"slot lock", run_slots},
    {"shared token bucket", run_shared_token_bucket},
    {"shared sliding window", run_shared_sliding_window},
};

/// Grants in the last ten minutes, as a share of ten a second.
double used(const Backlog& backlog) {
  const Time from = backlog.granted_at.back() - 10min;
  const auto count = std::ranges::count_if(backlog.granted_at, [&](Time at) { return at > from; });
  return static_cast<double>(count) / 6'000.0;
}

constexpr std::array<double, 5> loads{0.9, 1.0, 1.05, 1.3, 2.0};
constexpr double overload = 1.05;

}  // namespace

TEST_CASE("twenty processes with a backlog ask once a grant, at any load, and nothing is unused",
          "[waiting][backlog]") {
  const bool is_brief = scaled(10) < 10;  // as under the sanitizers
  for (const auto& [name, run] : limiters) {
    for (const double load : loads) {
      for (const Span horizon : {Span{1min}, Span{3s}}) {
        for (const Span slowest : {Span{0}, Span{1ms}}) {
          if (slowest > Span{0} && load < overload) continue;
          if (is_brief && (load != 1.3 || slowest == Span{0})) continue;
          CAPTURE(name, load, horizon, slowest);
          const Backlog backlog =
              run({.arrivals = 10 * load, .length = 30min, .horizon = horizon, .slowest = slowest});
          CAPTURE(backlog.operations_per_grant(), backlog.fairness, backlog.grants);
          CHECK(backlog.operations_per_grant() <= 1.1);
          CHECK(backlog.is_fifo);
          CHECK(backlog.refusals == 0);
          CHECK(backlog.fairness >= 0.998);
          if (load >= overload) CHECK(used(backlog) >= 0.999);
        }
      }
    }
  }
}

TEST_CASE("queues of a backlog take turns, whoever came earlier", "[waiting][backlog]") {
  const Backlog equal = run_bucket({.arrivals = 20});
  CHECK(equal.fairness >= 0.99999);
  // As in one queue for each process, served in turn: what chance makes of equal arrivals.
  CHECK(equal.passed_over <= 5min);
  // Who asks for less than its share has all of it, and the busy process has the rest.
  const Backlog unequal = run_bucket({.arrivals = 13, .busy = 19});
  CHECK(unequal.operations_per_grant() <= 1.1);
  CHECK(unequal.is_fifo);
  CHECK(used(unequal) >= 0.999);
  const auto light = std::accumulate(unequal.of_process.begin() + 1, unequal.of_process.end(), 0UL);
  CHECK(static_cast<double>(light) >= 0.99 * 13 * 3600 / 2 * 0.95);
}

TEST_CASE("a short horizon costs what its floor says: each process asks once in three quarters",
          "[waiting][backlog]") {
  // One second holds ten grants. Each of P processes has to ask once in a horizon at least, or what
  // is reserved might be over before somebody asks: P / 10 operations a grant are the floor.
  for (const std::size_t processes : std::vector<std::size_t>{5, 10, 15, 20, 40}) {
    for (const Span slowest : {Span{0}, Span{1ms}}) {
      const Backlog backlog = run_bucket({.processes = processes,
                                          .arrivals = 13,
                                          .length = 30min,
                                          .horizon = 1s,
                                          .slowest = slowest});
      CAPTURE(processes, slowest, backlog.operations_per_grant(), backlog.fairness);
      const double floor = static_cast<double>(processes) / 10;
      CHECK(backlog.operations_per_grant() >= std::max(1.0, floor) * 0.99);
      CHECK(backlog.operations_per_grant() <= std::max(1.0, floor / 0.75) * 1.05);
      CHECK(backlog.fairness >= 0.995);
      CHECK(backlog.is_fifo);
      CHECK(used(backlog) >= 0.999);
    }
  }
}

TEST_CASE("a queue asks before what it has reserved is over, over a slow wire too",
          "[waiting][backlog]") {
  for (const std::size_t processes : std::vector<std::size_t>{1, 2, 5}) {
    CAPTURE(processes);
    const Backlog backlog = run_bucket(
        {.processes = processes, .arrivals = 13, .length = 30min, .horizon = 1s, .slowest = 20ms});
    CHECK(used(backlog) >= 0.999);
    CHECK(backlog.operations_per_grant() <= 1.1);
  }
}

TEST_CASE("without a horizon all processes ask at the hint, each of them once a grant",
          "[waiting][backlog]") {
  const Backlog backlog =
      run_bucket({.arrivals = 13, .length = 30min, .horizon = 0s, .slowest = 1ms});
  CAPTURE(backlog.operations_per_grant(), backlog.fairness);
  CHECK(backlog.operations_per_grant() <= 22);
  CHECK(backlog.is_fifo);
  CHECK(used(backlog) >= 0.99);  // a round trip of each tenth of a second
}

TEST_CASE("a caller who can wait no longer than the horizon is told at once, by one operation",
          "[waiting][backlog][L3]") {
  for (const double load : {1.3, 2.0}) {
    for (const Span patience : {Span{10s}, Span{20s}, Span{50s}, Span{60s}}) {
      CAPTURE(load, patience);
      const Backlog backlog =
          run_bucket({.arrivals = 10 * load, .length = 30min, .patience = patience});
      CHECK(backlog.operations == backlog.arrivals);
      CHECK(backlog.refusals > 0);
      CHECK(backlog.longest_late == Span{0});
      CHECK(used(backlog) >= 0.999);
      CHECK(backlog.fairness >= 0.998);
    }
  }
}

TEST_CASE("callers with deadlines behind the horizon ask once each, and nothing is unused",
          "[waiting][backlog][L3]") {
  for (const double load : {1.3, 2.0}) {
    const Backlog backlog = run_bucket({.arrivals = 10 * load, .slowest = 1ms, .patience = 5min});
    CAPTURE(load, backlog.operations_per_grant(), backlog.fairness);
    CHECK(backlog.operations_per_call() <= 1.01);
    CHECK(backlog.operations_per_grant() <= 2);
    CHECK(backlog.longest_late <= Span{5min});
    CHECK(used(backlog) >= 0.999);
  }
}

TEST_CASE("callers of a backlog who give up leave nothing unused", "[waiting][backlog]") {
  for (const Span slowest : {Span{0}, Span{1ms}}) {
    const Backlog backlog = run_bucket({.arrivals = 20, .slowest = slowest, .cancelled_one_in = 3});
    CAPTURE(slowest, backlog.operations_per_grant(), backlog.fairness);
    CHECK(backlog.operations_per_grant() <= 2);
    CHECK(backlog.is_fifo);
    CHECK(backlog.fairness >= 0.998);
  }
}

TEST_CASE("a fixed window is asked no more often than it has units and there are processes",
          "[waiting][backlog]") {
  const auto run = [](bool across) {
    return run_keyed<FixedWindow>(
        {.arrivals = 13, .slowest = 1ms, .across_processes = across}, [](Store& store) {
          return std::make_unique<FixedWindow>(store, "f", 600, Calendar::every(1min));
        });
  };
  for (const bool across : {false, true}) {
    const Backlog backlog = run(across);
    CAPTURE(across, backlog.operations_per_grant(), backlog.fairness, backlog.passed_over);
    CHECK(backlog.operations_per_grant() <= 2);
    CHECK(used(backlog) >= 0.999);
    if (across) CHECK(backlog.passed_over <= 1s);
  }
}

}  // namespace sluice::test
