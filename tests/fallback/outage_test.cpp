// What an outage lets through when clients decide alone: the documented bounds, over limiters,
// loads and lengths, with callers who wait; and how soon they notice its end.
// Threading: single-threaded.
#include <algorithm>

#include "sluice/limiters/concurrency_limiter.hpp"
#include "sluice/limiters/fixed_window.hpp"
#include "sluice/limiters/sliding_window.hpp"
#include "sluice/limiters/sliding_window_counter.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "tests/fallback/fleet.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {
namespace {

using testing::RateBound;

auto share_among(Word clients) {
  return [clients](Store& local) { return FailurePolicy::local(local, clients); };
}

/// Between two callers of one client, if all together ask for `percent` of the rate.
Span apart(Word clients, Word rate, Span period, Word percent) {
  return Span{period.count() * clients * 100 / (rate * percent)};
}

}  // namespace

TEST_CASE("whatever the load and the length, an outage adds the shares and the rate of its time",
          "[fallback][bound][C-036]") {
  Random random(
      "whatever the load and the length, an outage adds the shares and the rate of its time");
  CAPTURE(random.repeat());
  for (const Word percent : {50, 100, 130, 300}) {
    for (const Span length : {Span{1s}, Span{30s}, Span{10min}}) {
      if (length > 1min && scaled(10) < 10) continue;  // where tests are made shorter
      for (const Span interval : {Span{1}, Span{2s}}) {
        const Word clients = random.between(1, 8);
        const Word burst = random.between(clients, 60);
        const Word rate = random.between(60, 600);  // a minute
        CAPTURE(percent, length.count(), interval.count(), clients, burst, rate);
        const BucketOptions options{.refill = Refill::per_interval(interval)};
        const auto limiter = [&](Store& store) {
          return TokenBucket(store, "api", Quota::per_minute(rate).burst(burst), options);
        };
        Fleet<TokenBucket> fleet(random.next(), clients, limiter, share_among(clients));
        fleet.come(length + 4min, apart(clients, rate, 1min, percent), 1min);
        fleet.world.run_for(2min);
        fleet.outage(length);
        fleet.world.run();

        const Word shares = clients * (burst / clients);
        const Word lump = interval.count() * rate / 60'000'000 + 1;
        const Word mean_us = fleet.alone_us() / clients;
        CHECK(fleet.alone() <= shares + lump + mean_us * rate / 60'000'000);
        if (length > 1s) CHECK(fleet.alone() > 0);
        CHECK_FALSE(check_rate(fleet.history(true), {shares + lump, rate, 1min}));
        CHECK_FALSE(check_rate(fleet.history(false), {burst + lump, rate, 1min}));
        for (const Span window : {Span{1s}, Span{10s}, Span{1min}}) {
          const Word both = window.count() + fleet.alone_us(window) / clients;
          CHECK(fleet.busiest(window) <= burst + shares + 2 * lump + 1 + both * rate / 60'000'000);
        }
      }
    }
  }
}

TEST_CASE("windows add their shares of each window that an outage touches",
          "[fallback][bound][C-036]") {
  constexpr Word clients = 4;
  constexpr Word limit = 43;
  constexpr Word shares = clients * (limit / clients);
  constexpr Span window = 10s;
  const auto live = [&](auto& fleet, Word percent) {
    fleet.come(4min, apart(clients, limit, window, percent), 1min);
    fleet.world.run_for(90s + 3s);
    fleet.outage(47s);
    fleet.world.run();
    CHECK(fleet.alone() > shares);
  };
  /// No window has more, of calls without the server and with it.
  const auto check = [&](const auto& fleet, Word times) {
    CHECK_FALSE(check_window(fleet.history(true), window, times * shares));
    CHECK_FALSE(check_window(fleet.history(false), window, times * limit));
    // 47 s and the way back hold four windows and a part.
    if (times == 1) CHECK(fleet.alone() <= shares * 5);
  };
  for (const Word percent : {90, 300}) {
    CAPTURE(percent);
    const auto share = share_among(clients);
    Fleet<SlidingWindow> sliding(
        11, clients,
        [&](Store& store) {
          return SlidingWindow(store, "w", {{limit, window}});
        },
        share);
    live(sliding, percent);
    check(sliding, 1);
    Fleet<SharedSlidingWindow> shared(
        14, clients, [&](Store& store) { return SharedSlidingWindow(store, "r"); }, share);
    shared.all.front()->limiter.configure("upstream", RateType::overall, limit, window,
                                          SpentUnits::forgotten);
    live(shared, percent);
    check(shared, 1);
    Fleet<SlidingWindowCounter> counter(
        13, clients,
        [&](Store& store) {
          return SlidingWindowCounter(store, "c", {limit, window});
        },
        share);
    live(counter, percent);
    check(counter, 2);
    Fleet<FixedWindow> fixed(
        12, clients,
        [&](Store& store) { return FixedWindow(store, "f", limit, Calendar::every(window)); },
        share);
    const Time start = Time{} + (fixed.world.now() - Time{}) / window * window;
    std::vector<Time> edges;
    for (int i = 0; i < 60; ++i) edges.push_back(start + i * window);
    live(fixed, percent);
    CHECK_FALSE(check_aligned(fixed.history(true), edges, shares));
    CHECK_FALSE(check_aligned(fixed.history(false), edges, limit));
  }
}

TEST_CASE("slots add one for each client at once, and the rate of their time",
          "[fallback][bound][C-036]") {
  constexpr Word clients = 5;
  constexpr Span interval = 200ms;
  const auto limiter = [&](Store& store) { return SlotLock(store, "s", interval); };
  for (const Word percent : {80, 300}) {
    CAPTURE(percent);
    Fleet<SlotLock> fleet(17, clients, limiter, share_among(clients));
    fleet.come(4min, apart(clients, 1, interval, percent), 1min);
    fleet.world.run_for(100s);
    fleet.outage(30s);
    fleet.world.run();
    CHECK(fleet.alone() >= 30 * 5 * 9 / 10 * std::min(percent, Word{100}) / 100);
    CHECK(fleet.alone() <= clients + fleet.alone_us() / clients / interval.count());
    CHECK_FALSE(check_gaps(fleet.history(false), interval));
    for (std::size_t i = 0; i < clients; ++i) {
      CHECK_FALSE(check_gaps(fleet.history(true, i), clients * interval));
    }
  }
}

TEST_CASE("a limit of less than one for each client lets nobody through alone, and none waits long",
          "[fallback][bound][waiting]") {
  constexpr Word clients = 8;
  const auto limiter = [](Store& store) {
    return TokenBucket(store, "api", Quota::per_second(2).burst(7));
  };
  Fleet<TokenBucket> fleet(19, clients, limiter, share_among(clients));
  fleet.come(2min, apart(clients, 2, 1s, 80), 5min);
  fleet.world.run_for(30s);
  fleet.outage(30s);
  fleet.world.run();
  CHECK(fleet.alone() == 0);
  CHECK(fleet.refused == 0);
  CHECK_FALSE(check_rate(fleet.history(false), {7, 2, 1s}));
}

TEST_CASE("leases held alone are the shares at most, also behind the outage",
          "[fallback][bound][C-036]") {
  constexpr Word clients = 4;
  constexpr Word limit = 14;
  constexpr Word shares = clients * (limit / clients);
  const auto limiter = [](Store& store) {
    return ConcurrencyLimiter(store, "l", limit, {.ttl = 2min});
  };
  for (const Word percent : {60, 300}) {
    for (const Span hold : {Span{3s}, Span{20s}, Span{50s}}) {  // the last outlasts the outage
      CAPTURE(percent, hold.count());
      Fleet<ConcurrencyLimiter> fleet(37, clients, limiter, share_among(clients));
      fleet.hold = hold;
      fleet.come(6min, apart(clients, limit, hold, percent), 2min);
      fleet.world.run_for(2min);
      fleet.outage(30s);
      fleet.world.run();
      // A grant is held from its time for `hold`: what is held at once lies in one such window.
      CHECK_FALSE(check_window(fleet.history(true), hold, shares));
      CHECK_FALSE(check_window(fleet.history(false), hold, limit));
      CHECK(fleet.busiest(hold) <= limit + shares);
      if (percent > 100) CHECK(check_window(fleet.history(true), hold, shares - 1));
    }
  }
}

TEST_CASE("who waits notices within 350 ms that the server is back, whatever hint it rests on",
          "[fallback][waiting][C-036]") {
  constexpr Word clients = 3;
  const auto check = [](auto& fleet, Span patience) {
    fleet.come(20s, Span{300ms}, patience);  // none comes at the end, who would ask
    fleet.outage(30s);
    fleet.world.run_for(350ms);
    for (const auto& client : fleet.all) {
      CHECK(client->breaker.stats().trips == 1);
      CHECK(client->breaker.state() == State::closed);
      CHECK(client->back > fleet.came_back);
      CHECK(client->back <= fleet.came_back + 300ms);
    }
    fleet.hold = 0us;
    fleet.world.run_for(3h);
  };
  for (const bool is_local : {true, false}) {
    CAPTURE(is_local);
    const auto policy = [&](Store& local) {
      return is_local ? FailurePolicy::local(local, clients) : FailurePolicy::closed();
    };
    Fleet<FixedWindow> windows(
        29, clients, [](Store& store) { return FixedWindow(store, "f", 60, Calendar::every(1h)); },
        policy);
    check(windows, 1h);
    std::int64_t process = 0;
    Fleet<FixedWindow> across(
        29, clients,
        [&](Store& store) {
          FixedWindow limiter(store, "f", 60, Calendar::every(1h));
          limiter.set_wait_queue({.across_processes = true, .client = ++process});
          return limiter;
        },
        policy);
    check(across, 1h);
    Fleet<ConcurrencyLimiter> leases(
        29, clients, [](Store& store) { return ConcurrencyLimiter(store, "l", 3, {.ttl = 1h}); },
        policy);
    leases.hold = 1h;
    check(leases, 1h);
    Fleet<SlotLock> slots(
        29, clients, [](Store& store) { return SlotLock(store, "s", 40s); }, policy);
    check(slots, 1h);
    Fleet<TokenBucket> buckets(
        29, clients,
        [](Store& store) { return TokenBucket(store, "b", Quota::per_minute(12).burst(3)); },
        policy);
    check(buckets, 50s);
  }
}

TEST_CASE(
    "who waits alone comes in the order of arrival, at two questions a grant and twenty a "
    "second",
    "[fallback][waiting]") {
  constexpr Word clients = 2;
  const auto limiter = [](Store& store) {
    return TokenBucket(store, "api", Quota::per_second(20).burst(2));
  };
  Fleet<TokenBucket> fleet(31, clients, limiter, share_among(clients));
  fleet.outage(1s);
  fleet.come(30s, apart(clients, 20, 1s, 200), 1h);
  fleet.outage(30s);
  std::vector<Time> last(clients);
  for (const auto& call : fleet.made) {
    CHECK(call.alone);
    CHECK(call.came >= last[call.client]);
    last[call.client] = call.came;
  }
  for (const auto& client : fleet.all) {
    const auto stats = client->store.stats();
    CHECK(stats.degraded_grants >= 290);
    CHECK(stats.degraded_refusals <= stats.degraded_grants + 31 * 20);
  }
  fleet.world.run();
}

}  // namespace sluice::test
