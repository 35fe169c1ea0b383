// What happens at the bounds of settlements and blocks, on every store: what is charged up to a
// bound is told as it was charged, and a block of nothing changes nothing.
// Threading: single-threaded.
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

/// What is charged on top of one unit, where at most `room` more can be.
template <class Window>
void check_charged(const Window& window, Word room) {
  Reservation taken = window.reserve("k", 1);
  REQUIRE(taken.allowed);
  CHECK(window.settle("k", taken, 1 + room - 5).charged == room - 5);
  CHECK(window.settle("k", taken, word_limit).charged == 5);
  CHECK(taken.settled == room);
  CHECK(window.settle("k", taken, word_limit).charged == 0);
  CHECK(window.settle("k", taken, 0).refunded == 1);  // not of what was settled
  CHECK(taken.granted == 0);
}

template <class Limiter>
void check_block_of_nothing(const Limiter& limiter) {
  CHECK(limiter.block("k", 0s).reset_after == 0s);
  CHECK(limiter.peek("k"));
  const Decision before = limiter.try_acquire("k");
  CHECK(before.allowed);
  CHECK(limiter.block("k", 0s).remaining == before.remaining);
  CHECK(limiter.peek("k", 1).remaining == before.remaining);
  limiter.block("k", 1s);
  CHECK(limiter.block("k", 0s).remaining == 0);
  CHECK_FALSE(limiter.peek("k"));
}

/// What is charged on top of the burst of 5, 10 a second: up to a debt of `longest()`.
template <class Bucket>
void check_debt(const Bucket& bucket, VirtualClock& clock) {
  const Word room = 10 * std::chrono::ceil<std::chrono::seconds>(bucket.longest()).count();
  Reservation r = bucket.reserve("k", 5, 0s);
  REQUIRE(r.granted == 5);
  CHECK(bucket.settle("k", r, room).charged == room - 5);
  CHECK(r.settled == room - 5);
  CHECK(bucket.settle("k", r, room + 100).charged == 5);
  CHECK(bucket.settle("k", r, room + 100).charged == 0);
  CHECK(r.settled == room);
  CHECK(bucket.block("k", 0s).reset_after == Span{bucket.longest()} + 500ms);
  clock.advance(1s);
  CHECK(bucket.settle("k", r, room + 100).charged == 10);
}

}  // namespace

TEST_CASE("a settlement tells what was charged, where it was capped", "[settle]") {
  for_each_store([](Store& store, VirtualClock&) {
    check_charged(FixedWindow(store, "fixed", 3, Calendar::every(1min)),
                  FixedWindowRule::max_used - 1);
    check_charged(SlidingWindowCounter(store, "counter", {3, 1min}),
                  SlidingWindowCounterRule::max_limit - 1);
  });
}

TEST_CASE("a bucket's debt ends at its longest, and a settlement tells so", "[settle]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const Quota quota = Quota::per_second(10).burst(5);
    check_debt(TokenBucket(store, "bucket", quota), clock);
    const SharedTokenBucket shared(store, "shared");
    shared.configure("k", quota);
    check_debt(shared, clock);
  });
}

TEST_CASE("what a blocked fixed window does not count is not told as charged", "[settle]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const FixedWindow window(store, "fixed", 3, Calendar::every(1min));
    Reservation taken = window.reserve("k", 1);
    window.block("k", 90s);
    CHECK(window.settle("k", taken, 3).charged == 0);
    clock.advance(90s);
    CHECK(window.peek("k").remaining == 3);
  });
}

TEST_CASE("a block of nothing changes nothing", "[block]") {
  for_each_store([](Store& store, VirtualClock&) {
    const Quota quota = Quota::per_second(10).burst(5);
    check_block_of_nothing(TokenBucket(store, "bucket", quota));
    const SharedTokenBucket shared(store, "shared");
    shared.configure("k", quota);
    check_block_of_nothing(shared);
    check_block_of_nothing(FixedWindow(store, "fixed", 3, Calendar::every(1min)));
    check_block_of_nothing(SlidingWindowCounter(store, "counter", {3, 1min}));
    check_block_of_nothing(SlidingWindow(store, "windows", {{3, 1min}}));
    const SlotLock lock(store, "slots", 1s);
    CHECK(lock.block("k", 0s).reset_after == 0s);
    CHECK(lock.peek("k", 0s));
    const ConcurrencyLimiter jobs(store, "jobs", 1);
    CHECK(jobs.block("k", 0s).remaining == 1);
    CHECK(jobs.peek("k"));
  });
}

TEST_CASE("nothing of a window comes back when it counts no more", "[refund]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow windows(store, "windows", {{3, 1s}});
    const SlidingWindowCounter counter(store, "counter", {3, 1s});
    const FixedWindow fixed(store, "fixed", 3, Calendar::every(1s));
    const Reservation one = windows.reserve("k", 2, 0s);
    const Reservation two = counter.reserve("k", 2);
    const Reservation three = fixed.reserve("k", 2);
    const auto back = [](const auto& limiter, const Reservation& grant) {
      Reservation cancelled = grant;
      Reservation settled = grant;
      return limiter.cancel("k", cancelled) + limiter.settle("k", settled, 1).refunded;
    };
    for (const Span later : {Span{1s}, Span{1s}, Span{62s}}) {
      clock.advance(later);
      CHECK(back(windows, one) == 0);
      CHECK(back(fixed, three) == 0);
      if (later == 1s && clock.now() == VirtualClock::default_start + 1s) continue;
      CHECK(back(counter, two) == 0);
    }
  });
}

TEST_CASE("a fixed window that was written by a clock set back outlives another correction",
          "[fixed_window][C-035]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const FixedWindow window(store, "fixed", 3, Calendar::every(1min));
    clock.set(VirtualClock::default_start + 1h);
    const Time begin = clock.now();
    REQUIRE(window.try_acquire("k").allowed);
    clock.set(begin - 50s);
    REQUIRE(window.try_acquire("k").remaining == 1);  // of the window that has begun
    clock.set(begin + 75s);
    CHECK(window.peek("k").remaining == 3);
    clock.set(begin + 20s);
    CHECK(window.peek("k").remaining == 1);
  });
}
