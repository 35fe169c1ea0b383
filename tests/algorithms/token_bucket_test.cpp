// The token bucket limiter's behaviour, in exact integers, on every store.
// Threading: single-threaded.
#include "sluice/limiters/token_bucket.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/limiters/sliding_window.hpp"
#include "sluice/memory_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

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
