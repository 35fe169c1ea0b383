// One client's share of each limit: exact, and all of them together never more than the whole.
#include "sluice/limiters/concurrency_limiter.hpp"
#include "sluice/limiters/fixed_window.hpp"
#include "sluice/limiters/sliding_window.hpp"
#include "sluice/limiters/sliding_window_counter.hpp"
#include "sluice/limiters/slot_lock.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "tests/fallback/rig.hpp"

namespace sluice::test {
namespace {

/// How many single units a limiter admits now.
template <class Limiter>
int drain(const Limiter& limiter) {
  int admitted = 0;
  while (limiter.try_acquire("a")) ++admitted;
  return admitted;
}

}  // namespace

TEST_CASE("a share of a bucket has the burst and the rate divided, to the tick", "[fallback]") {
  for (const bool plain : {true, false}) {
    Rig rig(4);
    rig.trip();
    const TokenBucket bucket(rig.store, "b", Quota::per_second(10).burst(11),
                             plain ? BucketOptions{} : BucketOptions{.longest = 2min});
    for (int i = 0; i < 2; ++i) {
      if (plain) CHECK(bucket.try_acquire("a"));
      if (!plain) CHECK(bucket.reserve("a", 1, 0s));
    }
    CHECK_FALSE(bucket.try_acquire("a"));
    rig.clock.advance(400ms - 1us);
    CHECK_FALSE(bucket.try_acquire("a"));
    rig.clock.advance(1us);
    CHECK(bucket.try_acquire("a"));
    CHECK(bucket.peek("a", 2).retry_after == 800ms);
  }
}

TEST_CASE("a share of a bucket is whole when all of it has come back, and not before",
          "[fallback]") {
  Rig rig(4);
  rig.trip();
  const TokenBucket bucket(rig.store, "b", Quota::per_second(7).burst(11));
  REQUIRE(bucket.try_acquire("a", 2));
  rig.clock.advance(1'142'857us);  // 2 * 4 / 7 s are 1,142,857.14 us
  CHECK(bucket.try_acquire("a", 2).retry_after == 1us);
  rig.clock.advance(1us);
  CHECK(bucket.try_acquire("a", 2));
}

TEST_CASE("without the store nothing is reserved or borrowed: the hint is when it is there",
          "[fallback][bound]") {
  Rig rig(4);
  const TokenBucket bucket(rig.store, "b", Quota::per_second(10).burst(11));
  const SlidingWindow windows(rig.store, "w", {{8, 10s}});
  const SlotLock slots(rig.store, "s", 1s);
  rig.trip();
  const auto check = [&](const auto& ask, Span hint) {
    for (int i = 0; i < 3; ++i) {  // asking reserves nothing
      const Decision refused = ask();
      CHECK_FALSE(refused);
      CHECK(refused.retry_after == hint);
    }
    rig.clock.advance(hint - 1us);
    CHECK_FALSE(ask());
    rig.clock.advance(1us);
    const Decision granted = ask();
    CHECK(granted);
    CHECK(granted.retry_after == 0us);
  };
  REQUIRE(bucket.reserve("a", 2, 1s));
  REQUIRE(windows.reserve("a", 2, 1min));
  REQUIRE(slots.reserve("a", 1h));
  check([&] { return Decision(bucket.reserve("a", 2, 30s)); }, 800ms);
  check([&] { return Decision(bucket.borrow("a", 1, 30s)); }, 400ms);
  check([&] { return Decision(slots.reserve("a", 1h)); }, 4s - 1200ms);
  check([&]() -> Decision { return windows.reserve("a", 2, 1min); }, 10s - 4s);
  CHECK(bucket.peek("a", 2).retry_after == 0us);

  rig.heal();
  REQUIRE(bucket.try_acquire("a", 11));
  CHECK(bucket.reserve("a", 2, 30s).wait() == 200ms);
}

TEST_CASE("as much as there is, is as much as there is of the share", "[fallback]") {
  Rig rig(4);
  rig.trip();
  const TokenBucket bucket(rig.store, "b", Quota::per_second(10).burst(11));
  CHECK(bucket.try_acquire_up_to("a", 9).granted == 2);
  CHECK_FALSE(bucket.try_acquire_up_to("b", 9, 3));
  CHECK(bucket.try_acquire_up_to("c", 1).granted == 1);
}

TEST_CASE("shares of windows, leases and slots are divided as well", "[fallback]") {
  Rig rig(3);
  rig.trip();
  CHECK(drain(SlidingWindow(rig.store, "w", {{10, 1s}, {16, 1min}})) == 3);
  CHECK(drain(SlidingWindowCounter(rig.store, "c", {11, 1min})) == 3);
  CHECK(drain(FixedWindow(rig.store, "f", 8, Calendar::every(1h))) == 2);

  const SlidingWindow both(rig.store, "both", {{10, 1s}, {16, 1min}});
  CHECK(drain(both) == 3);
  rig.clock.advance(1s);
  CHECK(drain(both) == 2);

  const ConcurrencyLimiter jobs(rig.store, "jobs", 7);
  const Lease one = jobs.try_acquire("a");
  const Lease two = jobs.try_acquire("a");
  CHECK((one && two));
  CHECK_FALSE(jobs.try_acquire("a").decision().allowed);

  const SlotLock slots(rig.store, "s", 1s);
  CHECK(slots.try_acquire("a"));
  rig.clock.advance(3s - 1us);
  CHECK_FALSE(slots.try_acquire("a"));
  rig.clock.advance(1us);
  CHECK(slots.try_acquire("a"));
}

TEST_CASE("a request larger than a share is refused until the primary is back", "[fallback]") {
  Rig rig(4);
  rig.trip();
  const TokenBucket bucket(rig.store, "b", Quota::per_second(10).burst(11));
  const Decision refused = bucket.try_acquire("a", 3);
  CHECK_FALSE(refused);
  CHECK(refused.source == Source::policy);
  CHECK(refused.retry_after > Span{0});
  CHECK_FALSE(TokenBucket(rig.store, "few", Quota::per_second(10).burst(3)).try_acquire("a"));
  rig.heal();
  CHECK(bucket.try_acquire("a", 11));
}

TEST_CASE("slots whose share is farther apart than time goes are refused", "[fallback]") {
  constexpr Word clients = 1 << 20;
  Rig rig(clients);
  rig.trip();
  const SlotLock slots(rig.store, "s", Span{(Word{1} << 44) + 1});  // 2^20 times that is above 2^64
  const SlotPermit refused = slots.try_acquire("a");
  CHECK_FALSE(refused);
  CHECK(refused.source == Source::policy);
}

TEST_CASE(
    "a share that is no number of clients, and a deadline of nothing, are refused where they are "
    "built",
    "[fallback]") {
  VirtualClock clock;
  const auto local = make_virtual_store(clock);
  CHECK_THROWS_AS(FailurePolicy::local(*local, 0), std::invalid_argument);
  CHECK_THROWS_AS(FailurePolicy::local(*local, (1 << 20) + 1), std::invalid_argument);
  CircuitBreaker breaker(clock);
  CHECK_THROWS_AS(FallbackStore(*local, breaker, FailurePolicy::open(), 0us),
                  std::invalid_argument);
}

}  // namespace sluice::test
