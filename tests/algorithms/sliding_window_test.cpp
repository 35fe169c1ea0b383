// How sliding windows behave, in exact integers, on every store. Threading: single-threaded.
#include "sluice/limiters/sliding_window.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "sluice/sluice.hpp"
#include "src/testing/model.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using test::for_each_store;

namespace {

std::string why(const std::vector<WindowLimit>& windows) {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  try {
    const SlidingWindow limiter(*store, "w", windows);
    return "accepted";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

std::error_code error_of(const SlidingWindow& limiter, Cost cost) {
  std::error_code error;
  static_cast<void>(limiter.try_acquire("k", cost, error));
  return error;
}

}  // namespace

TEST_CASE("a window is charged only if every window admits", "[sliding_window][C-001]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{5, 5s}, {2, 60s}});
    CHECK(limiter.try_acquire("k").remaining == 1);
    CHECK(limiter.remaining("k") == std::vector<Word>{4, 1});
    CHECK(limiter.try_acquire("k").remaining == 0);
    CHECK(limiter.remaining("k") == std::vector<Word>{3, 0});
    for (int i = 0; i < 3; ++i) {
      const auto refused = limiter.try_acquire("k");
      CHECK_FALSE(refused.allowed);
      CHECK(refused.part == 1);
      CHECK(refused.retry_after == 60s);
      CHECK(refused.remaining == 0);
      CHECK(limiter.remaining("k") == std::vector<Word>{3, 0});
    }
    clock.advance(5s);
    CHECK(limiter.remaining("k") == std::vector<Word>{5, 0});
  });
}

TEST_CASE("polling at the short window does not starve the long one", "[sliding_window][C-002]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{1, 5s}, {10, 60s}});
    CHECK(limiter.try_acquire("k").allowed);
    for (int i = 0; i < 5; ++i) {
      const auto refused = limiter.try_acquire("k");
      CHECK(refused.part == 0);
      CHECK(limiter.remaining("k") == std::vector<Word>{0, 9});
    }
    int admitted = 1;
    for (int second = 0; second < 55; ++second) {
      clock.advance(1s);
      admitted += limiter.try_acquire("k").allowed ? 1 : 0;
    }
    CHECK(admitted == 10);
  });
}

TEST_CASE("calls in one tick get the limit and no more", "[sliding_window][C-003][C-012]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{3, 1s}});
    int admitted = 0;
    for (int i = 0; i < 50; ++i) admitted += limiter.try_acquire("k").allowed ? 1 : 0;
    CHECK(admitted == 3);
    clock.advance(1s - 1us);
    CHECK(limiter.try_acquire("k").retry_after == 1us);
    clock.advance(1us);
    CHECK(limiter.try_acquire("k", 3).allowed);
  });
}

TEST_CASE("a limit lowered under live state refuses until the window has room",
          "[sliding_window][C-004]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow before(store, "w", {{25, 5s}});
    for (int i = 0; i < 20; ++i) {
      CHECK(before.try_acquire("k").allowed);
      clock.advance(100ms);
    }
    const SlidingWindow after(store, "w", {{10, 5s}});
    const auto refused = after.try_acquire("k");
    CHECK_FALSE(refused.allowed);
    CHECK(refused.remaining == 0);
    CHECK(refused.retry_after == 5s - 2s + 1s);  // when the eleventh newest, of 1.0 s, has left
    clock.advance(refused.retry_after - 1us);
    CHECK_FALSE(after.try_acquire("k").allowed);
    clock.advance(1us);
    CHECK(after.try_acquire("k").allowed);
  });
}

TEST_CASE("a limit raised under live state admits the difference at once", "[sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow before(store, "w", {{3, 5s}, {4, 60s}});
    CHECK(before.try_acquire("k", 2).allowed);
    clock.advance(1s);
    CHECK(before.try_acquire("k", 1).allowed);
    const SlidingWindow after(store, "w", {{5, 5s}, {8, 60s}});
    CHECK(after.remaining("k") == std::vector<Word>{2, 5});
    CHECK(after.try_acquire("k", 2).allowed);
    CHECK(after.try_acquire("k", 1).retry_after == 4s);
    clock.advance(4s);
    CHECK(after.try_acquire("k", 2).remaining == 0);
    CHECK(after.remaining("k") == std::vector<Word>{0, 1});
    CHECK(before.remaining("k") == std::vector<Word>{0, 0});
  });
}

TEST_CASE("the order of the windows is that of the answers, and the log has none",
          "[sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow three(store, "w", {{2, 4s}, {3, 10s}, {5, 60s}});
    const SlidingWindow turned(store, "w", {{5, 60s}, {3, 10s}, {2, 4s}});
    CHECK(three.try_acquire("k", 2).remaining == 0);
    CHECK(three.remaining("k") == std::vector<Word>{0, 1, 3});
    CHECK(turned.try_acquire("k").part == 2);
    clock.advance(4s);
    CHECK(turned.try_acquire("k").remaining == 0);
    CHECK(turned.remaining("k") == std::vector<Word>{2, 0, 1});
    CHECK(three.try_acquire("k").part == 1);
    clock.advance(6s);
    CHECK(three.remaining("k") == std::vector<Word>{2, 2, 2});
  });
}

TEST_CASE("other spans are another count, and the bound of both is the sum of their limits",
          "[sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow old(store, "w", {{17, 55s}});
    const SlidingWindow young(store, "w", {{8, 33s}});
    CHECK(old.try_acquire("k", 17).remaining == 0);
    CHECK(young.try_acquire("k", 8).remaining == 0);
    CHECK(old.try_acquire("k").retry_after == 55s);
    CHECK(young.try_acquire("k").retry_after == 33s);
    old.block("k", 1h);
    young.reset("k");
    CHECK(young.peek("k").remaining == 8);
    clock.advance(55s);
    CHECK(old.peek("k").retry_after == 1h - 55s);
  });
}

TEST_CASE("what remains is told after the grant", "[sliding_window][C-005]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SlidingWindow limiter(store, "w", {{3, 1s}});
    for (const Word remaining : {2, 1, 0}) CHECK(limiter.try_acquire("k").remaining == remaining);
  });
}

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

TEST_CASE("a window may have any length down to a microsecond", "[sliding_window][C-006]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{1, 500ms}, {2, 1500001us}});
    CHECK(limiter.try_acquire("k").allowed);
    clock.advance(500ms);
    CHECK(limiter.try_acquire("k").allowed);
    CHECK(limiter.try_acquire("k").retry_after == 1000001us);
    const SlidingWindow tick(store, "tick", {{1, 1us}});
    CHECK(tick.try_acquire("k").allowed);
    CHECK(tick.try_acquire("k").retry_after == 1us);
    clock.advance(1us);
    CHECK(tick.try_acquire("k").allowed);
  });
}

TEST_CASE("a window that is no whole number of milliseconds counts to its last microsecond",
          "[sliding_window][C-006]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    for (const Span span :
         std::initializer_list<Span>{1us, 999us, 1'001us, 500ms, 999'999us, 1'500'001us}) {
      CAPTURE(span.count());
      const SlidingWindow limiter(store, "w" + std::to_string(span.count()), {{2, span}});
      for (int round = 0; round < 3; ++round) {
        CHECK(limiter.try_acquire("k", 2).allowed);
        CHECK(limiter.try_acquire("k").retry_after == span);
        clock.advance(span - 1us);
        CHECK(limiter.try_acquire("k").retry_after == 1us);  // the state is still there
        clock.advance(1us);
      }
    }
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
  CHECK(why({{Word{1} << 40, 366 * 24h}}) == "accepted");
}

TEST_CASE("a cost that can never be admitted is an error, and changes nothing",
          "[sliding_window]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SlidingWindow limiter(store, "w", {{5, 1s}, {3, 10s}});
    CHECK(error_of(limiter, 4) == Errc::cost_exceeds_capacity);
    CHECK(error_of(limiter, -1) == Errc::invalid_cost);
    std::error_code error;
    static_cast<void>(limiter.reserve("k", 1, -1us, error));
    CHECK(error == Errc::invalid_argument);
    static_cast<void>(limiter.reserve("k", 1, 367 * 24h, error));
    CHECK(error == Errc::invalid_argument);
    CHECK(limiter.try_acquire("k", 0).allowed);
    CHECK(limiter.try_acquire("k", 3).remaining == 0);
    CHECK(limiter.remaining("k") == std::vector<Word>{2, 0});
    CHECK(limiter.try_acquire("k", 0).allowed);
  });
}

TEST_CASE("a clock that was set back a little stands still for a key, and mints nothing",
          "[sliding_window][C-008][C-009]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{2, 10s}});
    CHECK(limiter.try_acquire("k").allowed);
    clock.advance(-60s);
    CHECK(limiter.try_acquire("k").allowed);
    CHECK(limiter.try_acquire("k").retry_after == 70s);
    clock.advance(70s - 1us);
    CHECK_FALSE(limiter.try_acquire("k").allowed);
    clock.advance(1us);
    CHECK(limiter.try_acquire("k", 2).allowed);
  });
}

TEST_CASE("a clock that was set back far gives one request, and then counts all as admitted now",
          "[sliding_window][C-009][C-011]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{2, 10s}, {3, 50s}});
    const Time start = clock.now();
    CHECK(limiter.try_acquire("k").allowed);
    clock.advance(20s);
    CHECK(limiter.try_acquire("k").allowed);
    clock.advance(3900s);
    CHECK(limiter.try_acquire("k", 2).allowed);
    clock.set(start + 15s);
    CHECK(limiter.peek("k", 2).allowed);
    const auto free = limiter.try_acquire("k");
    CHECK(free.allowed);
    CHECK(limiter.remaining("k") == std::vector<Word>{0, 0});
    const auto refused = limiter.try_acquire("k");
    CHECK_FALSE(refused.allowed);
    CHECK(refused.retry_after == 50s);
    clock.advance(50s - 1us);
    CHECK_FALSE(limiter.try_acquire("k").allowed);
    clock.advance(1us);
    CHECK(limiter.try_acquire("k", 2).allowed);
  });
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
    CHECK(error_of(one, 1) == Errc::wrong_kind);
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

TEST_CASE("a refusal says exactly when all windows admit the cost, and writes nothing",
          "[sliding_window][C-016]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{4, 5s}, {6, 60s}});
    CHECK(limiter.try_acquire("k", 2).allowed);
    clock.advance(3s);
    CHECK(limiter.try_acquire("k", 2).allowed);
    clock.advance(1s);
    for (int i = 0; i < 20; ++i) CHECK(limiter.try_acquire("k", 1).retry_after == 1s);
    CHECK(limiter.try_acquire("k", 3).retry_after == 56s);
    CHECK(limiter.try_acquire("k", 3).part == 1);
    CHECK(limiter.try_acquire("k", 3).reset_after == 59s);
    clock.advance(1s);
    CHECK(limiter.try_acquire("k", 2).allowed);
    CHECK(limiter.try_acquire("k", 2).retry_after == 55s);
    clock.advance(55s - 1us);
    CHECK_FALSE(limiter.try_acquire("k", 2).allowed);
    clock.advance(1us);
    CHECK(limiter.try_acquire("k", 2).allowed);
  });
}

TEST_CASE("reservations are granted in order of arrival, up to max_wait ahead",
          "[sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{2, 10s}});
    CHECK(limiter.reserve("k", 2, 0s).retry_after == 0s);
    CHECK(limiter.reserve("k", 1, 10s).retry_after == 10s);
    CHECK(limiter.reserve("k", 2, 20s).retry_after == 20s);
    const auto refused = limiter.reserve("k", 1, 20s);
    CHECK_FALSE(refused.allowed);
    CHECK(refused.retry_after == 10s);  // then it would have to wait no more than 20 s
    clock.advance(15s);
    CHECK(limiter.try_acquire("k").retry_after ==
          15s);  // one is free, but reserved ones come first
    CHECK(limiter.peek("k").remaining == 0);
    clock.advance(15s - 1us);
    CHECK_FALSE(limiter.try_acquire("k").allowed);
    clock.advance(1us);
    CHECK(limiter.try_acquire("k", 2).allowed);
  });
}

TEST_CASE("reservations can be cancelled in any order", "[sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{2, 10s}, {5, 60s}});
    CHECK(limiter.try_acquire("k", 2).allowed);
    auto first = limiter.reserve("k", 1, 30s);
    auto second = limiter.reserve("k", 2, 30s);
    CHECK(first.ready_at() == clock.now() + 10s);
    CHECK(second.ready_at() == clock.now() + 20s);
    CHECK(limiter.cancel("k", first) == 1);
    CHECK(limiter.reserve("k", 0, 30s).retry_after == 20s);  // nothing overtakes the second
    CHECK(limiter.cancel("k", second) == 2);
    CHECK(limiter.cancel("k", second) == 0);
    CHECK(limiter.reserve("k", 1, 30s).retry_after == 10s);
    clock.advance(10s);
    CHECK(limiter.remaining("k") == std::vector<Word>{1, 2});
  });
}

TEST_CASE("a cancelled wait leaves the window as full as it was", "[sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{3, 10s}});
    for (int i = 0; i < 3; ++i) {
      CHECK(limiter.try_acquire("k").allowed);
      clock.advance(1s);
    }
    Reservation waits = limiter.reserve("k", 1, 60s);
    CHECK(limiter.cancel("k", waits) == 1);
    CHECK(limiter.try_acquire("k").retry_after == 7s);
    clock.advance(7s);
    CHECK(limiter.try_acquire("k").remaining == 0);
    CHECK(limiter.try_acquire("k").retry_after == 1s);
  });
}

TEST_CASE("units that were not used come back, of each grant its own", "[sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{5, 10s}, {8, 60s}});
    Reservation grant = limiter.reserve("k", 5);
    clock.advance(1s);
    CHECK(limiter.refund("k", grant, 3) == 3);
    CHECK(limiter.remaining("k") == std::vector<Word>{3, 6});
    Reservation later = limiter.reserve("k", 1);
    CHECK(limiter.refund("k", grant, 1) == 1);
    CHECK(limiter.refund("k", later, 1) == 1);
    Reservation refused = limiter.reserve("k", 5);
    CHECK(limiter.cancel("k", refused) == 0);
    CHECK(limiter.remaining("k") == std::vector<Word>{4, 7});
    limiter.reset("k");
    CHECK(limiter.try_acquire("k", 5).remaining == 0);
    CHECK(limiter.remaining("k") == std::vector<Word>{0, 3});
  });
}

TEST_CASE("every store gives the same answers, refunds and changed limits included",
          "[sliding_window]") {
  test::Random seeds("every store gives the same answers, refunds and changed limits included");
  CAPTURE(seeds.repeat());
  const std::uint64_t seed = seeds.next();
  std::vector<std::vector<Word>> expected;
  for_each_store([&](Store& store, VirtualClock& clock) {
    SeededRng rng(seed);
    const auto below = [&](Word bound) {
      return static_cast<Word>(rng.below(static_cast<std::uint64_t>(bound)));
    };
    const bool records = expected.empty();
    const std::size_t calls = test::scaled(4'000, 200);
    std::vector<WindowLimit> windows{{3, 20us}};
    Reservation held;
    for (std::size_t i = 0; i < calls; ++i) {
      if (below(25) == 0) {
        for (WindowLimit& window : windows) window.limit = 1 + below(30);
      }
      if (below(200) == 0) {
        windows.clear();
        for (Word k = 0, count = 1 + below(5); k < count; ++k) {
          windows.push_back({1 + below(30), Span{1 + k + 8 * below(40)}});
        }
      }
      const SlidingWindow limiter(store, "w", windows);
      const Word least = std::ranges::min(windows, {}, &WindowLimit::limit).limit;
      std::vector<Word> answer;
      if (below(6) == 0) {
        answer = {limiter.refund("k", held, std::min(below(least + 1), held.granted))};
      } else {
        const Span wait{below(3) == 0 ? below(300) : 0};
        const auto d = limiter.reserve("k", below(least + 1), wait);
        answer = limiter.remaining("k");
        answer.insert(answer.end(), {d.allowed, d.part, d.remaining, d.retry_after.count(),
                                     d.reset_after.count()});
        if (d.allowed) held = d;
      }
      if (records) {
        expected.push_back(answer);
      } else {
        INFO("call " << i);
        REQUIRE(answer == expected[i]);
      }
      if (below(2) == 0) clock.advance(Span{below(below(20) == 0 ? 400 : 12)});
      if (below(400) == 0) clock.advance(-Span{below(120'000'000)});
    }
  });
}

TEST_CASE("an estimate is settled in every window: what was not needed, or more, beyond the limit",
          "[sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow limiter(store, "w", {{10, 10s}, {20, 1min}});
    const Time start = clock.now();
    Reservation less = limiter.reserve("a", 6);
    CHECK(limiter.settle("a", less, 2).refunded == 4);
    CHECK(limiter.peek("a").remaining == 8);
    clock.advance(1s);
    Reservation more = limiter.reserve("a", 4);
    CHECK(limiter.settle("a", more, 4).charged == 0);
    CHECK(limiter.settle("a", more, 7).charged == 3);
    CHECK(limiter.remaining("a")[0] == 1);
    CHECK(limiter.settle("a", more, 10).charged == 3);  // twelve in 10 s
    CHECK(limiter.remaining("a") == std::vector<Word>{0, 8});
    CHECK(clock.now() + limiter.try_acquire("a").retry_after == start + 11s);
    CHECK(limiter.settle("a", more, 21).charged == 11);
    CHECK(more.settled == 17);
    CHECK(limiter.remaining("a") == std::vector<Word>{0, 0});
    CHECK(clock.now() + limiter.try_acquire("a").retry_after == start + 61s);
    std::error_code error;
    limiter.settle("a", more, -1, error);
    CHECK(error == Errc::invalid_cost);
    CHECK_THROWS_AS(limiter.settle("a", more, -1), std::system_error);
    clock.advance(10s);
    CHECK(limiter.remaining("a") == std::vector<Word>{10, 0});
    CHECK(limiter.cancel("a", more) == 4);
    CHECK(limiter.remaining("a") == std::vector<Word>{10, 1});
  });
}
