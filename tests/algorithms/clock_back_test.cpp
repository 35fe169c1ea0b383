// What a server's clock that lies behind costs: a replica that is promoted with a clock of its own.
// In exact integers, on every store. Threading: single-threaded.
#include <sluice/sluice.hpp>

#include <functional>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

/// A limiter of one unit, or one place, a minute.
struct Case {
  std::string name;
  std::function<Decision(Store&)> ask;
};

std::vector<Case> cases() {
  return {
      {"token bucket",
       [](Store& s) { return TokenBucket(s, "b", Quota::per_minute(1)).try_acquire("k"); }},
      {"sliding window",
       [](Store& s) {
         return SlidingWindow(s, "w", {{1, 1min}}).try_acquire("k");
       }},
      {"sliding window counter",
       [](Store& s) {
         return SlidingWindowCounter(s, "c", {1, 1min}).try_acquire("k");
       }},
      {"fixed window",
       [](Store& s) { return FixedWindow(s, "f", 1, Calendar::every(1min)).try_acquire("k"); }},
      {"shared token bucket",
       [](Store& s) {
         const SharedTokenBucket bucket(s, "sb");
         bucket.try_configure("k", Quota::per_minute(1));
         return bucket.try_acquire("k");
       }},
      {"shared sliding window",
       [](Store& s) {
         const SharedSlidingWindow window(s, "k");
         window.try_configure("sw", RateType::overall, 1, 1min);
         return window.try_acquire("sw");
       }},
      {"slot lock", [](Store& s) { return Decision(SlotLock(s, "s", 1min).reserve("k", 0s)); }},
      {"leases",
       [](Store& s) {
         static std::uint64_t asked = 0;  // each asks under an id of its own
         const ConcurrencyLimiter leases(s, "l", 1, {.ttl = 1min});
         return decide(s, leases.acquire_step("k", LeaseId{1, ++asked}));
       }},
  };
}

}  // namespace

TEST_CASE("a clock that lies behind by up to a minute locks a spent key for as long, to the tick",
          "[failover]") {
  for (const Case& c : cases()) {
    for (const Span behind : {Span{15s}, Span{1us}, Span{60s}}) {
      for_each_store([&](Store& store, VirtualClock& clock) {
        CAPTURE(c.name, behind.count());
        clock.set(VirtualClock::default_start + 24h);
        REQUIRE(c.ask(store).allowed);
        const Span hint = c.ask(store).retry_after;
        CHECK(hint > 0s);
        clock.advance(-behind);
        const Decision refused = c.ask(store);
        CHECK_FALSE(refused.allowed);
        CHECK(refused.retry_after == hint + behind);
        clock.advance(hint + behind - 1us);
        CHECK_FALSE(c.ask(store).allowed);
        clock.advance(1us);
        CHECK(c.ask(store).allowed);
      });
    }
  }
}

TEST_CASE(
    "a spent shared bucket waits for a clock that lies behind by up to two minutes, no longer",
    "[failover]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedTokenBucket bucket(store, "s");
    for (const Span behind : {Span{60s}, Span{90s}, Span{120s}, Span{120s + 1us}}) {
      CAPTURE(behind.count());
      clock.advance(24h);
      bucket.configure("k", Quota::per_second(10), Inheritance::reset);
      REQUIRE(bucket.try_acquire("k", 10));
      clock.advance(-behind);
      const Decision d = bucket.try_acquire("k");
      CHECK(d.allowed == (behind > 120s));
      if (!d.allowed) CHECK(d.retry_after == behind + 100ms);
    }
  });
}

TEST_CASE("what is reserved for a minute is not granted again by a clock that lies behind",
          "[failover]") {
  for (const Span behind : {Span{1us}, Span{15s}, Span{60s}}) {
    for_each_store([&](Store& store, VirtualClock& clock) {
      CAPTURE(behind.count());
      const Quota quota = Quota::per_second(10).burst(10);
      const SharedTokenBucket shared(store, "s");
      shared.configure("k", quota);
      const auto check = [&](const auto& bucket) {
        clock.set(VirtualClock::default_start + 24h);
        REQUIRE(bucket.try_acquire("k", 10));
        for (int i = 0; i < 60; ++i) REQUIRE(bucket.reserve("k", 10, 1min));
        clock.advance(-behind);
        CHECK_FALSE(bucket.try_acquire("k"));
        CHECK_FALSE(bucket.reserve("k", 1, 1min));
        clock.advance(behind + 100ms - 1us);
        CHECK_FALSE(bucket.reserve("k", 1, 1min));
        clock.advance(1us);
        CHECK(bucket.reserve("k", 1, 1min).wait() == 1min);
      };
      check(TokenBucket(store, "b", quota));
      check(TokenBucket(store, "long", quota, {.longest = 1min}));
      check(shared);
    });
  }
}
