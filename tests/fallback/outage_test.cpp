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

/// The long outages and backlogs are left out where tests are made shorter.
bool is_short() { return scaled(10) < 10; }

/// Of outages.
std::vector<Span> lengths() {
  std::vector<Span> all{1s, 30s};
  if (!is_short()) all.push_back(10min);
  return all;
}

}  // namespace

TEST_CASE("an outage of half a minute lets through the shares and the rate, and no more",
          "[fallback][bound][C-036][statistics]") {
  constexpr Word clients = 20;
  constexpr Word burst = 1'000;
  constexpr Word rate = 10'000;  // a minute
  const auto limiter = [](Store& store) {
    return TokenBucket(store, "api", Quota::per_minute(rate).burst(burst));
  };
  for (const Span patience : {Span{10min}, Span{1min}}) {
    if (patience > 1min && is_short()) continue;  // it gathers a backlog
    CAPTURE(patience.count());
    Fleet<TokenBucket> fleet(7, clients, limiter, share_among(clients));
    fleet.come(10min, apart(clients, rate, 1min, 130), patience);
    fleet.world.run_for(6min);
    fleet.outage(30s);
    fleet.world.run();

    const Word extra = burst + rate * fleet.alone_us() / clients / 60'000'000;
    CHECK(fleet.alone() <= extra);
    CHECK(fleet.busiest(1min) <= burst + rate + extra);
    if (patience > 1min) continue;
    CHECK(extra <= 6'100);
    CHECK(fleet.alone() >= extra * 9 / 10);  // it is asked for
  }
}

TEST_CASE("whatever the load and the length, an outage adds the shares and the rate of its time",
          "[fallback][bound][C-036]") {
  Random random(
      "whatever the load and the length, an outage adds the shares and the rate of its time");
  CAPTURE(random.repeat());
  for (const Word percent : {50, 100, 130, 300}) {
    for (const Span length : lengths()) {
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

TEST_CASE("outages one after the other are one outage for the shares", "[fallback][bound]") {
  constexpr Word clients = 5;
  constexpr Word burst = 50;
  constexpr Word rate = 600;  // a minute
  const auto limiter = [](Store& store) {
    return TokenBucket(store, "api", Quota::per_minute(rate).burst(burst));
  };
  Fleet<TokenBucket> fleet(3, clients, limiter, share_among(clients));
  fleet.come(3min, apart(clients, rate, 1min, 200), 1min);
  fleet.world.run_for(30s);
  const Time begin = fleet.world.now();
  for (int i = 0; i < 20; ++i) {
    fleet.outage(1s);
    fleet.world.run_for(2s);
  }
  const Word seconds = (fleet.world.now() - begin).count() / 1'000'000;
  fleet.world.run();
  CHECK(fleet.alone() <= burst + rate * seconds / 60);
  CHECK(fleet.alone() > 2 * burst);
  CHECK_FALSE(check_rate(fleet.history(true), {burst, rate, 1min}));
  CHECK_FALSE(check_rate(fleet.history(false), {burst, rate, 1min}));
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
  for (const Word percent : {90, 300}) {
    CAPTURE(percent);
    {
      const auto limiter = [&](Store& store) {
        return SlidingWindow(store, "w", {{limit, window}});
      };
      Fleet<SlidingWindow> fleet(11, clients, limiter, share_among(clients));
      live(fleet, percent);
      CHECK_FALSE(check_window(fleet.history(true), window, shares));
      CHECK_FALSE(check_window(fleet.history(false), window, limit));
      CHECK(fleet.alone() <= shares * 5);  // 47 s and the way back hold four windows and a part
    }
    {
      const auto limiter = [&](Store& store) { return SharedSlidingWindow(store, "r"); };
      Fleet<SharedSlidingWindow> fleet(14, clients, limiter, share_among(clients));
      fleet.all.front()->limiter.configure("upstream", RateType::overall, limit, window,
                                           SpentUnits::forgotten);
      live(fleet, percent);
      CHECK_FALSE(check_window(fleet.history(true), window, shares));
      CHECK_FALSE(check_window(fleet.history(false), window, limit));
      CHECK(fleet.alone() <= shares * 5);
    }
    {
      const auto limiter = [&](Store& store) {
        return FixedWindow(store, "f", limit, Calendar::every(window));
      };
      Fleet<FixedWindow> fleet(12, clients, limiter, share_among(clients));
      const Time start = Time{} + (fleet.world.now() - Time{}) / window * window;
      std::vector<Time> edges;
      for (int i = 0; i < 60; ++i) edges.push_back(start + i * window);
      live(fleet, percent);
      CHECK_FALSE(check_aligned(fleet.history(true), edges, shares));
      CHECK_FALSE(check_aligned(fleet.history(false), edges, limit));
    }
    {
      const auto limiter = [&](Store& store) {
        return SlidingWindowCounter(store, "c", {limit, window});
      };
      Fleet<SlidingWindowCounter> fleet(13, clients, limiter, share_among(clients));
      live(fleet, percent);
      CHECK_FALSE(check_window(fleet.history(true), window, 2 * shares));
      CHECK_FALSE(check_window(fleet.history(false), window, 2 * limit));
    }
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

TEST_CASE("closed lets nobody through alone, and open everybody at once",
          "[fallback][bound][C-036]") {
  constexpr Word clients = 4;
  const auto limiter = [](Store& store) {
    return TokenBucket(store, "api", Quota::per_second(10).burst(10));
  };
  for (const bool is_open : {false, true}) {
    CAPTURE(is_open);
    Fleet<TokenBucket> fleet(23, clients, limiter, [&](Store&) {
      return is_open ? FailurePolicy::open() : FailurePolicy::closed();
    });
    fleet.come(3min, apart(clients, 10, 1s, 130), 10min);
    fleet.world.run_for(1min);
    fleet.outage(30s);
    fleet.world.run();
    CHECK((fleet.alone() == 0) == !is_open);
    CHECK(fleet.refused == 0);
    CHECK_FALSE(check_rate(fleet.history(false), {10, 10, 1s}));
    for (const auto& call : fleet.made) {
      if (is_open && call.alone) CHECK(call.at - call.came <= 50s);
    }
  }
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

TEST_CASE("whatever the load and the length, closed lets nobody through alone, and open everybody",
          "[fallback][bound][C-036][statistics]") {
  Random random(
      "whatever the load and the length, closed lets nobody through alone, and open everybody");
  CAPTURE(random.repeat());
  constexpr Span within = 100ms;
  // Who rests behind another process renews its ticket late in its life, which begins at its hint;
  // then come the failures that trip a breaker, and a probe.
  constexpr Span renewing = WaitQueueOptions{}.ticket_ttl * 3 / 4;
  for (const Word percent : {50, 130, 300}) {
    for (const Span length : lengths()) {
      for (const bool hangs : {false, true}) {
        const Fault fault = hangs ? Fault::request_lost().late(within) : dead;
        for (const bool is_open : {false, true}) {
          const Word clients = random.between(1, 8);
          const Word burst = random.between(1, 60);
          const Word rate = random.between(60, 600);  // a minute
          const Span noticing = 1min / rate + renewing + 6 * within;
          CAPTURE(percent, length.count(), hangs, is_open, clients, burst, rate);
          const auto limiter = [&](Store& store) {
            return TokenBucket(store, "api", Quota::per_minute(rate).burst(burst));
          };
          Fleet<TokenBucket> fleet(random.next(), clients, limiter, [&](Store&) {
            return is_open ? FailurePolicy::open() : FailurePolicy::closed();
          });
          fleet.come(length + 4min, apart(clients, rate, 1min, percent), 1min);
          fleet.world.run_for(2min);
          fleet.outage(length, fault);
          fleet.world.run();

          // One more: the times of grants are rounded to ticks.
          CHECK_FALSE(check_rate(fleet.history(false), {burst + 1, rate, 1min}));
          if (!is_open) CHECK(fleet.alone() == 0);
          if (is_open && length > 1s) CHECK(fleet.alone() > 0);
          for (const auto& call : fleet.made) {
            if (!call.alone) continue;
            CHECK(call.at >= fleet.went);
            // A short outage trips no breaker; a call may hang over the end.
            const Time found = std::max(fleet.all[call.client]->back, fleet.came_back + within);
            CHECK(call.at <= found);
            if (call.came >= fleet.went) CHECK(call.at <= call.came + noticing);
          }
          if (percent < 100 && length < 1min) CHECK(fleet.refused == 0);
        }
      }
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
