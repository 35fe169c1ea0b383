// Plans of several steps, callers that wait, and the errors of the store behind.
// Threading: single-threaded.
#include <algorithm>
#include <array>
#include <vector>

#include "sluice/fallback_store.hpp"
#include "sluice/limiters/fixed_window.hpp"
#include "sluice/limiters/shared_token_bucket.hpp"
#include "sluice/limiters/sliding_window.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "tests/prefetch/rig.hpp"

namespace sluice::test {
namespace {

/// A rig whose token bucket "api" holds some units of "a".
struct Held : PrefetchRig {
  Held() : PrefetchRig({.hold = 10s, .most = 100}) {
    CHECK(spend(bucket, 64, 1ms) == 64);
    static_cast<void>(asked());
  }
  TokenBucket bucket{store, "api", Quota::per_second(100).burst(1000)};
  SlidingWindow log{store, "log", {{3, 1min}}};
};

/// Prefetched units in front of a store that may fail, and then admits everything.
struct Fallible {
  VirtualClock clock;
  std::unique_ptr<Store> whole = make_virtual_store(clock);
  FaultyStore primary{*whole};
  SeededRng rng{1};
  CircuitBreaker breaker{clock, {.failures = 1, .rng = &rng}};
  FallbackStore fallback{primary, breaker, FailurePolicy::open()};
  PrefetchStore store{fallback, {.hold = 10s}};
};

}  // namespace

TEST_CASE("a plan decides here what is held, and the rest at the store, all or nothing",
          "[prefetch][plan]") {
  Held rig;
  const std::array steps{rig.bucket.acquire_step("a", 2), rig.log.acquire_step("a")};
  const Word held = rig.bucket.try_acquire("a").remaining;
  std::array<Decision, 2> each{};
  std::error_code error;
  for (Word i = 1; i <= 3; ++i) {
    const Decision decision = decide(rig.store, steps, error, each, {});
    CHECK_FALSE(error);
    CHECK(decision.allowed);
    CHECK(each[0].source == Source::prefetched);
    CHECK(each[0].remaining == held - 2 * i);
    CHECK(each[1].source == Source::virtual_store);
    CHECK(decision.step == 1);
  }
  // Refused by the log: what was spent here is held again.
  const Decision refused = decide(rig.store, steps, error, each, {});
  CHECK_FALSE(refused.allowed);
  CHECK(refused.step == 1);
  CHECK(rig.bucket.try_acquire("a").remaining == held - 6 - 1);
  // Failed: the same.
  rig.inner.play(FaultScript("unknown"));
  static_cast<void>(decide(rig.store, steps, error, each, {}));
  CHECK(error == Errc::unknown);
  CHECK(rig.bucket.try_acquire("a").remaining == held - 6 - 2);
}

TEST_CASE("a plan whose units cannot be prefetched is decided by the store", "[prefetch][plan]") {
  Held rig;
  const RequestId id{1, 2};
  CHECK(rig.bucket.try_acquire("a", 1, id).source == Source::virtual_store);
  CHECK(rig.bucket.try_acquire("a", 1, id).source == Source::virtual_store);
  CHECK(rig.asked() == 2);
  const Step step = rig.bucket.acquire_step("a");
  decide_then(rig.store, Plan(step).within(Span{-1}),
              [](const std::error_code&, const Decision&) {});
  CHECK(rig.asked() == 1);
  CHECK(rig.bucket.peek("a").source == Source::virtual_store);
  CHECK(rig.log.try_acquire("a").source == Source::virtual_store);
  std::error_code error;
  static_cast<void>(rig.bucket.try_acquire("a", -1, error));
  CHECK(error == Errc::invalid_cost);
  static_cast<void>(rig.bucket.try_acquire("a", 1001, error));
  CHECK(error == Errc::cost_exceeds_capacity);
  static_cast<void>(
      decide(rig.store, {rig.bucket.acquire_step("a"), rig.bucket.acquire_step("a")}, error));
  CHECK(error == Errc::duplicate_key);
}

TEST_CASE("one trip serves all callers that wait for it", "[prefetch]") {
  PrefetchRig rig({.hold = 1s});
  const TokenBucket bucket(rig.store, "api", Quota::per_second(100).burst(50));
  rig.inner.play(FaultScript("delay(100ms) delay(100ms)"));
  int granted = 0;
  for (int i = 0; i < 20; ++i) {
    bucket.try_acquire_then("a", 1, [&](std::error_code error, const Decision& decision) {
      if (!error && decision.allowed) ++granted;
    });
  }
  CHECK(rig.asked() == 1);
  CHECK(granted == 0);
  rig.clock.advance(100ms);
  CHECK(granted == 1);  // the first trip was for the first caller
  rig.clock.advance(100ms);
  CHECK(granted == 20);
  CHECK(rig.asked() <= 2);  // one for the others, and one ahead of need
}

TEST_CASE("a cost above the limit fails its own caller alone", "[prefetch]") {
  PrefetchRig rig({.hold = 1s});
  SharedTokenBucket(*rig.whole, "s").configure("a", Quota::per_second(10).burst(10));
  const SharedTokenBucket bucket(rig.store, "s");
  rig.inner.play(FaultScript("delay(100ms) delay(100ms) delay(100ms)"));
  std::vector<std::error_code> told;
  for (const Word cost : {11, 1, 12, 2}) {
    bucket.try_acquire_then("a", cost,
                            [&](std::error_code error, const Decision&) { told.push_back(error); });
  }
  for (int i = 0; i < 5; ++i) rig.clock.advance(100ms);
  REQUIRE(told.size() == 4);
  CHECK(std::ranges::count(told, std::error_code()) == 2);
  const std::error_code exceeds = Errc::cost_exceeds_capacity;
  CHECK(std::ranges::count(told, exceeds) == 2);
}

TEST_CASE("a window that ends during the trip grants what its callers asked for, and no more",
          "[prefetch]") {
  PrefetchRig rig({.hold = 10s});
  const FixedWindow window(rig.store, "w", 50, Calendar::every(1s));
  rig.clock.advance(990ms);
  rig.inner.play(FaultScript("delay(100ms)"));
  int allowed = 0;
  const auto ask = [&] {
    window.try_acquire_then("a", 1, [&](std::error_code error, const Decision& decision) {
      CHECK_FALSE(error);
      allowed += decision.allowed ? 1 : 0;
    });
  };
  ask();
  rig.clock.advance(100ms);
  CHECK(allowed == 1);
  const FixedWindow plain(*rig.whole, "w", 50, Calendar::every(1s));
  CHECK(plain.peek("a").remaining == 50);
  ask();
  CHECK(allowed == 2);
  CHECK(plain.peek("a").remaining < 50);  // of the new window
}

TEST_CASE("while the store is away, what is held is spent, and then calls fail", "[prefetch]") {
  Held rig;
  rig.inner.fail_all(Fault::not_executed(Errc::not_connected));
  const std::uint64_t held = rig.store.stats().taken - 64;
  CHECK(held > 0);
  for (std::uint64_t i = 0; i < held; ++i) CHECK(rig.bucket.try_acquire("a").allowed);
  std::error_code error;
  static_cast<void>(rig.bucket.try_acquire("a", error));
  CHECK(error == Errc::not_connected);
  rig.inner.heal();
  CHECK(rig.bucket.try_acquire("a").allowed);
}

TEST_CASE("nothing is held of what a policy grants", "[prefetch]") {
  Fallible rig;
  const TokenBucket bucket(rig.store, "api", Quota::per_second(100).burst(1000));
  for (int i = 0; i < 20; ++i) CHECK(bucket.try_acquire("b").allowed);
  rig.primary.fail_all(Fault::not_executed(Errc::not_connected));
  for (int i = 0; i < 20; ++i) {
    const Decision decision = bucket.try_acquire("a");
    CHECK(decision.allowed);
    CHECK(decision.source == Source::policy);
    CHECK(decision.limit == 1000);
  }
}

TEST_CASE("a policy's grant is completed by what is held", "[prefetch]") {
  Fallible rig;
  const TokenBucket bucket(rig.store, "api", Quota::per_second(57).burst(31));
  // Units are scarce, so that a trip asks for no more than what a caller of three is short of.
  const auto ask = [&](int key) { return bucket.try_acquire(Key(key), 3); };
  for (int i = 0; i < 2'000; ++i) {
    for (int key = 0; key < 12; ++key) {
      if (i % (key + 2) == 0) static_cast<void>(ask(key));
    }
    rig.clock.advance(1ms);
  }
  rig.primary.fail_all(Fault::not_executed(Errc::not_connected));
  int by_policy = 0;
  for (int key = 0; key < 12; ++key) {
    for (int i = 0; i < 50; ++i) {
      rig.clock.advance(20ms);
      const Decision decision = ask(key);
      if (decision.source == Source::policy) ++by_policy;
    }
  }
  CHECK(by_policy > 300);
}

}  // namespace sluice::test
