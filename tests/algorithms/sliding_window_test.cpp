// How sliding windows behave, in exact integers, on every store. Threading: single-threaded.
#include "sluice/limiters/sliding_window.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "sluice/sluice.hpp"
#include "src/testing/model.hpp"
#include "tests/catch.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using test::for_each_store;

namespace {

using Left = std::vector<Word>;

std::string why(const std::vector<WindowLimit>& windows) {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  return test::refusal([&] { SlidingWindow(*store, "w", windows); });
}

}  // namespace

TEST_CASE("a request under an id is charged once, and tells every window each time",
          "[sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{5, 5s}, {20, 60s}});
    const RequestId id{1, 2};
    for (int i = 0; i < 3; ++i, clock.advance(1s)) {
      CHECK(limiter.try_acquire("k", 2, id).remaining == 3);
      CHECK(limiter.remaining("k") == std::vector<Word>{3, 18});
    }
    std::error_code error;
    CHECK(limiter.try_acquire("k", 2, id, error).remaining == 3);
    CHECK(limiter.remaining("k") == std::vector<Word>{3, 18});
    CHECK(limiter.try_acquire("k", 4, RequestId{3, 4}, error).remaining == 3);
    CHECK(limiter.remaining("k") == std::vector<Word>{3, 18});
    CHECK_FALSE(error);
    CHECK(limiter.try_acquire("k", error).remaining == 2);
    CHECK(limiter.remaining("k") == std::vector<Word>{2, 17});
    CHECK_THROWS_AS(limiter.try_acquire("k", 6, RequestId{5, 6}), std::system_error);
  });
}

TEST_CASE("a window that cannot be is an error of every call, and charges nothing",
          "[sliding_window][C-006][C-007]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SlidingWindow sound(store, "w", {{5, 1s}});
    for (const Word span : {Word{0}, Word{-1}, Word{-500'000}, SlidingWindowRule::max_span + 1}) {
      const std::array<Word, 4> table{5, 1'000'000, 5, span};
      for (const Operation* row : {&sliding_window_acquire, &sliding_window_peek}) {
        const Step step{row, {"k", "w"}, {5, 1, 0, std::max(span, table[1])}, nullptr, table};
        std::error_code error;
        CHECK_FALSE(decide(store, step, error).allowed);
        CHECK(error == Errc::invalid_argument);
      }
      CHECK(sound.peek("k").remaining == 5);
    }
  });
}

TEST_CASE("neither infinity nor what is no number gets into a rule", "[sliding_window][C-010]") {
  // No span, limit or cost is made of a floating-point number.
  static_assert(!std::is_constructible_v<Cost, double>);
  static_assert(!std::is_constructible_v<Cost, float>);
  static_assert(!std::is_convertible_v<std::chrono::duration<double>, Span>);
  static_assert(!std::is_convertible_v<double, Span>);
  // Their bits, sent as the whole numbers that they are not, are an error in every place.
  for_each_store([](Store& store, VirtualClock& clock) {
    const std::array<std::uint64_t, 5> patterns{0x7ff0'0000'0000'0000, 0xfff0'0000'0000'0000,
                                                0x7ff8'0000'0000'0000, 0xfff8'0000'0000'0000,
                                                0x7fef'ffff'ffff'ffff};
    const auto refused = [&](const Step& step) {
      std::error_code error;
      CHECK_FALSE(decide(store, step, error).allowed);
      INFO(testing::detail::describe(step));
      CHECK(error);
      CHECK(error == Failure::not_executed);
    };
    const Key key{"k", "any"};
    const std::vector<Word> windows{5, 1'000'000, 9, 60'000'000};
    for (const std::uint64_t bits : patterns) {
      const auto pattern = static_cast<Word>(bits);
      for (const Operation* row : {&sliding_window_acquire, &sliding_window_peek}) {
        const Arguments sound{5, 1, 0, 60'000'000};
        for (std::size_t place = 1; place < row->argument_count; ++place) {  // 0 is only told
          Arguments args = sound;
          args[place] = pattern;
          refused({row, key, args, nullptr, windows});
        }
        for (std::size_t place = 0; place < windows.size(); ++place) {
          std::vector<Word> table = windows;
          table[place] = pattern;
          refused({row, key, sound, nullptr, table});
        }
      }
      // As the cost of every rule that spends.
      for (const testing::detail::Generator& generator : testing::detail::generators()) {
        if (generator.spender == nullptr) continue;
        testing::detail::Configuration config = generator.spender->frozen(3);
        generator.spender->ask(config.args, pattern);
        refused({generator.spender->acquire, key, config.args, nullptr, config.table});
        refused({generator.spender->peek, key, config.args, nullptr, config.table});
      }
    }
    // Nothing was written: the key is nobody's, or another kind of rule could not have it.
    const UtilizationShedder shedder(store, "any");
    CHECK(shedder.sample({"k"}, 0.5));
    for (const double bad :
         {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
          std::numeric_limits<double>::quiet_NaN()}) {
      std::error_code error;
      shedder.sample({"k"}, bad, error);
      CHECK(error == Errc::invalid_argument);
    }
    CHECK(shedder.report({"k"}).last_sample == clock.now());
  });
}

TEST_CASE("what was admitted at the first instant of all time counts, and leaves its window",
          "[sliding_window][C-011]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    for (const Time start : {to_time(0), to_time(1), to_time(999'999)}) {
      CAPTURE(to_word(start));
      const auto check = [&](const auto& limiter, Span back_after) {
        clock.set(start);
        CHECK(limiter.try_acquire("k", 3).allowed);
        CHECK_FALSE(limiter.try_acquire("k").allowed);
        clock.advance(back_after - 1us);
        CHECK(limiter.try_acquire("k").retry_after == 1us);
        clock.advance(1us);
        CHECK(limiter.try_acquire("k").allowed);
        clock.set(start);  // as it was before
        limiter.reset("k");
      };
      const std::string name = std::to_string(to_word(start));
      check(SlidingWindow(store, "w" + name, {{3, 10s}}), 10s);
      check(SlidingWindow(store, "v" + name, {{3, 10s}, {4, 10min}}), 10s);
      check(TokenBucket(store, "b" + name, Quota::per(3, 30s).burst(3)), 10s);
      check(FixedWindow(store, "f" + name, 3, Calendar::every(10s)),
            Span{10s} - start.time_since_epoch());
      const ConcurrencyLimiter jobs(store, "j" + name, 1, {.ttl = 10s});
      clock.set(start);
      Lease lease = jobs.try_acquire("k");
      CHECK_FALSE(jobs.try_acquire("k").decision().allowed);
      clock.advance(10s);
      CHECK(lease.lost());
      CHECK(jobs.try_acquire("k").decision().allowed);
    }
  });
}

TEST_CASE("windows that cannot be are refused where they are built",
          "[sliding_window][C-007][C-010]") {
  CHECK(
      why({{5, 0s}}) ==
      "sliding windows: window 0: the span must be 1 us to 366 days (31622400000000 us), got 0 us");
  CHECK(why({{5, 1s}, {7, -2us}})
            .ends_with("window 1: the span must be 1 us to 366 days "
                       "(31622400000000 us), got -2 us"));
  CHECK(why({{5, 367 * 24h}}).ends_with("got 31708800000000 us"));
  CHECK(why({{-1, 1s}}) ==
        "sliding windows: window 0: the limit must be 0 to 1099511627776, or unlimited, got -1");
  CHECK(why({{(Word{1} << 40) + 1, 1s}}).ends_with("got 1099511627777"));
  CHECK(why({}) == "sliding windows: 1 to 8 windows, got 0");
  CHECK(why(std::vector<WindowLimit>(9, {1, 1s})) == "sliding windows: 1 to 8 windows, got 9");
  CHECK(why({{5, 1s}, {6, 2s}, {7, 1s}}) ==
        "sliding windows: window 2: the span 1 s is that of window 0; each span may stand once");
  CHECK(why({{Word{1} << 40, 366 * 24h}}) == "nothing was thrown");
}

TEST_CASE(
    "all keys of a limiter and a tag are one slot, and another kind of state is a typed error",
    "[sliding_window][C-013][C-014]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SlidingWindow limiter(store, "w", {{2, 1s}, {5, 60s}});
    const SlidingWindow one(store, "w", {{2, 1s}});
    const SlidingWindowCounter other(store, "w", {1, 1s});
    CHECK(render(limiter.acquire_step("k").key) == "{k}:w:1s+1min,grants");
    Step stranger = other.acquire_step("k");
    stranger.key = one.acquire_step("k").key;
    CHECK(decide(store, {stranger}).allowed);
    CHECK(test::error_of([&](auto& e) { return one.try_acquire("k", e); }) == Errc::wrong_kind);
    CHECK(limiter.try_acquire("k").allowed);
    CHECK(other.peek("k", 0).remaining == 1);
  });
}

TEST_CASE("windows that can never bind are told", "[sliding_window][C-015]") {
  using Texts = std::vector<std::string>;
  const auto told = [](std::vector<WindowLimit> windows) {
    return SlidingWindow::redundant_windows(windows);
  };
  CHECK(told({{25, 5s}, {300, 60s}}) ==
        Texts{"window 1 (300 in 1 min) can never bind: window 0 (25 in 5 s) admits at most 300 in "
              "1 min"});
  CHECK(told({{25, 5s}, {299, 60s}}).empty());
  CHECK(told({{25, 5s}, {300, 300s}}).empty());
  CHECK(told({{10, 2s}, {15, 3s}, {24, 5s}}).empty());
  CHECK(told({{10, 2s}, {15, 3s}, {30, 5s}}).size() == 1);
  CHECK(told({{7, 1s}}).empty());
  // Whoever bounds the span, or the rest of it, is named.
  CHECK(told({{25, 5s}, {200, 60s}, {10, 7s}}) ==
        Texts{"window 0 (25 in 5 s) can never bind: window 2 (10 in 7 s), which is wider, admits "
              "at most 10 in 5 s",
              "window 1 (200 in 1 min) can never bind: window 2 (10 in 7 s) admits at most 90 in "
              "1 min"});
  CHECK(told({{25, 11s}, {20, 10s}, {5, 2s}}) ==
        Texts{"window 0 (25 in 11 s) can never bind: window 1 (20 in 10 s) and window 2 (5 in 2 s) "
              "admit at most 25 in 11 s"});
}

TEST_CASE("a window beside a wider one with a lower limit is told, and harms nobody",
          "[sliding_window]") {
  using Texts = std::vector<std::string>;
  const std::vector<WindowLimit> windows{{10, 5s}, {5, 60s}};
  const Texts texts{
      "window 0 (10 in 5 s) can never bind: window 1 (5 in 1 min), which is wider, "
      "admits at most 5 in 5 s"};
  CHECK(SlidingWindow::redundant_windows(windows) == texts);
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const SlidingWindow limit(*store, "n", windows);
  CHECK(limit.redundant_windows() == texts);
  for (int i = 0; i < 5; ++i) CHECK(limit.try_acquire("k").allowed);
  CHECK(limit.try_acquire("k").retry_after == 60s);
}

TEST_CASE("a reward that cannot be is an error, and a reservation may wait for the longest block",
          "[sliding_window][block][reward]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{5, 5s}});
    std::error_code error;
    for (const Word wrong : {Word{-1}, word_limit + 1}) {
      limiter.reward("k", wrong, error);
      CHECK(error == Errc::invalid_cost);
    }
    CHECK_THROWS_AS(limiter.reward("k", -1), std::system_error);
    CHECK(limiter.try_acquire("k", 3).remaining == 2);
    CHECK(limiter.reward("k", word_limit).remaining == 5);
    limiter.block("k", SlidingWindow::max_block);
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

TEST_CASE("limits may be 2^40, in few grants or many", "[sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const Word most = Word{1} << 40;
    const SlidingWindow limiter(store, "w", {{most, 60s}});
    CHECK(limiter.try_acquire("k", most - 5).remaining == 5);
    clock.advance(1s);
    Reservation rest = limiter.reserve("k", 5);
    CHECK(limiter.try_acquire("k", 6).retry_after == 59s);
    CHECK(limiter.settle("k", rest, most).charged == most - 5);
    CHECK(limiter.try_acquire("k", most).retry_after == 60s);
    clock.advance(59s);
    CHECK(limiter.remaining("k") == Left{0});
    clock.advance(1s);
    CHECK(limiter.try_acquire("k", most).remaining == 0);
  });
}

TEST_CASE("the 65,537th grant waits until the first leaves the longest window",
          "[sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{1'000'000, 60s}, {2'000'000, 10min}});
    const Time start = clock.now();
    for (int i = 0; i < 65'535; ++i) {
      REQUIRE(limiter.try_acquire("k").allowed);
      clock.advance(1us);
    }
    CHECK(limiter.remaining("k") == Left{934'465, 1'934'465});
    const Decision last = limiter.try_acquire("k");
    CHECK(last.allowed);
    CHECK(last.remaining == 0);
    clock.set(start + 30s);
    CHECK(limiter.remaining("k") == Left{934'464, 0});
    for (const Span wait : {0s, 3'600s}) {
      const Decision refused = limiter.reserve("k", 1, wait);
      CHECK_FALSE(refused.allowed);
      CHECK(refused.part == 1);
      CHECK(refused.retry_after == 570s);
    }
    CHECK(limiter.try_acquire("k", 0).allowed);
    clock.set(start + 10min - 1us);
    CHECK(limiter.try_acquire("k").retry_after == 1us);
    clock.advance(1us);
    Reservation next = limiter.reserve("k", 7);
    CHECK(next.allowed);
    CHECK(limiter.try_acquire("k").retry_after == 1us);
    CHECK(limiter.cancel("k", next) == 7);
    CHECK(limiter.try_acquire("k").allowed);
    clock.advance(1us);
    CHECK(limiter.remaining("k") == Left{999'999, 2'000'000 - 65'535});
  });
}
