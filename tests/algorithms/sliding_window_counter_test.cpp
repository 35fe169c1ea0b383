// How the sliding window counter behaves, in exact integers, on every store.
// Threading: single-threaded.
#include "sluice/limiters/sliding_window_counter.hpp"

#include <stdexcept>

#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using test::for_each_store;

namespace {

std::string why(WindowLimit window) {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  try {
    const SlidingWindowCounter limiter(*store, "c", window);
    return "accepted";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("the window before counts by the part of it that is still covered, rounded up",
          "[sliding_window_counter][C-003][C-005]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindowCounter limiter(store, "c", {10, 60s});
    clock.advance(59s);
    for (Word remaining = 9; remaining >= 0; --remaining) {
      CHECK(limiter.try_acquire("k").remaining == remaining);
    }
    CHECK(limiter.try_acquire("k").retry_after == 7s);
    clock.advance(1s);
    CHECK(limiter.try_acquire("k").retry_after == 6s);
    CHECK(limiter.try_acquire("k", 10).retry_after == 60s);
    clock.advance(6s - 1us);
    CHECK_FALSE(limiter.try_acquire("k").allowed);
    clock.advance(1us);
    CHECK(limiter.try_acquire("k").allowed);
    CHECK(limiter.peek("k").retry_after == 6s);
    clock.advance(54s);
    CHECK(limiter.peek("k", 0).remaining == 9);
  });
}

TEST_CASE("limits of 2^40 and spans of 50 days count exactly", "[sliding_window_counter]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const Word limit = SlidingWindowCounterRule::max_limit;
    const Span span{SlidingWindowCounterRule::max_span};
    const SlidingWindowCounter limiter(store, "c", {limit, span});
    clock.set(to_time(200 * span.count() + 12'345));
    CHECK(limiter.try_acquire("k", limit).remaining == 0);
    clock.set(to_time(201 * span.count() + 12'345));
    CHECK(limiter.peek("k", 0).remaining == 3086);  // floor(12345 / 4)
    CHECK(limiter.try_acquire("k", 3087).retry_after == 3us);
    clock.advance(3us);
    CHECK(limiter.try_acquire("k", 3087).remaining == 0);
    CHECK(limiter.worst_case() == 2 * limit - 1);
  });
}

TEST_CASE("a counter refuses what cannot be where it is built", "[sliding_window_counter][C-007]") {
  CHECK(why({-1, 1s}) ==
        "sliding window counter: the limit must be 0 to 1099511627776, or unlimited, got -1");
  CHECK(why({(Word{1} << 40) + 1, 1s}).ends_with("got 1099511627777"));
  CHECK(why({5, 0us}) ==
        "sliding window counter: the span must be 1 us to 4398046511104 us, got 0 us");
  CHECK(why({5, -1us}).ends_with("got -1 us"));
  CHECK(why({Word{1} << 40, Span{Word{1} << 42}}) == "accepted");
}

TEST_CASE("a changed limit keeps what is counted, on every store",
          "[sliding_window_counter][C-004]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindowCounter higher(store, "c", {25, 60s});
    const SlidingWindowCounter lower(store, "c", {10, 60s});
    Reservation taken = higher.reserve("k", 20);
    CHECK(taken.allowed);
    const Decision refused = lower.try_acquire("k");
    CHECK_FALSE(refused.allowed);
    CHECK(refused.remaining == 0);
    CHECK(higher.peek("k").remaining == 5);
    clock.advance(refused.retry_after - 1us);
    CHECK_FALSE(lower.try_acquire("k").allowed);
    clock.advance(1us);
    CHECK(lower.try_acquire("k").remaining == 0);
    CHECK(higher.peek("k").remaining == 15);
    CHECK(lower.refund("k", taken, 20) == 20);
    CHECK(higher.block("k", 10s).allowed);
    CHECK(lower.peek("k").retry_after == 10s);
  });
}

TEST_CASE("a counter of another span is another count, and the sum of both is the bound",
          "[sliding_window_counter]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SlidingWindowCounter minute(store, "c", {10, 60s});
    const SlidingWindowCounter hour(store, "c", {60, 3600s});
    CHECK(minute.try_acquire("k", 10).allowed);
    CHECK_FALSE(minute.try_acquire("k").allowed);
    CHECK(hour.try_acquire("k", 60).allowed);
    CHECK_FALSE(hour.try_acquire("k").allowed);
    CHECK(minute.penalize("k", 5).allowed);
    minute.reset("k");
    CHECK(minute.peek("k").remaining == 10);
    CHECK(hour.block("k", 1s).remaining == 0);
    CHECK(minute.try_acquire("k", 10).allowed);
  });
}

TEST_CASE("a counter's clock that was set back stands still, or restarts after one request",
          "[sliding_window_counter][C-008][C-009]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindowCounter limiter(store, "c", {2, 10s});
    CHECK(limiter.try_acquire("k", 2).allowed);
    clock.advance(-60s);
    CHECK(limiter.try_acquire("k").retry_after == 75s);  // half of the next window
    clock.advance(-1us);
    CHECK(limiter.try_acquire("k").allowed);
    CHECK_FALSE(limiter.try_acquire("k").allowed);
  });
}

TEST_CASE("a counter that was reset knows nothing, and an impossible cost is an error",
          "[sliding_window_counter]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SlidingWindowCounter limiter(store, "c", {5, 10s});
    std::error_code error;
    static_cast<void>(limiter.try_acquire("k", 6, error));
    CHECK(error == Errc::cost_exceeds_capacity);
    static_cast<void>(limiter.try_acquire("k", -1, error));
    CHECK(error == Errc::invalid_cost);
    CHECK(limiter.try_acquire("k", 5).allowed);
    CHECK_FALSE(limiter.try_acquire("k").allowed);
    limiter.reset("k");
    CHECK(limiter.try_acquire("k", 5).reset_after == 20s);
  });
}

TEST_CASE("a counter gives back, settles, rewards and charges by hand",
          "[sliding_window_counter]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    clock.set(clock.now() - (clock.now().time_since_epoch() % 60s));
    const SlidingWindowCounter limit(store, "c", {10, 60s});
    Reservation first = limit.reserve("a", 6);
    CHECK(limit.refund("a", first, 2) == 2);
    CHECK(limit.peek("a").remaining == 6);
    clock.advance(60s);
    Reservation second = limit.reserve("a", 3);
    CHECK(second.remaining == 3);
    CHECK(limit.settle("a", first, 1).refunded == 3);
    CHECK(limit.peek("a").remaining == 6);
    CHECK(limit.settle("a", second, 12).charged == 9);
    CHECK(limit.peek("a").remaining == 0);
    CHECK(limit.reward("a", 8).remaining == 5);
    CHECK(limit.penalize("a", 100).remaining == 0);
    clock.advance(120s);
    CHECK(limit.refund("a", first, 1) == 0);  // nobody counts it any more
    CHECK(limit.peek("a").remaining == 10);
    std::error_code error;
    limit.refund("a", second, -1, error);
    CHECK(error == Errc::invalid_cost);
    limit.settle("a", second, -1, error);
    CHECK(error == Errc::invalid_cost);
    limit.reward("a", -1, error);
    CHECK(error == Errc::invalid_cost);
    CHECK_THROWS_AS(limit.refund("a", second, -1), std::system_error);
    CHECK_THROWS_AS(limit.settle("a", second, -1), std::system_error);
    CHECK_THROWS_AS(limit.penalize("a", -1), std::system_error);
    Reservation elsewhere = limit.reserve("a", 2);
    elsewhere.source = Source::policy;
    CHECK(limit.refund("a", elsewhere, 2) == 0);
  });
}

TEST_CASE("a blocked counter admits nothing until its time, and counts meanwhile",
          "[sliding_window_counter][L1]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindowCounter counter(store, "c", {10, 1min});
    REQUIRE(counter.try_acquire("k", 4));
    Reservation taken = counter.reserve("k", 4);
    const Decision blocked = counter.block("k", 10s);
    CHECK(blocked.allowed);
    CHECK(blocked.remaining == 0);
    CHECK(blocked.retry_after == 0s);
    CHECK(blocked.reset_after == 2min);
    CHECK(counter.block("k", 1s).remaining == 0);  // a later time stands
    CHECK(counter.peek("k").retry_after == 10s);
    CHECK(counter.refund("k", taken, 1) == 1);
    CHECK(counter.settle("k", taken, 5).charged == 2);
    CHECK(counter.penalize("k", 1).remaining == 0);
    CHECK(counter.reward("k", 1).remaining == 0);
    clock.advance(10s - 1us);
    CHECK(counter.try_acquire("k", 0).remaining == 0);
    CHECK(counter.try_acquire("k").retry_after == 1us);
    clock.advance(1us);
    CHECK(counter.try_acquire("k").remaining == 0);
    CHECK_FALSE(counter.try_acquire("k").allowed);
    clock.advance(2min);

    std::error_code error = make_error_code(Errc::unknown);
    CHECK(counter.block("k", SlidingWindowCounter::max_block, error).reset_after ==
          SlidingWindowCounter::max_block);
    CHECK_FALSE(error);
    CHECK(counter.penalize("k", 100).remaining == 0);  // keeps the key no shorter
    clock.advance(SlidingWindowCounter::max_block - 1us);
    CHECK(counter.try_acquire("k").retry_after == 1us);
    clock.advance(1us);
    CHECK(counter.block("k", 0s).remaining == 10);
    CHECK(counter.block("k", 1h).remaining == 0);
    counter.reset("k");
    CHECK(counter.try_acquire("k", 10));

    for (const Span span :
         {Span{-1}, SlidingWindowCounter::max_block + 1us, Span::min(), Span::max()}) {
      CHECK_FALSE(counter.block("other", span, error).allowed);
      CHECK(error == Errc::invalid_argument);
      CHECK_THROWS_AS(counter.block("other", span), std::system_error);
    }
    CHECK_FALSE(counter.block("", 1s, error).allowed);
    CHECK(error == Errc::invalid_key);
    CHECK(counter.peek("other").remaining == 10);
  });
}

TEST_CASE("a plan blocks all of its counters or none", "[sliding_window_counter]") {
  for_each_store([](Store& store, VirtualClock& /*clock*/) {
    const SlidingWindowCounter counter(store, "c", {1, 1h});
    REQUIRE(counter.try_acquire(Key{"k", "taken"}));
    CHECK_FALSE(
        decide(store, {counter.block_step("k", 1h), counter.acquire_step(Key{"k", "taken"})})
            .allowed);
    CHECK(counter.peek("k").remaining == 1);
    CHECK(decide(store, {counter.block_step("k", 1h), counter.acquire_step(Key{"k", "free"})})
              .allowed);
    CHECK(counter.peek("k").retry_after == 1h);
  });
}
