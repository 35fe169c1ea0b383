// A backlog of many processes that know nothing of each other: what it costs, who is served, and
// that nothing is left unused.
#include <array>
#include <functional>
#include <string>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/waiting/backlog.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

template <class L>
Backlog run_keyed(const BacklogOptions& options, const typename Processes<L>::Make& make) {
  return Processes<L>(options, make, [](const L& limiter) { return request_of(limiter, "a", 1); })
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
             [](const SlotLock& lock) { return request_of(lock, "a"); })
      .run();
}
Backlog run_shared_sliding_window(const BacklogOptions& options) {
  return run_keyed<SharedSlidingWindow>(options, [](Store& store) {
    auto limiter = std::make_unique<SharedSlidingWindow>(store, "rate");
    limiter->configure("a", RateType::overall, 10, 1s, SpentUnits::forgotten);
    return limiter;
  });
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

/// What a grant may cost: a caller's ticket, its turn, of which it is told before there is a unit,
/// and the request that is granted; and a ticket is renewed each half of its TTL.
double most_operations(const BacklogOptions& options, const Backlog& backlog) {
  const double seconds = static_cast<double>(options.length.count()) / 1e6;
  return 3 * static_cast<double>(backlog.grants) +
         static_cast<double>(options.processes) * seconds / 1.5 * 1.05;
}

TEST_CASE("twenty processes with a backlog are one queue, at three operations a grant",
          "[waiting][backlog][statistics]") {
  const bool is_brief = scaled(10) < 10;  // as under the sanitizers
  for (const auto& [name, run] : limiters) {
    for (const double load : loads) {
      for (const Span slowest : {Span{0}, Span{1ms}}) {
        if (is_brief && (load != 1.3 || slowest == Span{0})) continue;
        CAPTURE(name, load, slowest);
        const BacklogOptions options{.arrivals = 10 * load, .length = 30min, .slowest = slowest};
        const Backlog backlog = run(options);
        CAPTURE(backlog.operations_per_grant(), backlog.fairness, backlog.grants);
        CHECK(static_cast<double>(backlog.operations) <= most_operations(options, backlog));
        CHECK(backlog.is_fifo);
        CHECK(backlog.refusals == 0);
        CHECK(backlog.fairness >= 0.99);
        // Who is refused at the same hint as another takes a ticket then.
        CHECK(backlog.passed_over <= 500ms);
        if (load >= overload) CHECK(used(backlog) >= (slowest == Span{0} ? 0.999 : 0.985));
      }
    }
  }
}

TEST_CASE("two or seven processes are one queue too, at three operations a grant",
          "[waiting][backlog][statistics]") {
  for (const auto& [name, run] : limiters) {
    for (const std::size_t processes : {2U, 7U}) {
      CAPTURE(name, processes);
      const BacklogOptions options{
          .processes = processes, .arrivals = 13, .length = 10min, .slowest = 1ms};
      const Backlog backlog = run(options);
      CAPTURE(backlog.operations_per_grant());
      CHECK(static_cast<double>(backlog.operations) <= most_operations(options, backlog));
      CHECK(backlog.is_fifo);
      CHECK(backlog.refusals == 0);
    }
  }
}

TEST_CASE("without tickets all processes ask at the hint, each of them once a grant",
          "[waiting][backlog][statistics]") {
  for (const auto& run :
       {std::function<Backlog(const BacklogOptions&)>(
            [](const BacklogOptions& options) { return run_bucket(options); }),
        std::function<Backlog(const BacklogOptions&)>(run_shared_sliding_window)}) {
    const Backlog backlog =
        run({.arrivals = 13, .length = 30min, .slowest = 1ms, .across_processes = false});
    CAPTURE(backlog.operations_per_grant(), backlog.fairness);
    CHECK(backlog.operations_per_grant() <= 22);
    CHECK(backlog.is_fifo);
    CHECK(used(backlog) >= 0.99);  // a round trip of each tenth of a second
  }
}

TEST_CASE("a backlog of one process costs one operation a grant of a bucket",
          "[waiting][backlog]") {
  for (const double load : {1.05, 2.0}) {
    const Backlog backlog = run_bucket({.processes = 1, .arrivals = 10 * load, .length = 30min});
    CAPTURE(load, backlog.operations_per_grant());
    CHECK(backlog.operations_per_grant() <= 1.1);
    CHECK(backlog.is_fifo);
    CHECK(used(backlog) >= 0.999);
  }
}

TEST_CASE("callers with deadlines are told in time, and nothing is unused",
          "[waiting][backlog][L3][statistics]") {
  for (const std::size_t processes : std::vector<std::size_t>{1, 20}) {
    for (const double load : {1.3, 2.0}) {
      for (const Span patience : {Span{10s}, Span{1min}}) {
        CAPTURE(processes, load, patience);
        const Backlog backlog = run_bucket(
            {.processes = processes, .arrivals = 10 * load, .length = 30min, .patience = patience});
        CHECK(backlog.refusals > 0);
        // One process knows all who are ahead.
        CHECK(backlog.longest_late <= (processes == 1 ? Span{0} : patience));
        CHECK(used(backlog) >= 0.999);
        CHECK(backlog.fairness >= 0.99);
      }
    }
  }
}

TEST_CASE("a fixed window is asked no more often than it has units and there are processes",
          "[waiting][backlog][statistics]") {
  for (const bool across : {false, true}) {
    const Backlog backlog = run_keyed<FixedWindow>(
        {.arrivals = 13, .slowest = 1ms, .across_processes = across}, [](Store& store) {
          return std::make_unique<FixedWindow>(store, "f", 600, Calendar::every(1min));
        });
    CAPTURE(across, backlog.operations_per_grant(), backlog.fairness, backlog.passed_over);
    // Without one queue, each of the 20 also looks every second: 20 * 60 times for 600 units.
    CHECK(backlog.operations_per_grant() <= (across ? 3 : 1.5 + 2));
    CHECK(used(backlog) >= 0.999);
    if (across) CHECK(backlog.passed_over <= 1s);
  }
}

TEST_CASE("a fleet that is far from its store uses what the limit grants",
          "[waiting][backlog][statistics]") {
  const auto bucket = [](Store& store) {
    return std::make_unique<TokenBucket>(store, "b", Quota::per_second(1000).burst(500));
  };
  const auto window = [](Store& store) {
    return std::make_unique<FixedWindow>(store, "f", 1000, Calendar::every(1s));
  };
  for (const Span slowest : {Span{1ms}, Span{8ms}}) {
    CAPTURE(slowest);
    const BacklogOptions options{.arrivals = 1300, .length = 10s, .slowest = slowest};
    for (const Backlog& backlog :
         {run_keyed<TokenBucket>(options, bucket), run_keyed<FixedWindow>(options, window)}) {
      CAPTURE(backlog.operations_per_grant(), backlog.fairness);
      CHECK(backlog.grants >= 9'700);
      CHECK(backlog.operations_per_grant() <= 3);
      CHECK(backlog.fairness >= 0.98);
    }
  }
  // The callers of a busy process have come long before those of others, who ask in vain.
  const Backlog busy =
      run_keyed<TokenBucket>({.arrivals = 1300, .length = 10s, .slowest = 8ms, .busy = 40}, bucket);
  CAPTURE(busy.operations_per_grant());
  CHECK(busy.grants >= 9'700);
  CHECK(busy.operations_per_grant() <= 2.5);
}

}  // namespace sluice::test
