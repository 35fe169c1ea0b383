// acquire() on every store, in virtual time: when it is granted, and when it is refused at once.
#include <array>
#include <thread>

#include "sluice/extend/store_wrapper.hpp"
#include "sluice/sluice.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/stores.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

TEST_CASE("a token bucket is waited for to the tick, on every store", "[waiting]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const VirtualClock::AutoAdvance moving(clock);
    const TokenBucket bucket(store, "b", Quota::per_second(10).burst(5));
    const Time start = clock.now();
    for (int i = 0; i < 5; ++i) CHECK(bucket.acquire("a", 1, 0s));
    CHECK(clock.now() == start);
    for (int i = 1; i <= 20; ++i) {
      const Reservation grant = bucket.acquire("a", 1, 10s);
      REQUIRE(grant);
      CHECK(grant.granted == 1);
      CHECK(grant.ready_at() == clock.now());
      CHECK(clock.now() == start + i * 100ms);
    }
  });
}

TEST_CASE("a wait that cannot succeed by its deadline is refused at once, with the hint",
          "[waiting]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const VirtualClock::AutoAdvance moving(clock);
    const TokenBucket bucket(store, "b", Quota::per_second(10).burst(5));
    const Time start = clock.now();
    CHECK(bucket.acquire("a", 5, start - 24h));  // which needs no waiting
    for (const Deadline& past : {Deadline(start - 24h), Deadline(-5s), Deadline(Time::min())}) {
      CHECK(bucket.acquire("a", 1, past).retry_after == 100ms);
    }
    const Reservation refused = bucket.acquire("a", 5, 500ms - 1us);
    CHECK_FALSE(refused);
    CHECK(refused.retry_after == 500ms);
    CHECK(clock.now() == start);
    CHECK(bucket.acquire("a", 5, 500ms));
    CHECK(clock.now() == start + 500ms);
    CHECK(bucket.waiting("a") == 0);
  });
}

TEST_CASE("a span beyond the range of time is a deadline that never comes", "[waiting]") {
  const VirtualClock clock;
  CHECK(Deadline(std::chrono::hours::max()).on(clock) == Time::max());
  CHECK(Deadline(std::chrono::seconds::max()).on(clock) == Time::max());
  CHECK(Deadline(Span::max()).on(clock) == Time::max());
  CHECK(Deadline(std::chrono::duration<std::uint64_t>::max()).on(clock) == Time::max());
  CHECK(Deadline(std::chrono::duration<std::int8_t, std::ratio<3600>>(100)).on(clock) ==
        clock.now() + 100h);
  CHECK(Deadline(std::chrono::hours::min()).on(clock) == Time{});
  CHECK(Deadline(Span::min()).on(clock) == Time{});
  CHECK(Deadline(3h).on(clock) == clock.now() + 3h);

  for_each_store([](Store& store, VirtualClock& virtual_clock) {
    const VirtualClock::AutoAdvance moving(virtual_clock);
    const TokenBucket bucket(store, "b", Quota::per_second(10).burst(1));
    const Time start = virtual_clock.now();
    CHECK(bucket.acquire("a", 1, std::chrono::hours::max()));
    CHECK(bucket.acquire("a", 1, std::chrono::hours::max()));
    CHECK(virtual_clock.now() == start + 100ms);
  });
}

TEST_CASE("an infinite deadline waits beyond what can be reserved", "[waiting]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const VirtualClock::AutoAdvance moving(clock);
    const TokenBucket bucket(store, "b", Quota::per_second(1).burst(200));
    CHECK(bucket.longest() == 1min);
    REQUIRE(bucket.acquire("a", 200, 0s));
    const Time start = clock.now();
    CHECK(bucket.acquire("a", 150, Deadline::never()));
    CHECK(clock.now() == start + 150s);
  });
}

TEST_CASE("a cost that can never be granted is an error, not a wait", "[waiting]") {
  for_each_store([](Store& store, VirtualClock&) {
    const TokenBucket bucket(store, "b", Quota::per_second(10).burst(5));
    std::error_code error;
    CHECK_FALSE(bucket.acquire("a", 6, Deadline::never(), {}, error));
    CHECK(error == Errc::cost_exceeds_capacity);
    CHECK_FALSE(bucket.acquire("a", -1, Deadline::never(), {}, error));
    CHECK(error == Errc::invalid_cost);
    CHECK_FALSE(bucket.acquire("", 1, Deadline::never(), {}, error));
    CHECK(error == Errc::invalid_key);
    CHECK_FALSE(bucket.acquire("a", 1, 1s, {.priority = 4}, error));
    CHECK(error == Errc::invalid_argument);
    CHECK_THROWS_AS(bucket.acquire("a", 6, 1s), std::system_error);
    CHECK(bucket.acquire("a", 5, 1s, {}, error));
    CHECK_FALSE(error);
  });
}

TEST_CASE("sliding windows, slot locks, fixed windows and gates are waited for to the tick",
          "[waiting]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const VirtualClock::AutoAdvance moving(clock);
    const Time start = clock.now();
    const SlidingWindow windows(store, "w", {{2, 5s}, {3, 60s}});
    for (const Span at : {0s, 0s, 5s, 60s, 60s, 65s}) {
      const Reservation grant = windows.acquire("a", 1, 1h);
      REQUIRE(grant);
      CHECK(grant.granted == 1);
      CHECK(clock.now() == start + at);
    }
    CHECK_FALSE(windows.acquire("a", 1, 1s));
    const Time second = clock.now();
    const SlotLock slots(store, "s", 2s);
    for (int i = 0; i < 5; ++i) {
      const SlotPermit permit = slots.acquire("a", 1min);
      REQUIRE(permit);
      CHECK(permit.valid_at(clock.now()));
      CHECK(clock.now() == second + i * 2s);
    }
    const Time third = clock.now();
    const FixedWindow minutes(store, "f", 3, Calendar::every(1min));
    for (int i = 0; i < 7; ++i) REQUIRE(minutes.acquire("a", 1, 10min));
    CHECK(clock.now() > third + 1min);
    CHECK(clock.now().time_since_epoch() % 1min == 0us);
    const Time fourth = clock.now();
    const Gates gates(store, "g", {"account"}, {.ramp = 1s, .spacing = 100ms});
    const std::array scopes{gates.scope("account", "7")};
    CHECK(gates.acquire(scopes, 0s));
    gates.close(scopes[0], 30s);
    CHECK_FALSE(gates.acquire(scopes, 29s));
    for (int i = 0; i < 4; ++i) {
      CHECK(gates.acquire(scopes, 1min));
      CHECK(clock.now() == fourth + 30s + i * 100ms);
    }
    gates.close(scopes[0], 30s);
    const Time fifth = clock.now();
    std::error_code error;
    CHECK_FALSE(gates.acquire(scopes[0], 29s, {}, error));
    CHECK_FALSE(error);
    CHECK(gates.acquire(scopes[0], 1min));
    CHECK(clock.now() == fifth + 30s);
  });
}

TEST_CASE("a block is waited for to the tick, and then what is left is granted", "[waiting]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const VirtualClock::AutoAdvance moving(clock);
    const auto check = [&](const auto& limiter) {
      {
        const auto grant = limiter.try_acquire("a");  // a lease of it ends here
        REQUIRE(grant);
      }
      limiter.block("a", 5min);
      const Time start = clock.now();
      const auto refused = limiter.acquire("a", 1, 5min - 1us);
      CHECK_FALSE(refused);
      CHECK(clock.now() < start + 5min);
      const auto granted = limiter.acquire("a", 1, 10min);
      CHECK(granted);
      CHECK(clock.now() == start + 5min);
    };
    check(FixedWindow(store, "f", 3, Calendar::every(1h)));
    check(FixedWindow(store, "d", 3, Calendar::daily()));
    check(SlidingWindowCounter(store, "c", {3, 1h}));
    check(ConcurrencyLimiter(store, "j", 3, {.ttl = 1h}));
  });
}

TEST_CASE("a place that is given back goes to who waits, at once", "[waiting][leases]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const ConcurrencyLimiter jobs(store, "jobs", 2, {.ttl = 30s});
    const Time start = clock.now();
    Lease first = jobs.try_acquire("a");
    const Lease second = jobs.try_acquire("a");
    REQUIRE(second);
    Lease third;
    std::thread waiting([&] { third = jobs.acquire("a", 1, 10s); });
    while (jobs.waiting("a") == 0) std::this_thread::yield();
    REQUIRE(first.release());
    waiting.join();
    CHECK(third);
    CHECK(third.fence() > second.fence());
    CHECK(clock.now() == start);
  });
}

TEST_CASE("a place whose holder is silent is waited for until its lease ends",
          "[waiting][leases]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const VirtualClock::AutoAdvance moving(clock);
    const ConcurrencyLimiter jobs(store, "jobs", 1, {.ttl = 30s});
    const Time start = clock.now();
    const Lease silent = jobs.try_acquire("a");
    REQUIRE(silent);
    CHECK_FALSE(jobs.acquire("a", 1, 29s).decision().allowed);
    CHECK(clock.now() == start + 29s);
    CHECK(jobs.acquire("a", 1, 1min).decision().allowed);
    CHECK(clock.now() == start + 30s);
  });
}

TEST_CASE("on a store that must not block, acquire is an error", "[waiting]") {
  struct Remote final : StoreWrapper {
    using StoreWrapper::StoreWrapper;
    [[nodiscard]] bool may_block() const noexcept override { return false; }
  };
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  Remote store(*inner);
  const TokenBucket bucket(store, "b", Quota::per_second(10).burst(5));
  std::error_code error;
  CHECK_FALSE(bucket.acquire("a", 1, 1s, {}, error));
  CHECK(error == Errc::would_deadlock);
}

TEST_CASE("a clock that is stepped by a day changes what is waited for, not how", "[waiting]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const TokenBucket bucket(*store, "b", Quota::per_second(1).burst(1));
  const auto wait_through = [&](Span step) {
    REQUIRE(bucket.acquire("a", 1, 0s));
    const Time start = clock.now();
    std::atomic<bool> over{false};
    Reservation grant;
    std::thread waiting([&] {
      grant = bucket.acquire("a", 1, Deadline::never());
      over = true;
    });
    while (clock.timers() == 0) std::this_thread::yield();
    clock.advance(step);
    if (step < 0s) {
      CHECK_FALSE(over);
      CHECK(clock.timers() == 1);  // until the clock shows the grant's time again
      clock.set(start + 1s);
    }
    waiting.join();
    CHECK(grant);
    CHECK(grant.ready_at() == start + std::max<Span>(step, 1s));
    bucket.reset("a");
  };
  wait_through(24h);
  wait_through(-24h);
}

TEST_CASE(
    "a shared sliding window is waited for to the tick, by all clients in order, on every store",
    "[waiting][shared_sliding_window][C-063]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow one(store, "rate");
    const SharedSlidingWindow other(store, "rate");
    one.configure("api", RateType::overall, 2, 1s, SpentUnits::forgotten);
    const VirtualClock::AutoAdvance moving(clock);
    const Time start = clock.now();
    for (int i = 0; i < 8; ++i) {
      const Reservation granted = (i % 2 == 0 ? one : other).acquire("api", 1, 1h);
      REQUIRE(granted);
      CHECK(granted.granted == 1);
      CHECK(clock.now() == start + i / 2 * 1s);
    }
    CHECK_FALSE(one.acquire("api", 2, 1s - 1us));  // refused at once
    CHECK(clock.now() == start + 3s);
    CHECK(one.acquire("api", 2, 1s));
    CHECK(clock.now() == start + 4s);
    std::error_code error;
    static_cast<void>(one.acquire("api", 3, 1h, {}, error));
    CHECK(error == Errc::cost_exceeds_capacity);
    const SharedSlidingWindow unset(store, "other");
    static_cast<void>(unset.acquire("api", 1, 1h, {}, error));
    CHECK(error == Errc::not_configured);
  });
}

TEST_CASE("a wait that is stopped before it begins asks nothing", "[waiting]") {
  for_each_store([](Store& store, VirtualClock&) {
    testing::FaultyStore wire(store);
    const TokenBucket bucket(wire, "b", Quota::per_second(1).burst(1));
    StopSource stop;
    stop.request_stop();
    std::error_code error;
    CHECK_FALSE(bucket.acquire("a", 1, 1min, {.stop = stop.get_token()}, error));
    CHECK(error == Errc::cancelled);
    CHECK_THROWS_AS(bucket.acquire("a", 1, 1min, {.stop = stop.get_token()}), std::system_error);
    CHECK(wire.counts().calls == 0);
    CHECK(bucket.peek("a").remaining == 1);
  });
}

TEST_CASE("a wait that is stopped charges nothing", "[waiting]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const auto check = [&](const auto& limiter) {
      CAPTURE(limiter.name());
      REQUIRE(limiter.try_acquire("a"));
      const Time start = clock.now();
      std::stop_source stop;
      std::error_code error;
      {
        const std::jthread waiting(
            [&] { return limiter.acquire("a", 1, 1min, {.stop = stop.get_token()}, error); });
        while (clock.timers() == 0) std::this_thread::yield();  // it sleeps
        CHECK(limiter.waiting("a") == 1);
        stop.request_stop();
      }
      CHECK(error == Errc::cancelled);
      CHECK(limiter.peek("a").retry_after == 10s);
      CHECK(clock.now() == start);
    };
    const SharedSlidingWindow window(store, "rate");
    window.configure("a", RateType::overall, 1, 10s);
    check(window);
    const SharedTokenBucket bucket(store, "b");
    bucket.configure("a", Quota::per(1, 10s));
    check(bucket);
  });
}

TEST_CASE("a shared token bucket is waited for to the tick, in the order of all processes",
          "[waiting][shared_token_bucket]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedTokenBucket one(store, "b");
    const SharedTokenBucket other(store, "b");
    one.configure("a", Quota::per_second(10).burst(5));
    const VirtualClock::AutoAdvance moving(clock);
    const Time start = clock.now();
    REQUIRE(one.acquire("a", 5, 0s));
    for (int i = 1; i <= 6; ++i) {
      const Reservation grant = (i % 2 == 0 ? one : other).acquire("a", 1, 10s);
      REQUIRE(grant);
      CHECK(grant.limit == 5);
      CHECK(grant.ready_at() == clock.now());
      CHECK(clock.now() == start + i * 100ms);
    }
    CHECK_FALSE(one.acquire("a", 5, 500ms - 1us));
    const Time now = clock.now();
    CHECK(one.block("a", 1min).allowed);
    CHECK(other.acquire("a", 2, Deadline::never()));
    CHECK(clock.now() == now + 1min + 100ms);
  });
}

}  // namespace sluice::test
