// The rules whose units can be held, beyond what the model judges: changes of quotas, refunds.
// Threading: single-threaded.
#include "sluice/limiters/fixed_window.hpp"
#include "sluice/limiters/learned_rate.hpp"
#include "sluice/limiters/shared_token_bucket.hpp"
#include "tests/prefetch/rig.hpp"

namespace sluice::test {

TEST_CASE("a rate that is learned is not taken ahead", "[prefetch]") {
  PrefetchRig rig({.hold = 700ms, .most = 20});
  const LearnedRate rate(rig.store, "api", {.initial = Quota::per_second(1'000)});
  (void)rig.asked();
  CHECK(rig.spend(rate, 50, 1ms) == 50);
  CHECK(rig.asked() == 50);
  const Reservation grant = rate.reserve("a", 1);
  CHECK(grant.source == Source::virtual_store);
  CHECK(rate.limited("a", grant));
  CHECK(LearnedRate(*rig.whole, "api", {.initial = Quota::per_second(1'000)}).learned("a").rate <
        1'000'000'000);
}

TEST_CASE("a prefetched grant tells the limit of a shared bucket", "[prefetch]") {
  PrefetchRig rig({.hold = 1s});
  const SharedTokenBucket bucket(rig.store, "s");
  std::error_code error;
  static_cast<void>(bucket.try_acquire("a", error));
  CHECK(error == Errc::not_configured);
  bucket.configure("a", Quota::per_second(40).burst(20));
  for (int i = 0; i < 10; ++i) {
    const Decision decision = bucket.try_acquire("a");
    CHECK(decision.allowed);
    CHECK(decision.limit == 20);
  }
  CHECK_THROWS_AS(bucket.try_acquire("a", 21), std::system_error);
}

TEST_CASE("a quota that is set again and again drops nothing that is held", "[prefetch]") {
  PrefetchRig rig({.hold = 500ms, .most = 100});
  const SharedTokenBucket bucket(rig.store, "b");
  const Quota quota = Quota::per_second(1000).burst(1000);
  bucket.configure("a", quota);
  Word granted = 0;
  for (int i = 0; i < 20'000; ++i, rig.clock.advance(1ms)) {
    if (i % 1000 == 0) bucket.configure("a", quota);
    granted += bucket.try_acquire("a").allowed;
  }
  CHECK(granted == 20'000);
  CHECK(rig.store.stats().lapsed == 0);
  CHECK(bucket.try_acquire("a").source == Source::prefetched);
  bucket.configure("a", Quota::per_second(500).burst(1000));
  CHECK(rig.store.stats().lapsed > 0);
}

TEST_CASE("a quota that is lowered elsewhere, below a lot, is asked for what is needed",
          "[prefetch]") {
  PrefetchRig rig({.hold = 500ms, .most = 100});
  const SharedTokenBucket bucket(rig.store, "b");
  const SharedTokenBucket elsewhere(*rig.whole, "b");
  elsewhere.configure("a", Quota::per_second(1000).burst(1000));
  CHECK(rig.spend(bucket, 3000, 1ms) == 3000);
  elsewhere.configure("a", Quota::per_second(10).burst(10));
  const int granted = rig.spend(bucket, 10'000, 1ms);  // none fails
  CHECK(granted >= 100);
  CHECK(granted <= 100 + 10 + 100);  // what was held
  std::error_code error;
  const auto ask = [&](Word cost) { static_cast<void>(bucket.try_acquire("a", cost, error)); };
  ask(11);
  CHECK(error == Errc::cost_exceeds_capacity);
  ask(1);
  CHECK_FALSE(error);
}

TEST_CASE("the end of a store returns what it holds", "[prefetch]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  const FixedWindow plain(*inner, "w", 100, Calendar::every(1h));
  {
    PrefetchStore store(*inner, {.hold = 10s, .most = 100});
    const FixedWindow window(store, "w", 100, Calendar::every(1h));
    for (int i = 0; i < 20; ++i) CHECK(window.try_acquire("a").allowed);
    CHECK(plain.peek("a").remaining < 80);
  }
  CHECK(plain.peek("a").remaining == 80);
}

}  // namespace sluice::test
