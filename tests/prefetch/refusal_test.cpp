// What is refused without a trip, until when, and what ends it. Threading: single-threaded.
#include "sluice/limiters/fixed_window.hpp"
#include "sluice/limiters/shared_token_bucket.hpp"
#include "tests/prefetch/rig.hpp"

namespace sluice::test {

TEST_CASE("a refusal is of its own cost, limit and key", "[prefetch]") {
  PrefetchRig rig({.hold = 1ms, .recheck = 1h});
  const FixedWindow window(rig.store, "w", 10, Calendar::every(1min));
  CHECK(window.try_acquire("a", 7).allowed);
  rig.clock.advance(1ms);
  CHECK_FALSE(window.try_acquire("a", 5).allowed);
  CHECK(window.try_acquire("a", 3).allowed);
  CHECK(window.try_acquire("b", 5).allowed);
  static_cast<void>(rig.asked());
  CHECK_FALSE(window.try_acquire("a", 5).allowed);
  CHECK(rig.asked() == 0);
  CHECK_FALSE(window.try_acquire("a", 6).allowed);  // another cost is another question
  CHECK(rig.asked() > 0);
  rig.clock.advance(1ms);
  CHECK(FixedWindow(rig.store, "w", 20, Calendar::every(1min)).try_acquire("a", 6).allowed);
}

TEST_CASE("after recheck the store is asked again, and when the clock is set back", "[prefetch]") {
  PrefetchRig rig({.hold = 1s, .recheck = 2s});
  const FixedWindow window(rig.store, "w", 5, Calendar::every(1min));
  CHECK(rig.spend(window, 5) == 5);
  CHECK_FALSE(window.try_acquire("a").allowed);
  const FixedWindow plain(*rig.whole, "w", 5, Calendar::every(1min));
  plain.reward("a", 2);  // by a process that prefetches nothing, which tells nobody
  rig.clock.advance(2s - Span{1});
  CHECK_FALSE(window.try_acquire("a").allowed);
  rig.clock.advance(Span{1});
  CHECK(window.try_acquire("a").allowed);
  while (window.try_acquire("a").allowed) {
  }
  plain.reward("a", 2);
  rig.clock.advance(-Span{1});
  CHECK(window.try_acquire("a").allowed);
}

TEST_CASE("a change of the limit ends a refusal here and in other processes", "[prefetch]") {
  PrefetchRig rig({.hold = 1s, .recheck = 1s});
  PrefetchStore other(rig.inner, {.hold = 1s, .recheck = 1s});
  const auto check = [&](const auto& here, const auto& there, auto change) {
    CHECK(rig.spend(here, 5) == 5);
    CHECK_FALSE(here.try_acquire("a").allowed);
    CHECK_FALSE(there.try_acquire("a").allowed);
    change(there);
    CHECK(here.try_acquire("a").allowed);
    CHECK(there.try_acquire("a").allowed);
  };
  const auto window = [](Store& store, const char* name) {
    return FixedWindow(store, name, 5, Calendar::every(1min));
  };
  check(window(rig.store, "reset"), window(other, "reset"), [](auto& w) { w.reset("a"); });
  check(window(rig.store, "reward"), window(other, "reward"), [](auto& w) { w.reward("a", 2); });

  const SharedTokenBucket shared(rig.store, "shared");
  const SharedTokenBucket there(other, "shared");
  shared.configure("a", Quota::per_hour(5));
  check(shared, there,
        [](auto& bucket) { bucket.configure("a", Quota::per_hour(50), Inheritance::additive); });
}

TEST_CASE("where units are scarce, hints are kept to the microsecond", "[prefetch]") {
  PrefetchRig rig({.hold = 2s});
  const TokenBucket bucket(rig.store, "api", Quota::per_second(50).burst(40));
  const Time start = rig.clock.now();
  int granted = 0;
  std::size_t refused = 0;
  while (rig.clock.now() < start + 20s) {
    const Decision decision = bucket.try_acquire("a");
    if (decision) {
      ++granted;
      continue;
    }
    ++refused;
    rig.clock.advance(decision.retry_after - Span{1});
    CHECK_FALSE(bucket.try_acquire("a").allowed);
    rig.clock.advance(Span{1});
    CHECK(bucket.try_acquire("a").allowed);
    ++granted;
  }
  CHECK(refused > 10);
  CHECK(granted <= 40 + 20 * 50 + 1);
  CHECK(granted >= 40 + 20 * 50 - 40);
  CHECK(rig.asked() <= 1040 / 4);
}

}  // namespace sluice::test
