// Each rule whose units can be held: its bound, what is counted, refunds. Threading:
// single-threaded.
#include <vector>

#include "sluice/limiters/fixed_window.hpp"
#include "sluice/limiters/learned_rate.hpp"
#include "sluice/limiters/shared_token_bucket.hpp"
#include "sluice/limiters/sliding_window_counter.hpp"
#include "sluice/testing/invariants.hpp"
#include "tests/prefetch/rig.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {
namespace {

/// Three processes that ask at random, each through a store of its own. Returns the grants.
template <class Make>
testing::History three(PrefetchRig& rig, Random& random, Span span, Make make) {
  PrefetchStore second(rig.inner, {.hold = 700ms, .most = 20});
  PrefetchStore third(rig.inner, {.hold = 700ms, .most = 20});
  const std::vector limiters{make(rig.store), make(second), make(third)};
  testing::History history;
  const Time end = rig.clock.now() + span;
  while (rig.clock.now() < end) {
    const auto who = static_cast<std::size_t>(random.between(0, 2));
    const Word cost = random.one_in(4) ? random.between(1, 5) : 1;
    const Decision decision = limiters[who].try_acquire("a", cost);
    if (decision) {
      const Time now = rig.clock.now();
      history.push_back({now, cost, true, now, Span{0}, decision.remaining, who});
    }
    rig.clock.advance(Span{random.between(0, 30'000)});
  }
  return history;
}

Word sum_of(const testing::History& history) {
  Word sum = 0;
  for (const auto& one : history) sum += one.cost;
  return sum;
}

}  // namespace

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

TEST_CASE("units of a fixed window are spent in their window", "[prefetch]") {
  Random random("units of a fixed window are spent in their window");
  CAPTURE(random.repeat());
  PrefetchRig rig({.hold = 700ms, .most = 20});
  const Time start = rig.clock.now();
  const auto history = three(rig, random, 30s, [](Store& store) {
    return FixedWindow(store, "w", 40, Calendar::every(1s));
  });
  std::vector<Time> edges;
  for (int i = -1; i < 40; ++i) edges.push_back(start + i * 1s);
  const auto breach = testing::check_aligned(history, edges, 40);
  INFO((breach ? breach->what : ""));
  CHECK_FALSE(breach);
  CHECK(sum_of(history) > 30 * 30);
}

TEST_CASE("units of one window are not spent in the next", "[prefetch]") {
  const auto check = [](auto make) {
    PrefetchRig rig({.hold = 10s, .most = 100});
    const auto prefetch = make(rig.store);
    rig.clock.advance(500ms);
    CHECK(rig.spend(prefetch, 60, 8ms) == 60);
    REQUIRE(rig.store.stats().taken > 60);  // something is held
    rig.clock.advance(20ms);                // the next window
    const auto plain = make(*rig.whole);
    while (plain.try_acquire("a")) {
    }
    CHECK_FALSE(prefetch.try_acquire("a"));
  };
  check([](Store& store) { return FixedWindow(store, "w", 200, Calendar::every(1s)); });
  check([](Store& store) { return SlidingWindowCounter(store, "w", WindowLimit{200, 1s}); });
}

TEST_CASE("units of a sliding window counter keep its worst case over a span and hold",
          "[prefetch]") {
  Random random("units of a sliding window counter keep its worst case over a span and hold");
  CAPTURE(random.repeat());
  PrefetchRig rig({.hold = 700ms, .most = 20});
  const auto history = three(rig, random, 30s, [](Store& store) {
    return SlidingWindowCounter(store, "w", WindowLimit{40, 1s});
  });
  const Word worst = SlidingWindowCounterRule::worst_case(40, 1'000'000);
  // An interval of a span holds what was granted in it and up to `hold` before: two spans at most.
  const auto breach = testing::check_window(history, 300ms, worst);
  INFO((breach ? breach->what : ""));
  CHECK_FALSE(breach);
  CHECK(sum_of(history) > 30 * 25);
}

TEST_CASE("units of a shared token bucket keep burst and rate over hold", "[prefetch]") {
  Random random("units of a shared token bucket keep burst and rate over hold");
  CAPTURE(random.repeat());
  PrefetchRig rig({.hold = 700ms, .most = 20});
  const SharedTokenBucket admin(*rig.whole, "s");
  admin.configure("a", Quota::per_second(40).burst(20));
  const auto history =
      three(rig, random, 30s, [](Store& store) { return SharedTokenBucket(store, "s"); });
  const auto breach =
      testing::check_rate(history, {.burst = 20 + 40 * 7 / 10 + 1, .units = 40, .period = 1s});
  INFO((breach ? breach->what : ""));
  CHECK_FALSE(breach);
  CHECK(sum_of(history) > 30 * 35);
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

TEST_CASE("what is refunded is held again, once", "[prefetch]") {
  PrefetchRig rig({.hold = 10s, .most = 100});
  const TokenBucket bucket(rig.store, "api", Quota::per_hour(1).burst(1000));
  CHECK(rig.spend(bucket, 64, 1ms) == 64);
  Reservation grant = bucket.reserve("a", 3, 0s);
  REQUIRE(grant);
  static_cast<void>(rig.asked());
  const Word before = bucket.try_acquire("a").remaining;
  CHECK(bucket.cancel("a", grant) == 3);
  CHECK(rig.asked() == 0);
  CHECK(bucket.try_acquire("a").remaining == before + 3 - 1);
  CHECK(bucket.cancel("a", grant) == 0);
}

TEST_CASE("a reservation that is refunded again and again mints nothing", "[prefetch]") {
  PrefetchRig rig({.hold = 10s, .most = 100});
  const TokenBucket bucket(rig.store, "api", Quota::per_hour(1).burst(1000));
  CHECK(rig.spend(bucket, 64, 1ms) == 64);
  const Reservation grant = bucket.reserve("a", 3, 0s);
  REQUIRE(grant);
  rig.inner.fail_all(Fault::not_executed(Errc::not_connected));
  std::error_code error;
  for (int i = 0; i < 100; ++i) {
    Reservation copy = grant;
    bucket.cancel("a", copy, error);
  }
  std::uint64_t spent = 0;
  while (bucket.try_acquire("a", error).allowed) ++spent;
  CHECK(spent <= rig.store.stats().taken);
}

TEST_CASE("every unit of a quota is spent once, however it was held", "[prefetch]") {
  // Nothing drains, so that what is spent, returned and lapsed must be what was taken.
  PrefetchRig rig({.hold = 1s, .most = 50});
  const TokenBucket bucket(rig.store, "api", Quota::per_hour(1).burst(1000));
  int granted = 0;
  for (int round = 0; round < 20; ++round) {
    granted += rig.spend(bucket, 30, 5ms);
    rig.clock.advance(round % 2 == 0 ? 600ms : 1500ms);  // idle: what is held goes back, or lapses
  }
  const PrefetchStats stats = rig.store.stats();
  CHECK(granted <= 1000);
  CHECK(stats.returned > 0);
  const auto spent_at_store = 1000 - bucket.peek("a").remaining;
  CHECK(static_cast<Word>(stats.taken - stats.returned) == spent_at_store);
  CHECK(granted + static_cast<Word>(stats.lapsed) <= spent_at_store);
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
