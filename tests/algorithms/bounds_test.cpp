// What happens at the bounds of settlements and blocks, of all limiters, on every store: what is
// charged up to a bound is told as it was charged; the longest block, a block of nothing, and one
// that cannot be. Threading: single-threaded.
#include <string>
#include <type_traits>

#include "sluice/sluice.hpp"
#include "tests/algorithms/charged.hpp"
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

/// Calls `check` with a limiter of one unit of each kind that can be blocked for a year.
template <class Check>
void for_each_blocked(Store& store, Check check) {
  const auto named = [&](const auto& limiter) {
    INFO(std::remove_cvref_t<decltype(limiter)>::type_name);
    check(limiter);
  };
  named(FixedWindow(store, "even", 1, Calendar::every(24h)));
  named(FixedWindow(store, "daily", 1, Calendar::daily()));
  named(SlidingWindow(store, "windows", {{1, 1h}}));
  named(SlidingWindowCounter(store, "counter", {1, 1h}));
  named(SlotLock(store, "slots", 1h));
  named(ConcurrencyLimiter(store, "jobs", 1));
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

TEST_CASE("the longest block holds to its last microsecond, whatever is charged meanwhile",
          "[block]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    for_each_blocked(store, [&](const auto& limiter) {
      constexpr Span longest = std::remove_cvref_t<decltype(limiter)>::max_block;
      std::error_code error = make_error_code(Errc::unknown);
      CHECK(limiter.block("k", longest, error).reset_after == longest);
      CHECK_FALSE(error);
      if constexpr (requires { limiter.penalize("k", 100); }) limiter.penalize("k", 100);
      clock.advance(longest - 1us);
      CHECK(limiter.peek("k").retry_after == 1us);
      clock.advance(1us);
      CHECK(limiter.peek("k").allowed);
      CHECK(limiter.block("k", 1h).remaining == 0);
      limiter.reset("k");
      CHECK(limiter.peek("k").allowed);
    });
  });
}

TEST_CASE("a block that cannot be is an error, and changes nothing", "[block]") {
  for_each_store([](Store& store, VirtualClock&) {
    for_each_blocked(store, [&](const auto& limiter) {
      constexpr Span longest = std::remove_cvref_t<decltype(limiter)>::max_block;
      std::error_code error;
      for (const Span span : {Span{-1}, longest + 1us, Span::min(), Span::max()}) {
        CHECK_FALSE(limiter.block("k", span, error).allowed);
        CHECK(error == Errc::invalid_argument);
        CHECK_THROWS_AS(limiter.block("k", span), std::system_error);
      }
      CHECK_FALSE(limiter.block("", 1s, error).allowed);
      CHECK(error == Errc::invalid_key);
      CHECK(limiter.peek("k").remaining == 1);
    });
  });
}

TEST_CASE("a plan blocks all of its keys or none", "[block][composing]") {
  for_each_store([](Store& store, VirtualClock&) {
    for_each_blocked(store, [&](const auto& limiter) {
      const std::string other = std::remove_cvref_t<decltype(limiter)>::type_name;
      const auto taken = limiter.try_acquire(Key{"k", other});
      CHECK(taken);
      const auto plan = [&](const std::string& name) {
        return decide(store, {limiter.block_step("k", 1h), limiter.peek_step(Key{"k", name})});
      };
      CHECK_FALSE(plan(other).allowed);
      CHECK(limiter.peek("k").remaining == 1);
      CHECK(plan(other + " free").allowed);
      CHECK(limiter.peek("k").retry_after == 1h);
    });
  });
}

TEST_CASE("a block of nothing changes nothing", "[block]") {
  for_each_store([](Store& store, VirtualClock&) {
    for_each_charged(store, [](const auto& limiter) {
      CHECK(limiter.block("k", 0s).reset_after == 0s);
      const Decision before = limiter.try_acquire("k");
      CHECK(before.remaining == 4);
      CHECK(limiter.block("k", 0s).remaining == 4);
      CHECK(limiter.peek("k").remaining == 4);
      limiter.block("k", 1s);
      CHECK(limiter.block("k", 0s).remaining == 0);
      CHECK_FALSE(limiter.peek("k"));
    });
    const SlotLock lock(store, "slots", 1s);
    CHECK(lock.block("k", 0s).reset_after == 0s);
    CHECK(lock.peek("k", 0s));
    const ConcurrencyLimiter jobs(store, "jobs", 1);
    CHECK(jobs.block("k", 0s).remaining == 1);
    CHECK(jobs.peek("k"));
  });
}

TEST_CASE("what is blocked stays so for as long as a clock lies behind, to the tick",
          "[block][failover]") {
  for (const Span behind : {Span{1us}, Span{2us}, Span{15s}, Span{60s}}) {
    for_each_store([&](Store& store, VirtualClock& clock) {
      CAPTURE(behind.count());
      const Time start = clock.now() + 24h;
      const auto check = [&](const auto& limiter) {
        clock.set(start);
        limiter.block("k", 1min);
        clock.advance(-behind);
        CHECK_FALSE(limiter.peek("k"));
        clock.set(start + 1min - 1us);
        CHECK_FALSE(limiter.peek("k"));
        clock.set(start + 1min);
        CHECK(limiter.peek("k").allowed);
      };
      for_each_blocked(store, check);
      const Quota quota = Quota::per_second(10);
      check(TokenBucket(store, "bucket", quota));
      check(TokenBucket(store, "in full", quota, {.longest = 2min}));
      const SharedTokenBucket shared(store, "shared");
      clock.set(start);
      shared.configure("k", quota);
      check(shared);
      const SharedSlidingWindow rate(store, "rate");
      rate.configure("k", RateType::overall, 1, 1s);
      check(rate);
    });
  }
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
