// The token bucket limiter's behaviour, in exact integers, on every store.
// Threading: single-threaded.
#include "sluice/limiters/token_bucket.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/limiters/sliding_window.hpp"
#include "sluice/memory_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

TEST_CASE("a burst smaller than half a second of the rate limits as any other",
          "[token_bucket][C-020]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const TokenBucket bucket(store, "b", Quota::per_second(100).burst(49));
    int admitted = 0;
    for (int i = 0; i < 200; ++i) admitted += bucket.try_acquire("a").allowed ? 1 : 0;
    CHECK(admitted == 49);
    clock.advance(490ms);
    CHECK(bucket.try_acquire("a", 49).allowed);
    CHECK(bucket.try_acquire("a").retry_after == 10ms);
    const TokenBucket quick(store, "quick", Quota::per(3, 1us).burst(2));  // full within 1 us
    CHECK(quick.try_acquire("a", 2).allowed);
    CHECK(quick.try_acquire("a").retry_after == 1us);
    clock.advance(1us);
    CHECK(quick.try_acquire("a", 2).allowed);
  });
}

TEST_CASE("the turn of a second brings no more tokens than any other microsecond",
          "[token_bucket][C-021]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const TokenBucket bucket(store, "b", Quota::per_second(100));
    clock.advance(999ms);
    CHECK(bucket.try_acquire("a", 100).allowed);
    clock.advance(1ms);
    const Decision d = bucket.try_acquire("a", 100);
    CHECK_FALSE(d.allowed);
    CHECK(d.retry_after == 999ms);
  });
}

TEST_CASE("a cost above the burst is an error of its own, not a hint", "[token_bucket][C-025]") {
  for_each_store([](Store& store, VirtualClock&) {
    const TokenBucket bucket(store, "b", Quota::per_second(10).burst(5));
    for (const Word cost : {Word{6}, (Word{1} << 32) + 1, std::numeric_limits<Word>::max()}) {
      CHECK(error_of([&](auto& e) { return bucket.try_acquire("a", cost, e); }) ==
            Errc::cost_exceeds_capacity);
      CHECK(error_of([&](auto& e) { return bucket.peek("a", cost, e); }) ==
            Errc::cost_exceeds_capacity);
      CHECK(error_of([&](auto& e) { return bucket.reserve("a", cost, 60s, e); }) ==
            Errc::cost_exceeds_capacity);
      CHECK(error_of([&](auto& e) { return bucket.try_acquire_up_to("a", cost, 1, e); }) ==
            Errc::cost_exceeds_capacity);
    }
    CHECK(bucket.peek("a").remaining == 5);
  });
}

TEST_CASE("a rate of zero never grants, and a key that is closed for a time is a block or a gate",
          "[token_bucket][C-026]") {
  CHECK_THROWS_AS(Quota::per_second(-1), std::invalid_argument);
  CHECK_THROWS_AS(Quota::per(1, 0s), std::invalid_argument);
  for_each_store([](Store& store, VirtualClock& clock) {
    const TokenBucket bucket(store, "b", Quota::per_second(1000));
    bucket.block("a", 60s);
    CHECK(bucket.try_acquire("a").retry_after == 60s);
    clock.advance(60s - 1us);
    CHECK(bucket.try_acquire("a").retry_after == 1us);
    clock.advance(1us);
    CHECK(bucket.try_acquire("a").allowed);
  });
}

TEST_CASE("tokens and time are one state under one key, of one kind",
          "[token_bucket][C-027][C-028]") {
  // What is left when the state is lost is a full bucket, and not more; and a state of another kind
  // is not read as one. Garbage under the key: tests/redis and the conformance suite.
  for_each_store([](Store& store, VirtualClock&) {
    const TokenBucket bucket(store, "b", Quota::per_second(10).burst(5));
    CHECK(bucket.try_acquire("a", 5).allowed);
    const std::array<Step, 2> both{bucket.acquire_step("a"), bucket.peek_step("a")};
    CHECK(error_of([&](auto& e) { return decide(store, both, e); }) == Errc::duplicate_key);
    CHECK(bucket.try_acquire("a").retry_after == 100ms);
  });
}

TEST_CASE("a store that is full gives nobody a second burst", "[token_bucket][C-027]") {
  VirtualClock clock;
  const auto store = make_memory_store({.max_keys = 16, .clock = &clock});
  const TokenBucket brief(*store, "brief", Quota::per_second(1).burst(1));
  const TokenBucket bucket(*store, "b", Quota::per(1, 24h).burst(5));
  for (int i = 0; i < 200; ++i) {
    std::error_code full;
    (void)brief.try_acquire("guest" + std::to_string(i), 1, full);
  }
  // Keys without a slot share a bucket; when slots are idle again, they get one of their own.
  std::vector<int> admitted(20);
  for (int round = 0; round < 4; ++round, clock.advance(1min)) {
    for (std::size_t key = 0; key < admitted.size(); ++key) {
      for (int i = 0; i < 6; ++i) {
        std::error_code full;
        admitted[key] += bucket.try_acquire("user" + std::to_string(key), 1, full) ? 1 : 0;
      }
    }
  }
  CHECK(std::ranges::max(admitted) == 5);
  CHECK(store->stats().overflowed > 0);  // or it was not full
  CHECK(store->stats().evicted_idle > 0);
}

TEST_CASE("all verbs of a bucket share one state", "[token_bucket][C-027]") {
  VirtualClock clock;
  const auto store = make_memory_store({.max_keys = 16, .clock = &clock});
  const TokenBucket bucket(*store, "b", Quota::per_second(10).burst(5));
  CHECK(bucket.try_acquire("a"));
  CHECK(bucket.reserve("a", 2, 1s));
  CHECK(bucket.peek("a").remaining == 2);
  bucket.block("a", 10ms);
  clock.advance(1h);
  CHECK(bucket.at("a").try_acquire().remaining == 4);
  CHECK(store->stats().keys == 1);
}

TEST_CASE("lumps come at the multiples of their interval, all at once", "[token_bucket]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const TokenBucket bucket(store, "b", Quota::per_second(10).burst(20),
                             {.refill = Refill::per_interval(1s)});
    clock.advance(300ms);
    CHECK(bucket.try_acquire("a", 20).allowed);
    const Decision refused = bucket.try_acquire("a");
    CHECK(refused.retry_after == 700ms);
    CHECK(refused.reset_after == 1700ms);
    clock.advance(700ms - 1us);
    CHECK(bucket.try_acquire("a").retry_after == 1us);
    clock.advance(1us);
    CHECK(bucket.peek("a").remaining == 10);
    CHECK(bucket.try_acquire("a", 10).allowed);
    CHECK(bucket.try_acquire("a", 11).retry_after == 2s);
    const Reservation r = bucket.reserve("a", 4, 1s);
    CHECK(r.wait() == 1s);
    CHECK_FALSE(bucket.try_acquire("a").allowed);
    clock.advance(1s);
    CHECK(bucket.try_acquire("a", 6).allowed);
    CHECK_FALSE(bucket.try_acquire("a").allowed);
  });
}

TEST_CASE("a first level is what unknown buckets have at the start, and they fill from then",
          "[token_bucket]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const TokenBucket bucket(store, "b", Quota::per_second(10).burst(20), {.initial = 3});
    CHECK(bucket.peek("a").remaining == 3);
    const Decision refused = bucket.try_acquire("a", 5);
    CHECK(refused.retry_after == 200ms);
    CHECK(bucket.try_acquire("a", 5).retry_after == 200ms);  // asking has not moved it
    clock.advance(200ms - 1us);
    CHECK(bucket.try_acquire("a", 5).retry_after == 1us);
    clock.advance(1us);
    CHECK(bucket.try_acquire("a", 5).allowed);
    CHECK(bucket.peek("b").remaining == 5);
    clock.advance(1500ms);
    CHECK(bucket.peek("b").remaining == 20);
    CHECK(bucket.peek("a").remaining == 15);
    clock.advance(1h);  // whether or not the state was collected
    CHECK(bucket.peek("a").remaining == 20);
    const TokenBucket next(store, "b", Quota::per_second(10).burst(20), {.initial = 0});
    CHECK(next.try_acquire("a").retry_after == 100ms);
  });
}

TEST_CASE("reservations stand in line, and everybody else behind them", "[token_bucket]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const TokenBucket bucket(store, "b", Quota::per_second(10).burst(5));
    CHECK(bucket.reserve("a", 5, 0s).wait() == 0s);
    const Reservation first = bucket.reserve("a", 2, 1s);
    CHECK(first.wait() == 200ms);
    CHECK(first.ready_at() == clock.now() + 200ms);
    CHECK(bucket.reserve("a", 3, 500ms).wait() == 500ms);
    const Reservation refused = bucket.reserve("a", 1, 599ms);
    CHECK_FALSE(refused);
    CHECK(refused.wait() == 1ms);  // then it is 599 ms away
    CHECK(refused.granted == 0);
    CHECK(bucket.try_acquire("a").retry_after == 600ms);
    CHECK(bucket.peek("a").retry_after == 600ms);
    clock.advance(1ms);
    CHECK(bucket.reserve("a", 1, 599ms).wait() == 599ms);
    clock.advance(599ms);
    CHECK(bucket.try_acquire("a").retry_after == 100ms);
    CHECK(error_of([&](auto& e) { return bucket.reserve("a", 1, -1us, e); }) ==
          Errc::invalid_argument);
    CHECK(error_of([&](auto& e) { return bucket.reserve("a", 1, 60s + 1us, e); }) ==
          Errc::invalid_argument);
  });
}

TEST_CASE("a cancelled reservation is as if it had never been, if nobody asked since",
          "[token_bucket]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const TokenBucket bucket(store, "b", Quota::per_second(10).burst(5));
    CHECK(bucket.try_acquire("a", 4).allowed);
    Reservation r = bucket.reserve("a", 5, 1s);
    CHECK(r.wait() == 400ms);
    clock.advance(150ms);
    CHECK(bucket.cancel("a", r) == 5);
    CHECK(r.granted == 0);
    CHECK(bucket.peek("a").remaining == 2);
    CHECK(bucket.peek("a").reset_after == 250ms);
    CHECK(bucket.cancel("a", r) == 0);  // once
    Reservation part = bucket.reserve("a", 5, 1s);
    CHECK(part.wait() == 250ms);
    CHECK(bucket.refund("a", part, 2) == 2);
    CHECK(part.granted == 3);
    CHECK(part.wait() == 50ms);  // what is left of it comes earlier
    CHECK(bucket.refund("a", part, 3) == 3);
    clock.advance(1h);
    Reservation old = bucket.reserve("a", 5, 0s);
    clock.advance(300ms);
    CHECK(bucket.cancel("a", old) == 2);  // three have drained
    CHECK(bucket.peek("a").remaining == 5);
  });
}

TEST_CASE("reset, reward and penalize do what they say", "[token_bucket]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const TokenBucket bucket(store, "b", Quota::per_second(10).burst(5));
    CHECK(bucket.try_acquire("a", 5).allowed);
    CHECK(bucket.reward("a", 2).remaining == 2);
    CHECK(bucket.reward("a", 100).remaining == 5);
    CHECK(bucket.penalize("a", 3).remaining == 2);
    CHECK(bucket.penalize("a", 4).remaining == 0);
    CHECK(bucket.try_acquire("a").retry_after == 300ms);
    bucket.reset("a");
    CHECK(bucket.peek("a").remaining == 5);
    CHECK(bucket.try_acquire("a", 5).allowed);
    CHECK(bucket.block("a", 2s).remaining == 0);
    CHECK(bucket.block("a", 1s).allowed);  // the later time stands
    CHECK(bucket.try_acquire("a").retry_after == 2s);
    CHECK(bucket.try_acquire("a", 2).retry_after == 2100ms);
    CHECK(error_of([&](auto& e) { bucket.block("a", -1us, e); }) == Errc::invalid_argument);
    CHECK(error_of([&](auto& e) { bucket.block("a", 61s, e); }) == Errc::invalid_argument);
    clock.advance(-58s);  // a clock that is set back does not open it
    CHECK(bucket.try_acquire("a").retry_after == 60s);
  });
}

TEST_CASE("options out of range are refused with the range", "[token_bucket]") {
  for_each_store(
      [](Store& store, VirtualClock&) {
        const Quota quota = Quota::per_second(10).burst(5);
        const auto make = [&](const BucketOptions& options) {
          TokenBucket(store, "b", quota, options);
        };
        CHECK(names(refusal([&] { make({.initial = 6}); }), "0 to the burst of 5"));
        CHECK_THROWS_AS(make({.initial = -1}), std::invalid_argument);
        CHECK_THROWS_AS(make({.refill = Refill::per_interval(0us)}), std::invalid_argument);
        CHECK_THROWS_AS(make({.refill = Refill::per_interval(-1s)}), std::invalid_argument);
        CHECK(names(refusal([&] { make({.longest = 1h + 1us}); }),
                    "longest must be 60000000 to 3600000000 us"));
        CHECK_THROWS_AS(make({.longest = 1min - 1us}), std::invalid_argument);
      },
      Stores::virtual_time);
}

TEST_CASE("reservations go in plans, all or nothing", "[token_bucket]") {
  for_each_store([](Store& store, VirtualClock&) {
    const TokenBucket user(store, "user", Quota::per_second(10).burst(5));
    const TokenBucket all(store, "all", Quota::per_second(1).burst(5), {.longest = 1min});
    const Key a{"{t}", "user"};
    const Key b{"{t}", "all"};
    std::array<Word, 6> output{};
    std::error_code error;
    const std::array<Step, 2> steps{user.reserve_step(a, 5, 1s), all.reserve_step(b, 5, 1s)};
    CHECK(decide(store, steps, error, {}, output).allowed);
    CHECK(output[0] == 5);
    CHECK(output[3] == 5);
    CHECK_FALSE(decide(store, steps, error, {}, output).allowed);  // `all` has none for 5 s
    CHECK(user.try_acquire(a).retry_after == 100ms);
    CHECK(all.at(b).try_acquire().retry_after == 1s);
    CHECK(all.at(b).peek().retry_after == 1s);
    CHECK(user.at(a).try_acquire().retry_after == 100ms);
  });
}

TEST_CASE(
    "a quota of 500 a minute admits 1,000 in its first, and 500 in any with burst 1 or in a "
    "window",
    "[token_bucket]") {
  for_each_store(
      [](Store& store, VirtualClock& clock) {
        // The most units in a minute, for a caller that takes all it can get in three minutes.
        const auto most = [&](const auto& limiter, bool both_ends) {
          std::vector<Time> granted;
          const Time end = clock.now() + 3min;
          while (clock.now() <= end) {
            const Decision decision = limiter.try_acquire("a");
            if (decision) granted.push_back(decision.at);
            if (!decision) clock.advance(decision.retry_after);
          }
          std::size_t found = 0;
          for (std::size_t i = 0, j = 0; j < granted.size(); ++j) {
            while (granted[j] - granted[i] >= Span{1min} + Span{both_ends ? 1 : 0}) ++i;
            found = std::max(found, j - i + 1);
          }
          return found;
        };
        CHECK(most(TokenBucket(store, "b", Quota::per_minute(500)), true) == 1000);
        CHECK(most(TokenBucket(store, "c", Quota::per_minute(500).burst(1)), false) == 500);
        CHECK(most(SlidingWindow(store, "w", {{500, 1min}}), false) == 500);
      },
      Stores::virtual_time);
}
