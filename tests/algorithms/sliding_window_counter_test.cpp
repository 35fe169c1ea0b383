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

TEST_CASE("what a counter cannot do is an error, and changes nothing", "[sliding_window_counter]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SlidingWindowCounter counter(store, "c", {5, 10s});
    std::error_code error;
    static_cast<void>(counter.try_acquire("k", 6, error));
    CHECK(error == Errc::cost_exceeds_capacity);
    static_cast<void>(counter.try_acquire("k", -1, error));
    CHECK(error == Errc::invalid_cost);
    Reservation elsewhere = counter.reserve("k", 2);
    CHECK_THROWS_AS(counter.refund("k", elsewhere, -1), std::system_error);
    CHECK_THROWS_AS(counter.settle("k", elsewhere, -1), std::system_error);
    CHECK_THROWS_AS(counter.penalize("k", -1), std::system_error);
    elsewhere.source = Source::policy;
    CHECK(counter.refund("k", elsewhere, 2) == 0);
    CHECK(counter.peek("k").remaining == 3);
    counter.reset("k");
    CHECK(counter.try_acquire("k", 5).reset_after == 20s);
  });
}
