// Sliding windows that are blocked and rewarded, in exact integers, on every store; and shared
// rates, whose log is theirs. Threading: single-threaded.
#include <array>
#include <vector>

#include "sluice/limiters/shared_sliding_window.hpp"
#include "sluice/limiters/sliding_window.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using test::for_each_store;

namespace {

/// Refused for exactly `wait`, by the block; admitted at its end.
template <class Limiter>
void check_blocked(const Limiter& limiter, VirtualClock& clock, Span wait) {
  const auto refused = limiter.try_acquire("k");
  CHECK_FALSE(refused.allowed);
  CHECK(refused.part == limiter.windows().size());
  CHECK(refused.retry_after == wait);
  CHECK(refused.remaining == 0);
  CHECK(limiter.peek("k").retry_after == wait);
  CHECK(limiter.peek("k", 0).retry_after == wait);
  CHECK(limiter.peek("k", 0).remaining == 0);
  clock.advance(wait - 1us);
  CHECK(limiter.try_acquire("k").retry_after == 1us);
  clock.advance(1us);
  CHECK(limiter.peek("k").allowed);
}

}  // namespace

TEST_CASE("a blocked key admits nothing for the span, and goes on as its log says",
          "[sliding_window][block]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    for (const std::vector<WindowLimit>& windows :
         {std::vector<WindowLimit>{{5, 5s}}, {{5, 5s}, {9, 60s}}, {{5, 5s}, {9, 60s}, {99, 1h}}}) {
      const SlidingWindow limiter(store, "w" + std::to_string(windows.size()), windows);
      CHECK(limiter.try_acquire("k", 2).allowed);
      clock.advance(1s);
      CHECK(limiter.try_acquire("k", 2).allowed);
      const Decision blocked = limiter.block("k", 3s);
      CHECK(blocked.allowed);
      CHECK(blocked.remaining == 0);
      CHECK(blocked.retry_after == 0s);
      CHECK(limiter.remaining("k")[0] == 1);
      check_blocked(limiter, clock, 3s);
      CHECK(limiter.try_acquire("k", 2).retry_after == 1s);  // as if there had been none
      CHECK(limiter.try_acquire("k", 1).allowed);
      CHECK(limiter.remaining("k")[0] == 0);
      clock.advance(1s);
      CHECK(limiter.try_acquire("k", 2).allowed);
      CHECK(limiter.remaining("k")[0] == 0);
    }
  });
}

TEST_CASE("a key that was never asked can be blocked, and has all its units afterwards",
          "[sliding_window][block]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{5, 5s}, {65'536, 60s}});
    const Decision blocked = limiter.block("k", 10s);
    CHECK(limiter.remaining("k") == std::vector<Word>{5, 65'536});
    CHECK(blocked.reset_after == 10s);
    check_blocked(limiter, clock, 10s);
    CHECK(limiter.try_acquire("k", 5).remaining == 0);
    CHECK(limiter.remaining("k") == std::vector<Word>{0, 65'531});
    CHECK(limiter.try_acquire("k").retry_after == 5s);
  });
}

TEST_CASE("a later end of a block stays, a shorter one and none change nothing",
          "[sliding_window][block]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{5, 5s}});
    CHECK(limiter.block("k", 0s).remaining == 5);
    CHECK(limiter.try_acquire("k").allowed);
    limiter.block("k", 10s);
    clock.advance(4s);
    limiter.block("k", 5s);
    limiter.block("k", 0s);
    CHECK(limiter.peek("k").retry_after == 6s);
    limiter.block("k", 7s);
    CHECK(limiter.peek("k").retry_after == 7s);
    limiter.reset("k");
    CHECK(limiter.try_acquire("k", 5).allowed);

    std::error_code error;
    for (const Span wrong : {Span{-1}, SlidingWindow::max_block + 1us, Span::min(), Span::max()}) {
      CHECK_FALSE(limiter.block("k", wrong, error).allowed);
      CHECK(error == Errc::invalid_argument);
    }
    CHECK_THROWS_AS(limiter.block("k", -1us), std::system_error);
    limiter.block("k", SlidingWindow::max_block);
    CHECK(limiter.peek("k").retry_after == SlidingWindow::max_block);
    CHECK(limiter.reserve("k", 1, SlidingWindow::max_block).ready_at() ==
          clock.now() + SlidingWindow::max_block);
  });
}

TEST_CASE("a block is kept for longer than the windows need their log", "[sliding_window][block]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{5, 1s}});
    limiter.block("fresh", 1h);
    CHECK(limiter.try_acquire("spent", 5).allowed);
    limiter.block("spent", 1h);
    limiter.block("spent", 1s);
    clock.advance(1h - 1s);
    for (int i = 0; i < 1'500; ++i)
      static_cast<void>(limiter.try_acquire("other" + std::to_string(i)));
    for (const char* const key : {"fresh", "spent"}) CHECK(limiter.peek(key).retry_after == 1s);
    limiter.reward("spent", 5);
    clock.advance(1s - 1us);
    CHECK(limiter.peek("spent").retry_after == 1us);
  });
}

TEST_CASE("the later of block and windows decides, and is named", "[sliding_window][block]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{2, 5s}, {3, 60s}});
    CHECK(limiter.try_acquire("k", 2).allowed);
    limiter.block("k", 4s);
    CHECK(limiter.try_acquire("k").retry_after == 5s);
    CHECK(limiter.try_acquire("k").part == 0);
    limiter.block("k", 6s);
    CHECK(limiter.try_acquire("k").retry_after == 6s);
    CHECK(limiter.try_acquire("k").part == 2);
    CHECK(limiter.peek("k", 2).retry_after == 60s);
    CHECK(limiter.peek("k", 2).part == 1);
    clock.advance(6s);
    CHECK(limiter.try_acquire("k").allowed);
  });
}

TEST_CASE("what is reserved behind a block begins at its end, and cancelled leaves it standing",
          "[sliding_window][block]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{2, 5s}, {4, 60s}});
    auto before = limiter.reserve("k", 2, 0s);
    auto waits = limiter.reserve("k", 1, 10s);
    CHECK(waits.retry_after == 5s);
    limiter.block("k", 20s);
    CHECK(limiter.cancel("k", waits) == 1);  // what was promised stays until it is given back
    CHECK(limiter.peek("k").retry_after == 20s);
    CHECK(limiter.refund("k", before, 1) == 1);
    CHECK(limiter.peek("k").retry_after == 20s);

    CHECK_FALSE(limiter.reserve("k", 1, 20s - 1us).allowed);
    auto first = limiter.reserve("k", 2, 20s);
    CHECK(first.retry_after == 20s);
    auto second = limiter.reserve("k", 1, 60s);
    CHECK(second.retry_after == 25s);
    CHECK(limiter.cancel("k", second) == 1);
    CHECK(limiter.cancel("k", first) == 2);
    CHECK(limiter.remaining("k") == std::vector<Word>{1, 3});
    check_blocked(limiter, clock, 20s);
    CHECK(limiter.try_acquire("k", 2).allowed);

    limiter.block("k", 5s);
    const Settlement more = limiter.settle("k", before, 2);
    CHECK(more.charged == 1);
    CHECK(limiter.peek("k", 1).retry_after == 40s);  // as if the fourth of a minute
  });
}

TEST_CASE("a block stands under other limits and while a log grows", "[sliding_window][block]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow before(store, "w", {{30, 5s}, {400, 1h}});
    const SlidingWindow after(store, "w", {{40, 5s}, {900, 1h}});
    CHECK(before.try_acquire("k", 30).allowed);
    after.block("k", 10s);
    CHECK(before.peek("k").part == 2);
    CHECK(before.peek("k").retry_after == 10s);
    const auto held = after.reserve("k", 4, 20s);
    CHECK(held.allowed);
    CHECK(held.retry_after == 10s);
    before.block("k", 30s);
    check_blocked(after, clock, 30s);
    after.block("k", 20s);
    check_blocked(before, clock, 20s);
    CHECK(after.try_acquire("k", 35).remaining == 5);
    CHECK(after.remaining("k") == std::vector<Word>{5, 831});
    CHECK(after.peek("k", 6).retry_after == 5s);
  });
}

TEST_CASE("a clock set back by a minute leaves a block standing, by more it ends it",
          "[sliding_window][block]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const SlidingWindow limiter(*store, "w", {{5, 5s}});
  limiter.block("k", 10s);
  const Time end = clock.now() + 10s;
  clock.set(clock.now() - 1min);
  CHECK(limiter.peek("k").retry_after == 70s);
  limiter.block("k", 11s);  // from the log's own time
  CHECK(limiter.peek("k").retry_after == end - clock.now() + 1s);
  clock.set(clock.now() - 1us);
  CHECK(limiter.try_acquire("k").allowed);
  limiter.block("k", 10s);
  CHECK(limiter.peek("k").retry_after == 10s);
}

TEST_CASE("a block is a step of a plan, and a plan that a block refuses charges nothing",
          "[sliding_window][block][composing]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{5, 5s}});
    const TokenBucket bucket(store, "b", Quota::per_hour(5));
    CHECK(decide(store, {bucket.acquire_step("k"), limiter.block_step("k", 2s)}).allowed);
    const Decision refused = decide(store, {bucket.acquire_step("k"), limiter.acquire_step("k")});
    CHECK(refused.step == 1);
    CHECK(refused.retry_after == 2s);
    CHECK(bucket.peek("k").remaining == 4);
    CHECK(decide(store, {bucket.acquire_step("k"), limiter.reward_step("k", 1)}).allowed);
    clock.advance(2s);
    CHECK(decide(store, {bucket.acquire_step("k"), limiter.acquire_step("k")}).allowed);
    CHECK(bucket.peek("k").remaining == 2);
  });
}

TEST_CASE("who waits for a blocked key is granted at the block's end", "[sliding_window][block]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const VirtualClock::AutoAdvance moving(clock);
    const SlidingWindow limiter(store, "w", {{5, 5s}});
    const SharedSlidingWindow rate(store, "rate");
    rate.configure("t", RateType::overall, 5, 5s, SpentUnits::forgotten);
    limiter.block("k", 7s);
    rate.block("t", 9s);
    const Time start = clock.now();
    CHECK_FALSE(limiter.acquire("k", 1, 6s).allowed);
    CHECK(limiter.acquire("k", 1, 7s).allowed);
    CHECK(clock.now() == start + 7s);
    CHECK(rate.acquire("t", 1, 1min).allowed);
    CHECK(clock.now() == start + 9s);
  });
}

TEST_CASE("a reward forgets the newest units, in all windows", "[sliding_window][reward]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{4, 5s}, {6, 60s}});
    CHECK(limiter.reward("k", 3).remaining == 4);
    CHECK(limiter.try_acquire("k", 2).allowed);
    clock.advance(3s);
    CHECK(limiter.try_acquire("k", 2).allowed);
    CHECK(limiter.peek("k").retry_after == 2s);
    const Decision one = limiter.reward("k", 1);
    CHECK(limiter.remaining("k") == std::vector<Word>{1, 3});
    CHECK(one.remaining == 1);
    CHECK(one.reset_after == 60s);
    CHECK(limiter.remaining("k") == std::vector<Word>{1, 3});
    CHECK(limiter.peek("k", 2).retry_after == 2s);
    CHECK(limiter.reward("k", 2).remaining == 3);
    CHECK(limiter.remaining("k") == std::vector<Word>{3, 5});
    CHECK(limiter.peek("k", 0).reset_after == 57s);
    CHECK(limiter.reward("k", word_limit).remaining == 4);
    CHECK(limiter.remaining("k") == std::vector<Word>{4, 6});
    CHECK(limiter.try_acquire("k", 4).remaining == 0);
    CHECK(limiter.remaining("k") == std::vector<Word>{0, 2});

    std::error_code error;
    for (const Word wrong : {Word{-1}, word_limit + 1}) {
      limiter.reward("k", wrong, error);
      CHECK(error == Errc::invalid_cost);
    }
    CHECK_THROWS_AS(limiter.reward("k", -1), std::system_error);
    CHECK(limiter.peek("k", 0).remaining == 0);
  });
}

TEST_CASE("a reward takes reserved units first", "[sliding_window][reward]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{2, 5s}});
    CHECK(limiter.try_acquire("k", 2).allowed);
    CHECK(limiter.reserve("k", 2, 5s).allowed);
    CHECK(limiter.peek("k").retry_after == 10s);
    limiter.reward("k", 1);
    CHECK(limiter.peek("k").retry_after == 5s);
    limiter.reward("k", 1);
    CHECK(limiter.peek("k").retry_after == 5s);
    clock.advance(5s);
    CHECK(limiter.try_acquire("k", 2).allowed);
    CHECK(limiter.reward("k", 2).remaining == 2);
    CHECK(limiter.try_acquire("k", 2).allowed);
  });
}

TEST_CASE("a shared sliding window is blocked for all clients and rewarded, by the setting of now",
          "[shared_sliding_window][block][reward]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow here(store, "rate");
    const SharedSlidingWindow there(store, "rate");
    std::error_code error;
    here.block("t", 1s, error);
    CHECK(error == Errc::not_configured);
    CHECK_THROWS_AS(here.reward("t", 1), std::system_error);
    here.configure("t", RateType::overall, 5, 10s, SpentUnits::forgotten);
    CHECK(here.try_acquire("t", 5).allowed);
    CHECK(there.reward("t", 2).remaining == 2);
    CHECK(here.peek("t").remaining == 2);
    there.configure("t", RateType::overall, 6, 10s);
    const Decision blocked = here.block("t", 4s);
    CHECK(blocked.allowed);
    CHECK(blocked.remaining == 0);
    CHECK(blocked.step == 0);
    CHECK(there.peek("t").remaining == 0);
    CHECK(there.try_acquire("t").retry_after == 4s);
    CHECK(there.try_acquire("t").part == 1);
    CHECK(there.peek("t", 4).retry_after == 10s);
    CHECK(there.peek("t", 4).part == 0);
    here.configure("t", RateType::overall, 7, 10s);
    clock.advance(4s - 1us);
    CHECK(there.peek("t").retry_after == 1us);
    clock.advance(1us);
    CHECK(there.try_acquire("t", 4).allowed);
    CHECK(here.reward("t", 1000).remaining == 7);

    here.block("t", SharedSlidingWindow::max_block);
    CHECK(here.peek("t").retry_after == SharedSlidingWindow::max_block);
    here.configure("t", RateType::overall, 5, 10s, SpentUnits::forgotten);  // another log
    CHECK(there.try_acquire("t", 5).allowed);
    for (const Span wrong : {Span{-1}, SharedSlidingWindow::max_block + 1us}) {
      here.block("t", wrong, error);
      CHECK(error == Errc::invalid_argument);
    }
    here.reward("t", -1, error);
    CHECK(error == Errc::invalid_cost);
    CHECK_THROWS_AS(here.block("t", -1us), std::system_error);
    CHECK(here.peek("t").remaining == 0);
  });
}

TEST_CASE("of a rate for each client only the one that asks is blocked and rewarded",
          "[shared_sliding_window][block][reward]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SharedSlidingWindow one(store, "rate", {.client = "one"});
    const SharedSlidingWindow two(store, "rate", {.client = "two"});
    one.configure("t", RateType::per_client, 5, 10s, SpentUnits::forgotten);
    CHECK(one.try_acquire("t", 4).allowed);
    CHECK(two.try_acquire("t", 4).allowed);
    one.block("t", 3s);
    two.reward("t", 4);
    CHECK(one.peek("t").retry_after == 3s);
    CHECK(two.peek("t").remaining == 5);
    one.reward("t", 9);
    CHECK(one.peek("t", 5).retry_after == 3s);
  });
}

TEST_CASE("the steps of a shared sliding window's block and reward serve in plans",
          "[shared_sliding_window][block][reward][composing]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SharedSlidingWindow rate(store, "rate");
    const TokenBucket user(store, "user", Quota::per_hour(3));
    std::error_code error;
    CHECK(rate.block_steps("t", 1s, error).size() == 0);
    CHECK(error == Errc::not_configured);
    CHECK_THROWS_AS(rate.block_steps("t", 1s), std::system_error);
    CHECK_THROWS_AS(rate.reward_steps("t", 1), std::system_error);
    rate.configure("t", RateType::overall, 5, 10s, SpentUnits::forgotten);
    CHECK(rate.try_acquire("t", 5).allowed);
    const auto plan = [&](const SharedSlidingWindowSteps& steps) {
      return decide(store, std::array{user.acquire_step("alice"), steps[0], steps[1]}, error);
    };
    CHECK(plan(rate.reward_steps("t", 100)).allowed);
    CHECK(rate.peek("t").remaining == 5);
    CHECK(plan(rate.block_steps("t", 4s)).allowed);
    CHECK(rate.peek("t").retry_after == 4s);
    const auto stale = rate.block_steps("t", 8s);
    rate.configure("t", RateType::overall, 9, 10s);
    plan(stale);
    CHECK(error == Errc::config_changed);
    CHECK(rate.peek("t").retry_after == 4s);
    CHECK(user.peek("alice").remaining == 1);
  });
}
