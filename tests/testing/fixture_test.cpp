// Tables of moments, the fixture, and moving until nothing waits. Threading: single-threaded.
#include "sluice/testing/fixture.hpp"

#include "sluice/sluice.hpp"
#include "sluice/testing/catch2.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

TEST_CASE("a table of moments moves the clock and compares each answer", "[testing]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const TokenBucket bucket(*store, "api", Quota::per_second(10).burst(1));
  const auto take = [&] { return bucket.try_acquire("alice"); };
  CHECK(play(clock, {
                        {at(0s), take, allowed(0)},
                        {at(0s), take, refused()},
                        {at(99'999us), take, refused(1us)},
                        {after(1us), take, allowed()},
                        {at(50ms), take, refused()},  // set back
                        {after(150ms), [&] { return bucket.try_acquire("alice", 2); },
                         fails(Errc::cost_exceeds_capacity)},
                    }));
  CHECK(clock.now() == VirtualClock::default_start + 200ms);
}

TEST_CASE("a table says each row that was answered otherwise, and how", "[testing]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const TokenBucket bucket(*store, "api", Quota::per_second(10).burst(1));
  const auto take = [&] { return bucket.try_acquire("alice"); };
  const auto too_much = [&] { return bucket.try_acquire("alice", 2); };
  clock.advance(1h);  // moments count from the table's start
  const Played played = play(clock, {
                                        {at(0s), take, allowed(1)},
                                        {at(50ms), take, refused(50ms)},
                                        {after(1ms), take, refused(50ms)},
                                        {after(1ms), too_much, allowed()},
                                        {after(1ms), too_much, fails(Errc::timed_out)},
                                        {after(1ms), take, fails(Errc::timed_out)},
                                    });
  CHECK_FALSE(played);
  CHECK(
      played.failures ==
      "row 1, at 0 s: expected that it is allowed with 1 left, it was allowed, 0 of 1 left, reset "
      "after 100 ms, from virtual\n"
      "row 3, at 51 ms: expected that it is refused, retry after 50 ms, it was refused, 0 of 1 "
      "left, retry after 49 ms, reset after 49 ms, from virtual\n"
      "row 4, at 52 ms: expected that it is allowed, it failed: cost_exceeds_capacity\n"
      "row 5, at 53 ms: expected the error timed_out, it failed: cost_exceeds_capacity\n"
      "row 6, at 54 ms: expected the error timed_out, it was refused, 0 of 1 left, retry after 46 "
      "ms, reset after 46 ms, from virtual\n");
}

TEST_CASE_METHOD(VirtualFixture, "the fixture's clock, faults and record belong together",
                 "[testing]") {
  const TokenBucket bucket(store, "api", Quota::per_second(1).burst(1));
  const auto take = [&] { return bucket.try_acquire("alice"); };
  faults.play(FaultScript("ok not_connected*2"));
  CHECK(play({
      {at(0s), take, allowed(0)},
      {at(1s), take, fails(Errc::not_connected)},
      {at(2s), take, fails(Errc::not_connected)},
  }));
  move(at(3s));
  CHECK(clock.now() == VirtualClock::default_start + 3s);
  mark("the network is back");
  move(after(500ms));
  CHECK_THAT(take(), allowed(0));
  CHECK_THAT(trace(), recovers_within(500ms) && !recovers_within(500ms - 1us));
  CHECK_THAT(trace(), spacing_at_least(3500ms) && !never_fails());
}

namespace {

/// Rings `left` times, every second; for ever if it is negative.
struct Again {
  VirtualClock& clock;
  int left;
  int rung = 0;
  TimerCallback timer{[](void* self) noexcept { static_cast<Again*>(self)->ring(); }, this};

  void start() { clock.set_timer(timer, clock.now() + 1s); }
  void ring() noexcept {
    ++rung;
    if (--left != 0) start();
  }
};

}  // namespace

TEST_CASE_METHOD(VirtualFixture, "time moves from timer to timer until none is set", "[testing]") {
  CHECK(advance_until_idle() == 0s);
  Again three{clock, 3};
  three.start();
  CHECK(advance_until_idle() == 3s);
  CHECK(three.rung == 3);
  CHECK(clock.timers() == 0);
}

TEST_CASE_METHOD(VirtualFixture, "what waits again and again is an error, not an endless loop",
                 "[testing]") {
  Again endless{clock, -1};
  endless.start();
  CHECK_THROWS_WITH(sluice::testing::advance_until_idle(clock, 1000),
                    "advance_until_idle: after 1000 moves, the clock 1000 s on, 1 timers are still "
                    "set: something waits again and again");
  clock.cancel_timer(endless.timer);
}
