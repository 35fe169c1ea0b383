// Which limiter has which verb (the table of docs/composing.md), and that a refusal has nothing to
// give back. Threading: single-threaded.
#include <limits>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

template <class L>
concept Reserves = requires(const L& l, Key k) {
  static_cast<void>(l.reserve(k, 1, 1s));
};
template <class L>
concept Borrows = requires(const L& l, Key k) {
  static_cast<void>(l.borrow(k, 1, 1s));
};
template <class L>
concept TakesSome = requires(const L& l, Key k) {
  static_cast<void>(l.try_acquire_up_to(k, 2));
};
template <class L>
concept SettlesReservations = requires(const L& l, Key k, Reservation r) {
  l.settle(k, r, 1);
};
template <class L>
concept SettlesDecisions = requires(const L& l, Key k, Decision d, SettledCost c) {
  l.settle(k, d, c);
};
template <class L>
concept Settles = SettlesReservations<L> || SettlesDecisions<L>;
template <class L>
concept Refunds = requires(const L& l, Key k, Reservation r) {
  l.refund(k, r, 1);
}
|| requires(const L& l, Key k, Decision d) { l.refund(k, d, 1); };
template <class L>
concept Rewards = requires(const L& l, Key k) {
  l.reward(k, 1);
};
template <class L>
concept Penalizes = requires(const L& l, Key k) {
  l.penalize(k, 1);
};
template <class L>
concept Resets = requires(const L& l, Key k) {
  l.reset(k);
}
|| requires(const L& l) { l.reset(); };
template <class L>
concept Blocks = requires(const L& l, Key k) {
  l.block(k, 1s);
};

template <class L>
concept HasNoneOfThem = !Reserves<L> && !Borrows<L> && !TakesSome<L> && !Settles<L> &&
                        !Refunds<L> && !Rewards<L> && !Penalizes<L> && !Blocks<L>;

static_assert(Reserves<TokenBucket> && Borrows<TokenBucket> && TakesSome<TokenBucket>);
static_assert(SettlesReservations<TokenBucket> && Refunds<TokenBucket> && Rewards<TokenBucket>);
static_assert(Penalizes<TokenBucket> && Resets<TokenBucket> && Blocks<TokenBucket>);

static_assert(Reserves<SharedTokenBucket> && Borrows<SharedTokenBucket> &&
              !TakesSome<SharedTokenBucket>);
static_assert(SettlesReservations<SharedTokenBucket> && Refunds<SharedTokenBucket> &&
              Rewards<SharedTokenBucket>);
static_assert(Penalizes<SharedTokenBucket> && Resets<SharedTokenBucket> &&
              Blocks<SharedTokenBucket>);

static_assert(Reserves<SlidingWindow> && SettlesDecisions<SlidingWindow>);
static_assert(Refunds<SlidingWindow> && Rewards<SlidingWindow> && Resets<SlidingWindow>);
static_assert(Blocks<SlidingWindow>);
static_assert(!Borrows<SlidingWindow> && !TakesSome<SlidingWindow> && !Penalizes<SlidingWindow>);

static_assert(SettlesDecisions<SlidingWindowCounter> && Refunds<SlidingWindowCounter>);
static_assert(Rewards<SlidingWindowCounter> && Penalizes<SlidingWindowCounter> &&
              Resets<SlidingWindowCounter>);
static_assert(Blocks<SlidingWindowCounter>);
static_assert(!Reserves<SlidingWindowCounter> && !Borrows<SlidingWindowCounter> &&
              !TakesSome<SlidingWindowCounter>);

static_assert(SettlesDecisions<FixedWindow> && Refunds<FixedWindow>);
static_assert(Rewards<FixedWindow> && Penalizes<FixedWindow> && Resets<FixedWindow>);
static_assert(Blocks<FixedWindow>);
static_assert(!Reserves<FixedWindow> && !Borrows<FixedWindow> && !TakesSome<FixedWindow>);

template <class L>
concept ReservesPermits = requires(const L& l, RateReservation r) {
  static_cast<void>(l.reserve(1, 1s));
  l.cancel(r);
  l.refund(r, 1);
  l.settle(r, 1);
  l.block(1s);
  l.reward(1);
};
static_assert(ReservesPermits<SharedSlidingWindow> && !Resets<SharedSlidingWindow>);
static_assert(HasNoneOfThem<SharedSlidingWindow>);  // as it has no keys

static_assert(Blocks<SlotLock> && Resets<SlotLock>);
static_assert(requires(const SlotLock& l, Key k, SlotPermit p) {
  static_cast<void>(l.reserve(k, 1s));
  l.cancel(k, p);
});
static_assert(!Settles<SlotLock> && !Refunds<SlotLock> && !Rewards<SlotLock> &&
              !Penalizes<SlotLock>);

static_assert(Blocks<ConcurrencyLimiter> && Resets<ConcurrencyLimiter>);
static_assert(!Reserves<ConcurrencyLimiter> && !Settles<ConcurrencyLimiter> &&
              !Refunds<ConcurrencyLimiter> && !Rewards<ConcurrencyLimiter>);
static_assert(HasNoneOfThem<FleetShedder> && Resets<FleetShedder>);
static_assert(requires(const FleetShedder& f) { f.block(1s); });  // as it has one key
static_assert(HasNoneOfThem<UtilizationShedder> && Resets<UtilizationShedder>);
static_assert(HasNoneOfThem<Gates> && !Resets<Gates>);  // close() and open() are its verbs

}  // namespace

TEST_CASE("a refusal has nothing to give back or to settle, whoever was granted", "[verbs]") {
  for_each_store([](Store& store, VirtualClock&) {
    const TokenBucket bucket(store, "bucket", Quota::per_hour(5));
    REQUIRE(bucket.try_acquire("k", 5));
    Reservation refused = bucket.reserve("k", 1, 0s);
    REQUIRE_FALSE(refused);
    CHECK(bucket.cancel("k", refused) == 0);
    CHECK(bucket.settle("k", refused, 0).given_back == 0);
    CHECK(bucket.settle("k", refused, 3).charged == 0);
    CHECK(bucket.peek("k").retry_after == 12min);

    const SharedTokenBucket shared(store, "shared");
    shared.configure("k", Quota::per_hour(5));
    REQUIRE(shared.try_acquire("k", 5));
    refused = shared.reserve("k", 1, 0s);
    CHECK(shared.cancel("k", refused) == 0);
    CHECK(shared.settle("k", refused, 3).charged == 0);
    CHECK(shared.peek("k").retry_after == 12min);

    const auto check = [&](const auto& limiter) {
      REQUIRE(limiter.try_acquire("k", 5));
      const Decision none = limiter.try_acquire("k", 2);
      REQUIRE_FALSE(none.allowed);
      CHECK(limiter.settle("k", none, {.estimated = 2, .actual = 0}).given_back == 0);
      CHECK(limiter.settle("k", none, {.estimated = 2, .actual = 4}).charged == 0);
      CHECK(limiter.settle("k", Decision{}, {.estimated = 2, .actual = 0}).given_back == 0);
      CHECK(limiter.peek("k").remaining == 0);
      limiter.reset("k");
      CHECK(limiter.peek("k").remaining == 5);
      return none;
    };
    const SlidingWindow windows(store, "windows", {{5, 1h}});
    Decision none = check(windows);
    REQUIRE(windows.try_acquire("k", 5));
    CHECK(windows.refund("k", none, 2) == 0);
    static_cast<void>(decide(store, windows.refund_step("k", none, 2)));
    CHECK(windows.peek("k").remaining == 0);
    const SlidingWindowCounter counter(store, "counter", {5, 1h});
    none = check(counter);
    REQUIRE(counter.try_acquire("k", 5));
    CHECK(counter.refund("k", none, 2) == 0);
    CHECK(counter.peek("k").remaining == 0);
    const FixedWindow window(store, "window", 5, Calendar::every(1h));
    none = check(window);
    REQUIRE(window.try_acquire("k", 5));
    window.refund("k", none, 2);
    CHECK(window.peek("k").remaining == 0);

    const SlotLock lock(store, "lock", 1s);
    REQUIRE(lock.try_acquire("k"));
    const SlotPermit late = lock.try_acquire("k");
    REQUIRE_FALSE(late);
    CHECK_FALSE(lock.cancel("k", late));
    CHECK_FALSE(decide(store, lock.cancel_step("k", late)).allowed);
    CHECK(lock.peek("k").retry_after == 1s);
  });
}

TEST_CASE("units below zero are an invalid cost in every verb, and change nothing",
          "[verbs][C-024]") {
  for_each_store([](Store& store, VirtualClock&) {
    const auto check = [](const auto& call) {
      std::error_code error;
      static_cast<void>(call(error));
      CHECK(error == Errc::invalid_cost);
    };
    const SettledCost no_estimate{.estimated = -1, .actual = 1};
    const SettledCost no_actual{.estimated = 1, .actual = -1};
    for (const Word units : {Word{-1}, -word_limit - 1, std::numeric_limits<Word>::min()}) {
      CAPTURE(units);
      const auto asks = [&](const auto& limiter) {
        check([&](auto& e) { return limiter.try_acquire("k", units, e); });
        check([&](auto& e) { return limiter.try_acquire("k", units, RequestId{1, 2}, e); });
        check([&](auto& e) { return limiter.peek("k", units, e); });
        check([&](auto& e) { limiter.reward("k", units, e); });
      };
      const auto settles = [&](const auto& limiter) {
        const Decision taken = limiter.try_acquire("k", 2);
        const Decision refused = limiter.try_acquire("k", 5);
        for (const Decision& of : {taken, refused}) {
          check([&](auto& e) { limiter.refund("k", of, units, e); });
          check([&](auto& e) { limiter.settle("k", of, no_estimate, e); });
          check([&](auto& e) { limiter.settle("k", of, no_actual, e); });
        }
        CHECK(limiter.peek("k").remaining == 3);
        limiter.reset("k");
      };
      const auto reserves = [&](const auto& limiter) {
        Reservation taken = limiter.reserve("k", 2, 0s);
        Reservation refused = limiter.reserve("k", 5, 0s);
        asks(limiter);
        check([&](auto& e) { return limiter.reserve("k", units, 0s, e); });
        check([&](auto& e) { limiter.penalize("k", units, e); });
        for (Reservation* of : {&taken, &refused}) {
          check([&](auto& e) { limiter.refund("k", *of, units, e); });
          check([&](auto& e) { limiter.settle("k", *of, units, e); });
        }
        CHECK(limiter.peek("k").remaining == 3);
        limiter.reset("k");
      };
      const TokenBucket bucket(store, "bucket", Quota::per_hour(5));
      reserves(bucket);
      check([&](auto& e) { return bucket.try_acquire_up_to("k", units, 0, e); });
      check([&](auto& e) { return bucket.try_acquire_up_to("k", 1, units, e); });
      const SharedTokenBucket shared(store, "shared");
      shared.configure("k", Quota::per_hour(5));
      reserves(shared);

      const SlidingWindow windows(store, "windows", {{5, 1h}});
      asks(windows);
      check([&](auto& e) { return windows.reserve("k", units, 0s, e); });
      settles(windows);
      const SlidingWindowCounter counter(store, "counter", {5, 1h});
      asks(counter);
      check([&](auto& e) { counter.penalize("k", units, e); });
      settles(counter);
      const FixedWindow window(store, "window", 5, Calendar::every(1h));
      asks(window);
      check([&](auto& e) { window.penalize("k", units, e); });
      settles(window);

      const SharedSlidingWindow rate(store, "rate", "rate");
      rate.configure(RateType::overall, 5, 1h, SpentPermits::forgotten);
      RateReservation taken = rate.reserve(2, 0s);
      RateReservation refused = rate.reserve(5, 0s);
      check([&](auto& e) { return rate.try_acquire(units, e); });
      check([&](auto& e) { return rate.peek(units, e); });
      check([&](auto& e) { rate.reward(units, e); });
      for (RateReservation* of : {&taken, &refused}) {
        check([&](auto& e) { rate.refund(*of, units, e); });
        check([&](auto& e) { rate.settle(*of, units, e); });
      }
      CHECK(rate.available_permits() == 3);

      const ConcurrencyLimiter jobs(store, "jobs", 5);
      for (const Word weight : {Word{0}, units}) {  // a lease of nothing is none
        check([&](auto& e) { CHECK_FALSE(jobs.try_acquire("k", weight, e).decision().allowed); });
        check([&](auto& e) { return jobs.peek("k", weight, e); });
      }
      CHECK(jobs.peek("k").remaining == 5);
    }
  });
}

TEST_CASE("a record whose numbers cannot be is a typed error", "[verbs]") {
  for_each_store([](Store& store, VirtualClock&) {
    const Word least = std::numeric_limits<Word>::min();
    const Word most = std::numeric_limits<Word>::max();
    std::error_code error;
    const TokenBucket bucket(store, "bucket", Quota::per_hour(5));
    for (const Word units : {least, Word{-1}, most}) {
      Reservation forged;
      forged.decision.allowed = true;
      forged.granted = units;
      bucket.settle("k", forged, 3, error);
      CHECK(error == (units < 0 ? Errc::invalid_cost : Errc::cost_exceeds_capacity));
    }
    const SlidingWindow windows(store, "windows", {{5, 1h}});
    for (const Word word : {least, Word{-1}, word_limit + 1, most}) {
      Decision forged;
      forged.allowed = true;
      forged.at = to_time(word);
      CHECK(windows.refund("k", forged, 1, error) == 0);
      CHECK(error == Errc::invalid_argument);
      forged.retry_after = Span{most};
      CHECK(windows.refund("k", forged, 1, error) == 0);
      CHECK(error == Errc::invalid_argument);
    }
  });
}

TEST_CASE("of a grant that knows what it was granted no more comes back, of others what is there",
          "[verbs]") {
  for_each_store([](Store& store, VirtualClock&) {
    std::error_code error;
    for (const Word units : {Word{3}, Word{6}, word_limit}) {  // granted were two, of five
      const TokenBucket bucket(store, "bucket", Quota::per_hour(5));
      Reservation taken = bucket.reserve("k", 2, 0s);
      CHECK(bucket.refund("k", taken, units, error) == 0);
      CHECK(error == Errc::invalid_argument);
      CHECK(bucket.cancel("k", taken) == 2);

      const SharedTokenBucket shared(store, "shared");
      shared.configure("k", Quota::per_hour(5), Inheritance::reset);
      Reservation part = shared.reserve("k", 2, 0s);
      CHECK(shared.refund("k", part, units, error) == 0);
      CHECK(error == Errc::invalid_argument);

      const SharedSlidingWindow rate(store, "k", "rate");
      rate.configure(RateType::overall, 5, 1h, SpentPermits::forgotten);
      RateReservation permits = rate.reserve(2, 0s);
      CHECK(rate.refund(permits, units, error) == 0);
      CHECK(error == Errc::invalid_argument);

      const SlidingWindow windows(store, "windows", {{5, 1h}});
      CHECK(windows.refund("k", windows.try_acquire("k", 2), units) == 2);
      CHECK(windows.peek("k").remaining == 5);

      const SlidingWindowCounter counter(store, "counter", {5, 1h});
      CHECK(counter.refund("k", counter.try_acquire("k", 2), units) == 2);
      CHECK(counter.peek("k").remaining == 5);

      const FixedWindow window(store, "window", 5, Calendar::every(1h));
      CHECK(window.refund("k", window.try_acquire("k", 2), units) == 2);
      CHECK(window.peek("k").remaining == 5);

      const SettledCost unspent{.estimated = units, .actual = 0};
      CHECK(counter.settle("k", counter.try_acquire("k", 2), unspent).given_back == 2);
      CHECK(window.settle("k", window.try_acquire("k", 2), unspent).given_back == 2);
      CHECK(window.peek("k").remaining == 5);

      windows.refund("k", windows.try_acquire("k", 2), word_limit + 1, error);
      CHECK(error == Errc::invalid_cost);
      counter.refund("k", counter.try_acquire("k", 2), word_limit + 1, error);
      CHECK(error == Errc::invalid_cost);
      window.refund("k", window.try_acquire("k", 2), word_limit + 1, error);
      CHECK(error == Errc::invalid_cost);
      windows.reset("k");
      counter.reset("k");
      window.reset("k");
    }
  });
}
