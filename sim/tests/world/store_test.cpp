// Limiters, stores and the network of a World. Threading: single-threaded.
#include "sim/tests/world/fixture.hpp"
#include "sluice/asio.hpp"
#include "sluice/extend/manual_reset_event.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/memory_store.hpp"

using namespace sluice;
using namespace sluice::test;

TEST_CASE("a plan crosses the network of a World in virtual time") {
  World world;
  const Time start = world.now();
  const auto connection = world.connect({Delay::constant(3ms), Delay::constant(5ms)});
  const TokenBucket bucket(*connection, "api", Quota::per_second(10).burst(1));
  std::vector<Decision> decisions;
  net::co_spawn(
      world,
      [&]() -> net::awaitable<void> {
        for (int i = 0; i < 2; ++i) {
          decisions.push_back(
              co_await sluice::asio::async_try_acquire(bucket, "alice", 1, net::use_awaitable));
        }
        CHECK(world.now() == start + 16ms);
      },
      Rethrow{});
  world.run();
  REQUIRE(decisions.size() == 2);
  CHECK(decisions[0].allowed);
  CHECK(decisions[0].at == start + 3ms);
  CHECK(decisions[1].retry_after == 92ms);
  CHECK(connection->operations() == 2);
}

TEST_CASE("connections draw their delays apart, and alike for the same seed") {
  const auto arrivals = [](std::uint64_t seed) {
    World world({.seed = seed});
    const Link link{Delay::uniform(1ms, 9ms), Delay::constant(1ms)};
    const auto one = world.connect(link);
    const auto two = world.connect(link);
    std::vector<Time> at;
    for (Store* store : std::initializer_list<Store*>{one.get(), two.get()}) {
      const TokenBucket bucket(*store, "api", Quota::per_second(1'000).burst(100));
      net::co_spawn(
          world,
          [&at, bucket]() -> net::awaitable<void> {
            for (int i = 0; i < 5; ++i) {
              at.push_back(
                  (co_await sluice::asio::async_try_acquire(bucket, "a", 1, net::use_awaitable))
                      .at);
            }
          },
          Rethrow{});
    }
    world.run();
    CHECK(at.size() == 10);
    CHECK(at[0] != at[1]);
    return at;
  };
  CHECK(arrivals(1) == arrivals(1));
  CHECK(arrivals(1) != arrivals(2));
}

TEST_CASE("a store that the user makes on the World's clock is decided in virtual time") {
  World world;
  const auto store = make_memory_store({.max_keys = 16, .clock = &world.clock()});
  const TokenBucket bucket(*store, "api", Quota::per_hour(1));
  CHECK(bucket.try_acquire("a"));
  CHECK_FALSE(bucket.try_acquire("a"));
  world.run_for(1h);
  CHECK(bucket.try_acquire("a"));
}

TEST_CASE("a thread that blocks on the clock of a World runs it meanwhile") {
  World world;
  const Time start = world.now();
  int ticks = 0;
  ManualResetEvent waker;
  net::co_spawn(
      world,
      [&]() -> net::awaitable<void> {
        for (; ticks < 100; ++ticks) {
          if (ticks == 5) waker.wake();
          co_await sluice::asio::sleep_for(world.clock(), 1s);
        }
      },
      Rethrow{});
  CHECK_FALSE(world.clock().wait_until(start + 2'500ms, waker));
  CHECK(world.now() == start + 2'500ms);
  CHECK(ticks == 2);
  CHECK(world.clock().wait_until(start + 1h, waker));
  CHECK(world.now() == start + 5s);
  waker.reset();
  CHECK_FALSE(world.clock().wait_until(start + 1h, waker));
  CHECK(ticks == 100);
  CHECK_THROWS_AS(world.clock().wait_until(Time::max(), waker), std::logic_error);
  net::post(world, [&] { world.clock().wait_until(world.now() + 1s, waker); });
  CHECK_THROWS_AS(world.run(), std::logic_error);
}

TEST_CASE("timers ring as events of the World") {
  World world;
  const Time start = world.now();
  struct Rung {
    World& world;
    std::vector<Time> at;
    static void ring(void* self) noexcept {
      static_cast<Rung*>(self)->at.push_back(static_cast<Rung*>(self)->world.now());
    }
  } rung{world, {}};
  TimerCallback one(&Rung::ring, &rung);
  TimerCallback two(&Rung::ring, &rung);
  TimerCallback never(&Rung::ring, &rung);
  Clock& clock = world.clock();
  clock.set_timer(one, start + 2s);
  clock.set_timer(two, start + 1s);
  clock.set_timer(never, start + 1s);
  CHECK(clock.cancel_timer(never));
  CHECK_FALSE(clock.cancel_timer(never));
  world.run();
  CHECK(rung.at == std::vector<Time>{start + 1s, start + 2s});
  CHECK_FALSE(clock.cancel_timer(one));
}
