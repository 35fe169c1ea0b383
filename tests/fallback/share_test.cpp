// One client's share of each limit: exact, and all of them together never more than the whole.
#include "sluice/concurrency_limiter.hpp"
#include "sluice/fixed_window.hpp"
#include "sluice/sliding_counter.hpp"
#include "sluice/sliding_windows.hpp"
#include "sluice/slot_lock.hpp"
#include "sluice/token_bucket.hpp"
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
    CHECK(bucket.reserve("a", 2, 1s).wait() == 800ms);
  }
}

TEST_CASE("as much as there is, is as much as there is of the share", "[fallback]") {
  Rig rig(4);
  rig.trip();
  const TokenBucket bucket(rig.store, "b", Quota::per_second(10).burst(11));
  CHECK(bucket.try_acquire_up_to("a", 9).granted == 2);
  CHECK_FALSE(bucket.try_acquire_up_to("b", 9, 3));
}

TEST_CASE("shares of windows, leases and slots are divided as well", "[fallback]") {
  Rig rig(3);
  rig.trip();
  CHECK(drain(SlidingWindows(rig.store, "w", {{10, 1s}, {16, 1min}})) == 3);
  CHECK(drain(SlidingCounter(rig.store, "c", {11, 1min})) == 3);
  CHECK(drain(FixedWindow(rig.store, "f", 8, Calendar::every(1h))) == 2);

  const SlidingWindows both(rig.store, "both", {{10, 1s}, {16, 1min}});
  CHECK(drain(both) == 3);
  rig.clock.advance(1s);
  CHECK(drain(both) == 2);

  const ConcurrencyLimiter jobs(rig.store, "jobs", 7);
  const Lease one = jobs.try_acquire("a");
  const Lease two = jobs.try_acquire("a");
  CHECK((one && two));
  CHECK_FALSE(jobs.try_acquire("a"));

  const SlotLock slots(rig.store, "s", 1s);
  CHECK(slots.try_acquire("a"));
  CHECK(slots.reserve("a", 1min).wait() == 3s);
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

TEST_CASE("a share that is no number of clients is refused where it is built", "[fallback]") {
  VirtualClock clock;
  const auto local = make_virtual_store(clock);
  CHECK_THROWS_AS(FailurePolicy::local(*local, 0), std::invalid_argument);
  CHECK_THROWS_AS(FailurePolicy::local(*local, (1 << 20) + 1), std::invalid_argument);
}

}  // namespace sluice::test
