// Waiting on clocks: timers, blocked threads, and time that moves by itself. Threading: as the
// cases say.
#include "sluice/virtual_clock.hpp"

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "sluice/extend/manual_reset_event.hpp"
#include "sluice/extend/timer_callback.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

/// A timer_callback that calls a function.
class Call {
 public:
  explicit Call(std::function<void()> function) : function_(std::move(function)) {}
  TimerCallback timer_callback{[](void* self) noexcept { static_cast<Call*>(self)->function_(); },
                               this};

 private:
  std::function<void()> function_;
};

}  // namespace

TEST_CASE("a clock that is set back rings nothing, and no timer beyond the end of time moves it",
          "[core][clock]") {
  VirtualClock clock;
  const Time begin = clock.now();
  std::vector<Time> rung;
  Call call([&] { rung.push_back(clock.now()); });
  Call never([] { FAIL("rang"); });
  REQUIRE(clock.set_timer(call.timer_callback, begin + 3s) == TimerState::set);
  REQUIRE(clock.set_timer(never.timer_callback, Time::max()) == TimerState::set);
  CHECK(clock.timers() == 2);
  clock.advance(-24h);
  CHECK(clock.advance(24h + 3s - 1us) == begin + 3s - 1us);
  CHECK(rung.empty());
  clock.set(begin + 10s);
  CHECK(rung == std::vector{begin + 3s});  // at its own time
  CHECK(clock.now() == begin + 10s);
  CHECK_FALSE(clock.advance_to_next());
  CHECK(clock.cancel_timer(never.timer_callback));
}

TEST_CASE(
    "a timer_callback for a time that has come is not set, and one on the system's clock never is",
    "[core][clock]") {
  VirtualClock clock;
  Call call([] { FAIL("rang"); });
  CHECK(clock.set_timer(call.timer_callback, clock.now()) == TimerState::due);
  CHECK(clock.set_timer(call.timer_callback, clock.now() - 1us) == TimerState::due);
  CHECK_FALSE(clock.cancel_timer(call.timer_callback));
  SystemClock system;
  CHECK(system.set_timer(call.timer_callback, system.now()) == TimerState::due);
  CHECK(system.set_timer(call.timer_callback, system.now() + 1h) == TimerState::never);
  CHECK_FALSE(system.cancel_timer(call.timer_callback));
}

TEST_CASE("a timer_callback may set others, cancel others and move the clock", "[core][clock]") {
  VirtualClock clock;
  const Time start = clock.now();
  std::vector<Span> rung;
  Call last([&] { rung.push_back(clock.now() - start); });
  Call never([] { FAIL("rang"); });
  Call first([&] {
    rung.push_back(clock.now() - start);
    CHECK(clock.cancel_timer(never.timer_callback));
    clock.set_timer(last.timer_callback, start + 4s);
    clock.advance(1s);
  });
  clock.set_timer(first.timer_callback, start + 1s);
  clock.set_timer(never.timer_callback, start + 2s);
  clock.advance(1s);
  CHECK(clock.now() == start + 2s);
  clock.advance(5s);
  CHECK(rung == std::vector<Span>{1s, 4s});
  CHECK(clock.now() == start + 7s);
}

TEST_CASE("random timers, set and cancelled, ring as a sorted list says", "[core][clock]") {
  Random random("random timers, set and cancelled, ring as a sorted list says");
  CAPTURE(random.repeat());
  VirtualClock clock;
  struct Expected {
    Time when;
    std::size_t order;
    std::size_t name;
    bool operator<(const Expected& other) const {
      return std::tie(when, order) < std::tie(other.when, other.order);
    }
  };
  std::vector<std::size_t> rung;
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<Expected> expected;
  for (std::size_t turn = 0; turn < scaled(20'000, 2'000); ++turn) {
    const auto choice = random.below(10);
    if (choice < 6) {
      const std::size_t name = calls.size();
      calls.push_back(std::make_unique<Call>([&rung, name] { rung.push_back(name); }));
      const Time when = clock.now() + Span{random.between(1, 50)};
      REQUIRE(clock.set_timer(calls.back()->timer_callback, when) == TimerState::set);
      expected.push_back({when, turn, name});
    } else if (choice < 8 && !expected.empty()) {
      const auto victim =
          expected.begin() + static_cast<std::ptrdiff_t>(random.below(expected.size()));
      REQUIRE(clock.cancel_timer(calls[victim->name]->timer_callback));
      expected.erase(victim);
    } else {
      clock.advance(Span{random.between(0, 20)});
      std::sort(expected.begin(), expected.end());
      std::vector<std::size_t> due;
      while (!expected.empty() && expected.front().when <= clock.now()) {
        due.push_back(expected.front().name);
        expected.erase(expected.begin());
      }
      REQUIRE(rung == due);
      rung.clear();
    }
    REQUIRE(clock.timers() == expected.size());
  }
  for (const Expected& left : expected) clock.cancel_timer(calls[left.name]->timer_callback);
}

TEST_CASE("a blocked thread goes on when another moves the clock to its time", "[core][clock]") {
  VirtualClock clock;
  const Time start = clock.now();
  ManualResetEvent waker;
  bool woken = true;
  std::thread waiting([&] { woken = clock.wait_until(start + 1h, waker); });
  while (clock.timers() == 0) std::this_thread::yield();
  clock.advance(1h - 1us);
  CHECK(clock.timers() == 1);
  clock.advance(1us);
  waiting.join();
  CHECK_FALSE(woken);
  CHECK_FALSE(waker.is_awake());
  CHECK_FALSE(clock.wait_until(clock.now(), waker));
}

TEST_CASE("a waker wakes a thread before its time, also if it was first",
          "[core][clock][realtime]") {
  VirtualClock virtual_clock;
  SystemClock system;
  const std::array<Clock*, 2> clocks{&virtual_clock, &system};
  for (Clock* const clock : clocks) {
    ManualResetEvent waker;
    waker.wake();
    CHECK(clock->wait_until(clock->now() + 1h, waker));
    CHECK(clock->wait_until(Time::max(), waker));
    waker.reset();
    std::atomic<bool> woken{false};
    std::thread waiting([&] { woken = clock->wait_until(Time::max(), waker); });
    waker.wake();
    waiting.join();
    CHECK(woken);
  }
  CHECK(virtual_clock.timers() == 0);
}

TEST_CASE("the system's clock is waited for in real time, and not too short",
          "[core][clock][realtime]") {
  SystemClock clock;
  ManualResetEvent waker;
  const Time when = clock.now() + 2ms;
  CHECK_FALSE(clock.wait_until(when, waker));
  CHECK(clock.now() >= when);
}

TEST_CASE("with several known threads, time moves only when all of them wait", "[core][clock]") {
  constexpr int threads = 4;
  const std::size_t turns = scaled(300, 50);
  VirtualClock clock;
  const Time start = clock.now();
  std::atomic<int> busy{0};
  std::atomic<bool> moved_while_busy{false};
  std::array<Time, threads> ends{};
  {
    const VirtualClock::AutoAdvance moving(clock);
    std::vector<std::thread> all;
    std::atomic<int> ready{0};
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&, i] {
        const KnownThread known(clock);
        ++ready;
        ManualResetEvent waker;
        for (std::size_t turn = 0; turn < turns; ++turn) {
          ++busy;
          const Time before = clock.now();
          for (int spin = 0; spin < 20; ++spin) std::this_thread::yield();
          if (clock.now() != before) moved_while_busy = true;
          --busy;
          clock.wait_until(before + Span{(i + 1) * 1'000}, waker);
        }
        ends[static_cast<std::size_t>(i)] = clock.now();
      });
    }
    while (ready < threads) std::this_thread::yield();
    // From here on this thread waits as well, longer than all others.
    ManualResetEvent waker;
    CHECK_FALSE(clock.wait_until(start + 1h, waker));
    for (std::thread& thread : all) thread.join();
  }
  CHECK_FALSE(moved_while_busy);
  for (int i = 0; i < threads; ++i) {
    CHECK(ends[static_cast<std::size_t>(i)] - start ==
          Span{(i + 1) * 1'000 * static_cast<Word>(turns)});
  }
  CHECK(clock.now() == start + 1h);
}

TEST_CASE("a thread that is woken by another counts as running from then on", "[core][clock]") {
  VirtualClock clock;
  const Time start = clock.now();
  const VirtualClock::AutoAdvance moving(clock);
  for (std::size_t turn = 0; turn < scaled(300, 30); ++turn) {
    ManualResetEvent mine;
    ManualResetEvent other;
    const Time begin = clock.now();
    std::atomic<bool> known{false};
    Span woken_at{-1};
    std::thread thread([&] {
      const KnownThread here(clock);
      known = true;
      clock.wait_until(Time::max() - 1h, other);
      woken_at = clock.now() - begin;
      mine.wake();
    });
    while (!known) std::this_thread::yield();
    ManualResetEvent timer;
    clock.wait_until(begin + 5s, timer);
    other.wake();
    clock.wait_until(begin + 1h, mine);
    thread.join();
    REQUIRE(woken_at == 5s);
    REQUIRE(clock.now() == begin + 5s);
  }
  CHECK(clock.now() > start);
}

TEST_CASE("cancelling a timer_callback that rings on another thread waits until it has rung",
          "[core][clock]") {
  VirtualClock clock;
  for (std::size_t turn = 0; turn < scaled(2'000, 200); ++turn) {
    int rung = 0;  // not atomic: the sanitizer would see a race
    bool cancelled = false;
    {
      Call call([&] { ++rung; });
      REQUIRE(clock.set_timer(call.timer_callback, clock.now() + 1us) == TimerState::set);
      std::thread mover([&] { clock.advance(1us); });
      cancelled = clock.cancel_timer(call.timer_callback);
      if (!cancelled) REQUIRE(rung == 1);
      mover.join();
    }
    REQUIRE(rung == (cancelled ? 0 : 1));
  }
}

}  // namespace sluice::test
