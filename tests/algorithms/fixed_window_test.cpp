// How fixed and calendar windows behave, in exact integers, on every store.
// Threading: one test has threads.
#include "sluice/limiters/fixed_window.hpp"
#include "sluice/extend/store_wrapper.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "sluice/memory_store.hpp"
#include "sluice/rules/slot_lock.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

/// 2000-01-01 00:00 UTC, where the clocks of these tests start.
constexpr Time start = VirtualClock::default_start;

/// UTC+2 in summer; clocks change on 2000-03-26 and 2000-10-29, at 01:00 UTC.
TimeZone summer_time() {
  return TimeZone("Summer",
                  {{Time{}, 1h}, {start + 85 * 24h + 1h, 2h}, {start + 302 * 24h + 1h, 1h}});
}

/// A store whose clock in this process differs from the one it decides by.
class Apart final : public StoreWrapper {
 public:
  Apart(Store& store, Span apart) : StoreWrapper(store), clock_(store.clock().now() + apart) {}
  void execute(const Plan& plan, Completion done) noexcept override {
    ++asked;
    StoreWrapper::execute(plan, std::move(done));
  }
  [[nodiscard]] Clock& clock() noexcept override { return clock_; }
  int asked = 0;

 private:
  VirtualClock clock_;
};

/// A store whose clock jumps to another day before each of its next `jumps` decisions.
class Jumping final : public Store {
 public:
  explicit Jumping(VirtualClock& decides) : clock_(decides), store_(make_virtual_store(decides)) {}
  void execute(const Plan& plan, Completion done) noexcept override {
    ++asked;
    if (jumps > 0) {
      --jumps;
      clock_.advance(10 * 24h);
    }
    store_->execute(plan, std::move(done));
  }
  [[nodiscard]] Clock& clock() noexcept override { return callers_; }
  int jumps = 0;
  int asked = 0;

 private:
  VirtualClock& clock_;
  VirtualClock callers_{clock_.now()};
  std::unique_ptr<Store> store_;
};

}  // namespace

TEST_CASE("a limiter whose clock is far from the store's finds the windows by itself",
          "[fixed_window]") {
  for_each_store([](Store& direct, VirtualClock& clock) {
    for (const Span apart : {Span{400 * 24h}, Span{-400 * 24h}}) {
      Apart store(direct, apart);
      const FixedWindow days(store, apart > 0s ? "ahead" : "behind", 2, Calendar::daily());
      std::error_code error;
      CHECK_FALSE(decide(store, days.acquire_step("k"), error).allowed);
      CHECK(error == Errc::outside_calendar);
      CHECK(days.try_acquire("k", 2).allowed);
      CHECK(days.try_acquire("k").retry_after == 24h);
      CHECK(decide(store, days.acquire_step("k"), error).retry_after ==
            24h);  // and so do steps from now on
      CHECK_FALSE(error);
      const int before = store.asked;
      CHECK(days.peek("k").retry_after == 24h);
      CHECK(store.asked == before + 1);

      const FixedWindow other(store, "other", 1, Calendar::monthly());
      other.synchronize("k");
      CHECK(decide(store, other.peek_step("k"), error).allowed);
      const RequestId id{1, apart > 0s ? 2U : 3U};
      CHECK(days.try_acquire("new", 1, id).allowed);
      CHECK(days.try_acquire("new", 1, id).remaining == 1);
      for (int i = 0; i < 2; ++i) {  // by who knows nothing of the store's clock
        const FixedWindow stranger(store, days.name(), 2, Calendar::daily());
        CHECK(stranger.try_acquire("again", 1, RequestId{2, id.low}).remaining == 1);
      }
      days.reset("again");
      days.reset("new");
    }
    clock.advance(1s);
  });
}

TEST_CASE("synchronize() reads no state of the key", "[fixed_window]") {
  for_each_store([](Store& direct, VirtualClock& /*clock*/) {
    Apart store(direct, 400 * 24h);
    const FixedWindow days(store, "w", 2, Calendar::daily());
    // Another rule's state under the limiter's key.
    REQUIRE(decide(store, Step{&slot_lock_acquire, days.acquire_step("k").key, {1, 1'000, 0}}));
    days.synchronize("k");
  });
}

TEST_CASE("a store whose clock jumps while it is asked is asked up to three times",
          "[fixed_window]") {
  VirtualClock clock(start + 1h);
  Jumping store(clock);
  const FixedWindow days(store, "d", 2, Calendar::daily());
  const auto ask = [&](int jumps) {
    store.jumps = jumps;
    store.asked = 0;
    std::error_code error;
    const Decision decision = days.try_acquire("k", 1, error);
    CHECK(decision.allowed == !error);
    return std::pair{error, store.asked};
  };
  // A question finds out the difference, so a call that fails twice asks five times.
  const std::error_code none;
  CHECK(ask(0) == std::pair{none, 1});
  CHECK(ask(1) == std::pair{none, 3});
  CHECK(ask(2) == std::pair{none, 3});  // the second jump comes before the question
  CHECK(ask(3) == std::pair{none, 5});
  CHECK(ask(4) == std::pair{none, 5});
  CHECK(ask(5) == std::pair{make_error_code(Errc::outside_calendar), 5});
  CHECK(ask(0) == std::pair{none, 3});
  CHECK(days.peek("k").remaining == 1);
}

TEST_CASE("a request carries the windows around the clock, wherever it stood before",
          "[fixed_window]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  for (const Calendar& calendar :
       {Calendar::daily(summer_time()), Calendar::weekly(), Calendar::monthly(summer_time())}) {
    const FixedWindow windows(*store, "w", 1, calendar);
    const FixedWindow copy = windows;
    const auto check = [&](const FixedWindow& asked) {
      const auto words = calendar.words(clock.now());
      const Step step = asked.acquire_step("k");
      CHECK(std::equal(words.begin(), words.end(), step.args.begin() + 1));
    };
    for (const Span jump : {Span{1h}, Span{22h}, Span{1h - 1us}, Span{1us}, Span{85 * 24h},
                            Span{-24h}, Span{-1us}, Span{31 * 24h}, Span{-300 * 24h}, Span{0}}) {
      clock.advance(jump);
      check(windows);
      check(copy);
    }
  }
}

TEST_CASE("a cheap clock that lags makes no request carry the windows of the day before",
          "[fixed_window]") {
  class Lagging final : public Clock {
   public:
    [[nodiscard]] Time now() const noexcept override { return time; }
    [[nodiscard]] Time coarse_now() const noexcept override {
      return time - (Clock::coarse_lag - 1us);
    }
    Time time = start + 12h;
  };
  Lagging clock;
  const auto store = make_memory_store({.max_keys = 16, .clock = &clock});
  const Calendar calendar = Calendar::daily();
  const FixedWindow windows(*store, "w", 1, calendar);
  const Span lag = Clock::coarse_lag;
  for (const Span since_midnight :
       {-12h + 0us, -lag, -lag + 1us, -1us, 0us, 1us, lag - 2us, lag - 1us, lag, lag + 1us}) {
    CAPTURE(since_midnight.count());
    clock.time = start + 24h + since_midnight;
    const auto words = calendar.words(clock.time);
    const Step step = windows.acquire_step("k");
    CHECK(std::equal(words.begin(), words.end(), step.args.begin() + 1));
  }
}

TEST_CASE("threads at different times of one limiter carry their own windows", "[fixed_window]") {
  thread_local Time mine = start + 1h;
  class PerThread final : public Clock {
   public:
    [[nodiscard]] Time now() const noexcept override { return mine; }
  };
  PerThread clock;
  const auto store = make_memory_store({.max_keys = 16, .clock = &clock});
  const Calendar calendar = Calendar::daily();
  const FixedWindow windows(*store, "w", 1, calendar);
  std::atomic<int> wrong{0};
  const auto ask = [&](int first) {
    for (int i = 0; i < 20'000; ++i) {
      mine = start + 1h + (first + i * 7) % 8 * 24h;
      const auto words = calendar.words(mine);
      const Step step = windows.acquire_step("k");
      if (!std::equal(words.begin(), words.end(), step.args.begin() + 1)) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  for (const int first : {0, 3, 5}) threads.emplace_back(ask, first);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a limit that cannot be is refused with the value", "[fixed_window]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const auto why = [&](auto limit) {
    return refusal([&] { FixedWindow(*store, "w", limit, Calendar::daily()); });
  };
  CHECK(why(-3) == "the limit of a window must be 0 to 2^42, or unlimited, got -3");
  CHECK(why(UINT64_MAX) ==
        "the limit of a window must be 0 to 2^42, or unlimited, got 18446744073709551615");
  CHECK(why(FixedWindowRule::max_limit + 1) ==
        "the limit of a window must be 0 to 2^42, or unlimited, got 4398046511105");
  CHECK(why(unlimited - 1).ends_with("got 4503599627370495"));
  CHECK(why(unlimited + 1).ends_with("got 4503599627370497"));
  CHECK(why(FixedWindowRule::max_limit) == "nothing was thrown");
  static_assert(!std::is_constructible_v<FixedWindow, Store&, std::string, double, Calendar>);
}
