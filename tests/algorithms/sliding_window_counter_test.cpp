// How the sliding window counter behaves, in exact integers, on every store.
// Threading: single-threaded.
#include "sluice/limiters/sliding_window_counter.hpp"

#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using test::for_each_store;

namespace {

std::string why(WindowLimit window) {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  return test::refusal([&] { SlidingWindowCounter(*store, "c", window); });
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
  CHECK(why({5, Span{(Word{1} << 42) + 1}}).ends_with("got 4398046511105 us"));
  CHECK(why({Word{1} << 40, Span{Word{1} << 42}}) == "nothing was thrown");
}
