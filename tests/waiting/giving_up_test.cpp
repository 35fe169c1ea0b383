// Callers that give up: nothing of the limit is lost while others wait, whoever leaves, and how.
#include <cstdio>
#include <string>

#include "sluice/limiters/shared_sliding_window.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/waiting/giving_up.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

template <class L>
GivingUp run_keyed(const GivingUpOptions& options, const typename GivingUpModel<L>::Make& make) {
  return GivingUpModel<L>(
             options, make,
             [](const L& limiter, Cost cost) { return request_of(limiter, "a", cost); })
      .run();
}

GivingUp run_bucket(const GivingUpOptions& options) {
  return run_keyed<TokenBucket>(options, [&](Store& store) {
    return std::make_unique<TokenBucket>(store, "b", Quota::per_second(5).burst(options.most));
  });
}
GivingUp run_shared_bucket(const GivingUpOptions& options) {
  return run_keyed<SharedTokenBucket>(options, [&](Store& store) {
    auto bucket = std::make_unique<SharedTokenBucket>(store, "b");
    bucket->configure("a", Quota::per_second(5).burst(options.most));
    return bucket;
  });
}
GivingUp run_windows(const GivingUpOptions& options) {
  return run_keyed<SlidingWindow>(options, [](Store& store) {
    return std::make_unique<SlidingWindow>(store, "w",
                                           std::initializer_list<WindowLimit>{{10, 2s}});
  });
}
GivingUp run_fixed_window(const GivingUpOptions& options) {
  return run_keyed<FixedWindow>(options, [](Store& store) {
    return std::make_unique<FixedWindow>(store, "f", 10, Calendar::every(2s));
  });
}
GivingUp run_counter(const GivingUpOptions& options) {
  return run_keyed<SlidingWindowCounter>(options, [](Store& store) {
    return std::make_unique<SlidingWindowCounter>(store, "c", WindowLimit{10, 2s});
  });
}
GivingUp run_leases(const GivingUpOptions& options) {
  return run_keyed<ConcurrencyLimiter>(options, [](Store& store) {
    return std::make_unique<ConcurrencyLimiter>(store, "j", 1, LeaseOptions{.ttl = 1min});
  });
}
GivingUp run_slots(const GivingUpOptions& options) {
  return GivingUpModel<SlotLock>(
             options, [](Store& store) { return std::make_unique<SlotLock>(store, "s", 200ms); },
             [](const SlotLock& lock, Cost) { return request_of(lock, "a"); })
      .run();
}
GivingUp run_shared_window(const GivingUpOptions& options) {
  return run_keyed<SharedSlidingWindow>(options, [](Store& store) {
    auto limiter = std::make_unique<SharedSlidingWindow>(store, "rate");
    limiter->configure("a", RateType::overall, 10, 2s);
    return limiter;
  });
}

struct Kind {
  std::string name;
  GivingUp (*run)(const GivingUpOptions&);
  bool is_even = true;  ///< a unit every 200 ms, at any time
  bool has_costs = true;
};
/// All of five units a second, in the long run.
const std::vector<Kind> kinds{
    {"TokenBucket", run_bucket},
    {"SharedTokenBucket", run_shared_bucket},
    {"SlidingWindow", run_windows, false},
    {"SharedSlidingWindow", run_shared_window, false},
    {"FixedWindow", run_fixed_window, false},
    {"SlidingWindowCounter", run_counter, false},
    {"SlotLock", run_slots, true, false},
    {"ConcurrencyLimiter", run_leases, true, false},
};

/// How many units can be served by somebody who knows all callers, their units and when they leave:
/// a unit every 200 ms, to the caller who leaves first. A caller of several units may have part of
/// them, so that nobody can serve more.
double planned(const GivingUp& run, const GivingUpOptions& options) {
  using Left = std::pair<Time, Word>;  // when it leaves, its units
  std::multiset<Left> waiting;
  std::size_t next = 0;
  double served = 0;
  const Time start = run.callers.front().came;
  for (Time now = start; now <= start + options.length; now += 200ms) {
    for (; next < run.callers.size() && run.callers[next].came <= now; ++next) {
      const bool stays = options.leaving == Leaving::dropped;
      waiting.emplace(stays ? Time::max() : run.callers[next].leaves, run.callers[next].units);
    }
    while (!waiting.empty() && waiting.begin()->first < now) waiting.erase(waiting.begin());
    if (waiting.empty()) continue;
    ++served;
    const Left first = *waiting.begin();
    waiting.erase(waiting.begin());
    if (first.second > 1) waiting.emplace(first.first, first.second - 1);
  }
  return served;
}

/// Of what can be served, how much was. Windows do not grant a unit every 200 ms, and no order of
/// large and small requests fills them: they are compared to one process without a network that
/// knows the deadline of each caller.
double share_of(const Kind& kind, const GivingUpOptions& options, const GivingUp& run) {
  const auto units = static_cast<double>(run.units);
  if (kind.is_even) return units / planned(run, options);
  GivingUpOptions best = options;
  best.processes = 1;
  best.slowest = 0us;
  if (options.leaving == Leaving::cancels) best.leaving = Leaving::deadline;
  return units / static_cast<double>(kind.run(best).units);
}

const char* name_of(Leaving leaving) {
  constexpr std::array<const char*, 3> names{"cancels", "deadline", "dropped"};
  return names.at(static_cast<std::size_t>(leaving));
}

template <class Visit>
void for_each_case(Span length, std::uint64_t seed, Visit visit) {
  for (const Kind& kind : kinds) {
    for (const std::size_t processes : {1U, 4U, 20U}) {
      for (const double patience : {0.5, 2.0, 20.0}) {
        for (const Leaving leaving : {Leaving::cancels, Leaving::deadline, Leaving::dropped}) {
          for (const Word most : {Word{1}, Word{10}}) {
            if (most > 1 && !kind.has_costs) continue;
            // Twice what the limit grants, as long as a unit takes.
            visit(kind, GivingUpOptions{.processes = processes,
                                        .arrivals = most == 1 ? 10.0 : 2.0,
                                        .patience = most == 1 ? patience : 5 * patience,
                                        .leaving = leaving,
                                        .most = most,
                                        .length = length,
                                        .slowest = processes == 1 ? 0us : 500us,
                                        .seed = seed});
          }
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("callers that give up leave what they waited for to those behind them",
          "[waiting][giving_up]") {
  Random random("callers that give up leave what they waited for to those behind them");
  CAPTURE(random.repeat());
  for_each_case(5min, random.next(), [](const Kind& kind, const GivingUpOptions& options) {
    CAPTURE(kind.name, options.processes, options.patience, name_of(options.leaving), options.most);
    const GivingUp run = kind.run(options);
    const double share = share_of(kind, options, run);
    CAPTURE(run.grants);
    // Where a large request must wait until a window has room, those behind it wait as well.
    const double held_up = kind.is_even || options.most == 1 ? 0 : 0.05;
    CHECK(share >= (options.processes == 1 ? 0.97 : 0.90) - held_up);
    CHECK(static_cast<double>(run.units) <= 5 * 300 + 21);
  });
}

namespace {

enum class Order : std::uint8_t { as_they_came, reverse, drawn, cancel_waits };

/// Forty wait for a limit of one a second; after 3.5 s those end that were not granted.
template <class Make>
void end_forty(Make make, Order order, Span slowest, Random& random) {
  VirtualClock time;
  const auto store = make_virtual_store(time);
  Wire wire(*store, time, 1);
  wire.slowest = slowest;
  const auto limit = make(wire);
  using L = std::remove_const_t<decltype(limit)>;
  std::vector<std::shared_ptr<Probe<L>>> callers;
  for (int i = 0; i < 40; ++i) {
    callers.push_back(wait_for(limit, {"a", 1}, Deadline::never(), [](auto, const auto&) {}));
  }
  time.advance(3'500ms);
  if (order == Order::reverse) std::ranges::reverse(callers);
  if (order == Order::drawn) {
    for (std::size_t i = callers.size(); i > 1; --i)
      std::swap(callers[i - 1], callers[random.below(i)]);
  }
  if (order == Order::cancel_waits) {
    limit.cancel_waits();
  } else {
    for (const auto& caller : callers) caller->cancel();
  }
  time.advance(1ms);
  CHECK(limit.waiting("a") == 0);
  for (const auto& caller : callers) CHECK(caller->times_over() == 1);
  // Four were granted.
  CHECK(make(*store).peek("a").retry_after <= 500ms + 2 * slowest);
}

}  // namespace

TEST_CASE("forty callers that end in any order leave nothing charged", "[waiting][giving_up]") {
  Random random("forty callers that end in any order leave nothing charged");
  CAPTURE(random.repeat());
  for (const Order order :
       {Order::as_they_came, Order::reverse, Order::drawn, Order::cancel_waits}) {
    for (const Span slowest : {Span{0}, Span{500us}}) {
      CAPTURE(static_cast<int>(order), slowest);
      const auto end_all = [&](auto make) { end_forty(make, order, slowest, random); };
      end_all([](Store& at) { return TokenBucket(at, "b", Quota::per_second(1).burst(1)); });
      end_all([](Store& at) { return SlidingWindow(at, "w", {{1, 1s}}); });
      end_all([](Store& at) { return SlotLock(at, "s", 1s); });
    }
  }
}

TEST_CASE("the figures of docs/waiting.md", "[.figures]") {
  std::printf("%-20s %9s %8s %-9s %5s  %6s %10s %8s\n", "limiter", "processes", "patience",
              "leaving", "units", "share", "operations", "tickets");
  for_each_case(10min, 1, [](const Kind& kind, const GivingUpOptions& options) {
    const GivingUp run = kind.run(options);
    const auto grants = static_cast<double>(run.grants);
    std::printf("%-20s %9zu %7gs %-9s %5s  %6.3f %10.2f %8.2f\n", kind.name.c_str(),
                options.processes, options.patience, name_of(options.leaving),
                options.most == 1 ? "1" : "1-10", share_of(kind, options, run),
                static_cast<double>(run.operations - run.entries) / grants,
                static_cast<double>(run.entries) / grants);
  });
}

}  // namespace sluice::test
