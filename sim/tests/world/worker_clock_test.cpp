// Clocks of workers: the conversion to the microsecond, steps under pending waits, and the clock
// without an error against that of the World. Threading: single-threaded.
#include "sluice/sim/worker_clock.hpp"

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <memory>

#include "sim/tests/world/fixture.hpp"
#include "sluice/extend/manual_reset_event.hpp"
#include "sluice/extend/timer_callback.hpp"
#include "sluice/sim/random.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

/// A timer that notes what both clocks show when it rings.
struct Noted {
  Noted(World& w, Clock& c)
      : world(w),
        clock(c),
        timer([](void* self) noexcept { static_cast<Noted*>(self)->note(); }, this,
              [](void* self) noexcept { static_cast<Noted*>(self)->ended = true; }) {}
  ~Noted() { clock.cancel_timer(timer); }
  void note() noexcept {
    rang_at = world.now();
    shown = clock.now();
    ++rings;
  }

  World& world;
  Clock& clock;
  TimerCallback timer;
  Time rang_at{};
  Time shown{};
  int rings = 0;
  bool ended = false;
};

/// Sleeps `span` on a clock; when it is awake, notes the time of the World.
net::awaitable<void> nap(World& world, Clock& clock, Span span, Time& woke) {
  co_await sluice::asio::sleep_for(clock, span);
  woke = world.now();
}

}  // namespace

TEST_CASE("a wait ends at the first microsecond at which the clock shows its time") {
  test::Random random("a wait ends at the first microsecond at which the clock shows its time");
  CAPTURE(random.repeat());
  World world;
  for (std::size_t i = 0; i < test::scaled(300, 30); ++i) {
    const ClockError error{
        Span{random.between(-5'000'000, 5'000'000)},
        random.one_in(2) ? random.between(-500, 500) : random.between(-100'000, 100'000)};
    WorkerClock& clock = make_worker_clock(world, error);
    const Time start = world.now();
    CHECK(clock.now() - start == error.offset);
    CHECK(clock.world_time(clock.now() - 1us) == world.now());
    const Time when = clock.now() + Span{random.between(1, Word{10} * 86'400'000'000)};
    const Time predicted = clock.world_time(when);
    REQUIRE(clock.shown_at(predicted) >= when);
    REQUIRE(clock.shown_at(predicted - 1us) < when);
    Noted noted(world, clock);
    CHECK(clock.set_timer(noted.timer, when) == TimerState::set);
    world.run();
    REQUIRE(noted.rings == 1);
    REQUIRE(noted.rang_at == predicted);
    REQUIRE(noted.shown >= when);
    __extension__ using Wide = __int128;
    const Word passed = (predicted - start).count();
    const auto gained = static_cast<Word>(Wide{passed} * (1'000'000 + error.drift_ppm) / 1'000'000);
    REQUIRE(noted.shown == start + error.offset + Span{gained});
  }
}

TEST_CASE("a step forwards ends at once the waits that it passes") {
  World world;
  const Time start = world.now();
  WorkerClock& clock = make_worker_clock(world);
  Time first{};
  Time second{};
  net::co_spawn(world, nap(world, clock, 10s, first), Rethrow());
  net::co_spawn(world, nap(world, clock, 30s, second), Rethrow());
  Noted noted(world, clock);
  clock.set_timer(noted.timer, start + 12s);
  clock.step_at(start + 3s, 20s);
  world.run_for(3s);
  CHECK(first == start + 3s);
  CHECK(noted.rang_at == start + 3s);
  CHECK(noted.shown == start + 23s);
  CHECK(second == Time{});
  world.run();
  CHECK(second == start + 10s);
}

TEST_CASE("after a step back a wait lasts until the clock shows its time again") {
  World world;
  const Time start = world.now();
  WorkerClock& clock = make_worker_clock(world, {.offset = 1h, .drift_ppm = 100'000});
  Time woke{};
  net::co_spawn(world, nap(world, clock, 11s, woke), Rethrow());
  clock.step_at(start + 5s, -11s);
  world.run_for(5s);
  CHECK(clock.now() == start + 1h + 5'500ms - 11s);
  world.run();
  CHECK(woke == start + 20s);
  // At the instant at which the wait would end, before it ends.
  Noted noted(world, clock);
  const Time when = clock.now() + 11s;
  clock.step_at(world.now() + 10s, -1'100ms);
  clock.set_timer(noted.timer, when);
  const Time now = world.now();
  world.run();
  CHECK(noted.rang_at == now + 11s);
  CHECK(noted.shown == when);
}

TEST_CASE("a change of the drift moves the pending waits") {
  World world;
  const Time start = world.now();
  WorkerClock& clock = make_worker_clock(world);
  Time woke{};
  net::co_spawn(world, nap(world, clock, 30s, woke), Rethrow());
  world.run_for(10s);
  clock.set_drift(-100'000);
  CHECK(clock.drift_ppm() == -100'000);
  CHECK(clock.now() == start + 10s);
  world.run();
  CHECK((woke - start).count() == 10'000'000 + 22'222'223);  // 20 s / 0.9, rounded up
}

TEST_CASE("waits are cancelled before and after steps, by timer, by slot and by callback") {
  World world;
  WorkerClock& clock = make_worker_clock(world, {.offset = -1min, .drift_ppm = 50});
  for (const Span step : {0s, 5s, -5s}) {
    std::vector<Error> errors;
    const auto note = [&](Error error) { errors.push_back(error); };
    sluice::asio::Timer timer(world, clock);
    timer.expires_after(1h);
    timer.async_wait(note);
    net::cancellation_signal signal;
    sluice::asio::sleep_for(
        clock, 1h, net::bind_cancellation_slot(signal.slot(), net::bind_executor(world, note)));
    Noted noted(world, clock);
    clock.set_timer(noted.timer, clock.now() + 1h);
    const Time start = world.now();
    world.run_for(1s);
    clock.step(step);
    CHECK(timer.cancel() == 1);
    signal.emit(net::cancellation_type::all);
    CHECK(clock.cancel_timer(noted.timer));
    CHECK_FALSE(clock.cancel_timer(noted.timer));
    clock.step(-step);  // aborted waits are over, whatever the clock shows
    clock.step(step);
    CHECK(world.run() > 0);
    CHECK(errors == std::vector<Error>(2, net::error::operation_aborted));
    CHECK(noted.rings == 0);
    CHECK(world.now() == start + 1s);
  }
}

namespace {

/// Coroutines and callbacks that wait at random on one clock: what happened when, in order.
std::vector<std::pair<Word, int>> play(bool own_clock, bool shuffle, std::uint64_t seed) {
  World world({.seed = seed, .shuffle_ties = shuffle});
  Clock& clock = own_clock ? static_cast<Clock&>(make_worker_clock(world)) : world.clock();
  std::vector<std::pair<Word, int>> log;
  for (int i = 0; i < 20; ++i) {
    net::co_spawn(
        world,
        [&, i]() -> net::awaitable<void> {
          SeededRng rng = stream(seed, static_cast<std::uint64_t>(i), 1);
          sluice::asio::Timer timer(world, clock);
          for (int n = 0; n < 50; ++n) {
            const Span span{static_cast<Word>(rng.below(6))};
            if (rng.below(3) == 0) {
              timer.expires_after(span);
              timer.async_wait(
                  [&, i](Error error) { log.emplace_back(to_word(clock.now()), error ? -i : i); });
            } else {
              co_await sluice::asio::sleep_for(clock, span, net::use_awaitable);
              log.emplace_back(to_word(world.now()), 100 + i);
            }
          }
        },
        Rethrow());
  }
  world.run();
  log.emplace_back(to_word(world.now()), static_cast<int>(world.events()));
  return log;
}

}  // namespace

TEST_CASE("a clock without an error is the clock of the World, event by event") {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    for (const bool shuffle : {false, true}) {
      CHECK(play(true, shuffle, seed) == play(false, shuffle, seed));
    }
  }
}

TEST_CASE("waits keep their order over steps that change nothing in the end") {
  World world;
  WorkerClock& clock = make_worker_clock(world);
  std::vector<int> expected;
  for (int rest = 0; rest < 3; ++rest) {
    for (int i = rest; i < 20; i += 3) expected.push_back(i);
  }
  for (int round = 0; round < 3; ++round) {  // later rounds use the places of the first again
    std::vector<int> order;
    for (int i = 0; i < 20; ++i) {
      sluice::asio::sleep_for(clock, Span{i % 3}, net::bind_executor(world, [&order, i](Error) {
                                order.push_back(i);
                              }));
    }
    clock.step(1h);
    clock.step(-1h);
    world.run();
    CHECK(order == expected);
  }
}

TEST_CASE("a clock stays within the range of times") {
  World world({.start = to_time(1'000)});
  CHECK_THROWS_AS(make_worker_clock(world, {.offset = -1'001us}), std::invalid_argument);
  CHECK_THROWS_AS(make_worker_clock(world, {.offset = Span::max()}), std::invalid_argument);
  CHECK_THROWS_AS(make_worker_clock(world, {.offset = Span::min()}), std::invalid_argument);
  CHECK_THROWS_AS(make_worker_clock(world, {.drift_ppm = 100'001}), std::invalid_argument);
  WorkerClock& clock = make_worker_clock(world, {.offset = -1'000us});
  CHECK(clock.now() == to_time(0));
  CHECK_THROWS_AS(clock.step(-1us), std::out_of_range);
  CHECK_THROWS_AS(clock.step(Span::max()), std::out_of_range);
  CHECK_THROWS_AS(clock.step(Span::min()), std::out_of_range);
  CHECK_THROWS_AS(clock.set_drift(-100'001), std::invalid_argument);
  CHECK_THROWS_AS(clock.step_at(to_time(999), 1us), std::out_of_range);
  CHECK(clock.now() == to_time(0));
  clock.step_at(to_time(1'500), Span::min());
  world.run();
  CHECK(clock.now() == to_time(0));
  clock.step_at(to_time(1'500), Span::max());
  world.run();
  CHECK(clock.now() == to_time(word_limit));
  world.run_for(1s);
  CHECK(clock.now() == to_time(word_limit));
  clock.step(-1s);
  Noted noted(world, clock);
  clock.set_timer(noted.timer, to_time(word_limit));
  Noted never(world, clock);
  clock.set_timer(never.timer, to_time(word_limit + 1));
  const Time start = world.now();
  world.run();
  CHECK(noted.rang_at == start + 1s);
  CHECK(never.rings == 0);
}

TEST_CASE("a time that a slow clock shows only after the end of time never comes") {
  World world;
  WorkerClock& clock = make_worker_clock(world, {.offset = -1h});
  CHECK(clock.world_time(to_time(word_limit)) == Time::max());
  Noted noted(world, clock);
  clock.set_timer(noted.timer, to_time(word_limit));
  CHECK(world.run() == 0);
  clock.step(1h);
  CHECK(world.run() == 1);
  CHECK(to_word(noted.rang_at) == word_limit);
}

TEST_CASE("a thread that blocks on the clock runs the World until the clock shows the time") {
  World world;
  WorkerClock& clock = make_worker_clock(world, {.drift_ppm = 100'000});
  const Time start = world.now();
  ManualResetEvent waker;
  CHECK_FALSE(clock.wait_until(clock.now() + 11s, waker));
  CHECK(world.now() == start + 10s);
  CHECK_FALSE(waker.is_awake());
  CHECK_FALSE(clock.wait_until(clock.now(), waker));
  clock.step_at(world.now() + 1s, 1h);
  CHECK_FALSE(clock.wait_until(clock.now() + 1h, waker));
  CHECK(world.now() == start + 11s);
  sluice::asio::sleep_for(clock, 1100ms, net::bind_executor(world, [&](Error) { waker.wake(); }));
  CHECK(clock.wait_until(clock.now() + 1h, waker));
  CHECK(world.now() == start + 12s);
  CHECK(clock.wait_until(clock.now() + 1h, waker));
  CHECK(world.now() == start + 12s);
  waker.reset();
  CHECK_THROWS_AS(clock.wait_until(to_time(word_limit + 1), waker), std::logic_error);
  CHECK(world.run() == 0);  // it left no timer
}

TEST_CASE("a World that ends destroys the waits on its clocks and calls none") {
  int alive = 0;
  bool called = false;
  {
    auto world = std::make_unique<World>();
    WorkerClock& clock = make_worker_clock(*world, {.offset = 1s});
    TimerCallback ended([](void*) noexcept {}, &called,
                        [](void* flag) noexcept { *static_cast<bool*>(flag) = true; });
    net::co_spawn(
        *world,
        [&, counted = Counted(alive)]() -> net::awaitable<void> {
          sluice::asio::Timer timer(*world, clock);
          timer.expires_after(1h);
          timer.async_wait([counted](Error) { FAIL("called"); });
          co_await sluice::asio::sleep_for(clock, 2h);
          FAIL("woken");
        },
        net::detached);
    clock.set_timer(ended, clock.now() + 1h);
    clock.step_at(world->now() + 1min, 1s);
    world->run_for(1s);
    CHECK(alive > 0);
    world.reset();
    CHECK(called);  // TimerCallback's `ended`
  }
  CHECK(alive == 0);
}

TEST_CASE("each clock of a worker has draws of its own, which the seed determines") {
  const auto draws = [](std::uint64_t seed) {
    World world({.seed = seed});
    std::vector<std::uint64_t> values;
    for (Clock* clock :
         {static_cast<Clock*>(&world.clock()), static_cast<Clock*>(&make_worker_clock(world)),
          static_cast<Clock*>(&make_worker_clock(world))}) {
      for (const DrawFor purpose : {DrawFor::backoff, DrawFor::lease}) {
        values.push_back(rng_of(*clock, purpose).next());
      }
    }
    return values;
  };
  auto values = draws(1);
  CHECK(values == draws(1));
  const auto others = draws(2);
  values.insert(values.end(), others.begin(), others.end());
  std::sort(values.begin(), values.end());
  CHECK(std::adjacent_find(values.begin(), values.end()) == values.end());
}
