// The end of a World with everything under way. Threading: single-threaded.
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/strand.hpp>

#include "sim/tests/world/fixture.hpp"
#include "sluice/asio.hpp"
#include "sluice/limiters/token_bucket.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

using Channel = net::experimental::channel<void(Error, int)>;

template <class Executor>
net::awaitable<void, Executor> hold(Clock& clock, Counted counted, int& woken) {
  const Counted own(counted);
  co_await sluice::asio::sleep_for(clock, 1h);
  ++woken;
}

net::awaitable<void> nest(Clock& clock, Counted counted, int depth, int& woken) {
  const Counted own(counted);
  if (depth > 0) {
    co_await nest(clock, counted, depth - 1, woken);
  } else {
    sluice::asio::Timer timer(co_await net::this_coro::executor, clock);
    timer.expires_after(1h);
    co_await timer.async_wait(net::use_awaitable);
  }
  ++woken;
}

}  // namespace

TEST_CASE("a World that ends destroys every suspended coroutine once and wakes none") {
  int alive = 0;
  int woken = 0;
  {
    World world;
    auto strand = net::make_strand(world);
    for (int i = 0; i < 10; ++i) {
      net::co_spawn(world, hold<net::any_io_executor>(world.clock(), Counted(alive), woken),
                    net::detached);
      net::co_spawn(world, hold<World::Executor>(world.clock(), Counted(alive), woken),
                    net::detached);
      net::co_spawn(strand, nest(world.clock(), Counted(alive), i, woken), net::detached);
      net::co_spawn(world, nest(world.clock(), Counted(alive), i, woken), net::use_future);
      sluice::asio::sleep_for(world.clock(), 1h, [&, counted = Counted(alive)](Error) { ++woken; });
      net::post(strand, [&, counted = Counted(alive)] {
        net::post(world, [&, counted] { ++woken; });
        world.stop();
      });
    }
    world.run_for(1s);
    net::co_spawn(world, hold<net::any_io_executor>(world.clock(), Counted(alive), woken),
                  net::detached);  // has not begun
    CHECK(alive > 0);
  }
  CHECK(alive == 0);
  CHECK(woken == 0);
}

TEST_CASE("a World that ends with channels, limiters and connections in use leaves nothing") {
  int alive = 0;
  int answered = 0;
  {
    World world;
    const auto connection = world.connect({Delay::constant(1ms), Delay::constant(1ms)});
    const TokenBucket bucket(*connection, "api", Quota::per_second(1));
    Channel channel(world, 1);
    for (int i = 0; i < 4; ++i) {
      net::co_spawn(
          world,
          [&, counted = Counted(alive)]() -> net::awaitable<void> {
            co_await sluice::asio::async_try_acquire(bucket, "alice", 1, net::use_awaitable);
            ++answered;
          },
          net::detached);
      net::co_spawn(
          world,
          [&, counted = Counted(alive)]() -> net::awaitable<void> {
            co_await channel.async_receive(net::use_awaitable);
            ++answered;
          },
          net::detached);
      net::co_spawn(
          world,
          [&, counted = Counted(alive)]() -> net::awaitable<void> {
            const auto own = world.connect({Delay::constant(1ms), Delay::constant(1ms)});
            const TokenBucket mine(*own, "own", Quota::per_second(1));
            co_await sluice::asio::async_try_acquire(mine, "bob", 1, net::use_awaitable);
            ++answered;
          },
          net::detached);
    }
    world.run_for(1500us);
    CHECK(alive > 0);
  }
  CHECK(alive == 0);
  CHECK(answered == 0);
}

TEST_CASE("a future of what a World never ran is broken, not hung") {
  std::future<void> future;
  {
    World world;
    future = sluice::asio::sleep_for(world.clock(), 1h, net::use_future);
  }
  CHECK_THROWS_AS(future.get(), std::future_error);
}

TEST_CASE("timers that are set when a World ends are not rung") {
  bool rung = false;
  TimerCallback timer_callback([](void* flag) noexcept { *static_cast<bool*>(flag) = true; },
                               &rung);
  TimerCallback other([](void* flag) noexcept { *static_cast<bool*>(flag) = true; }, &rung);
  {
    World world;
    CHECK(world.clock().set_timer(timer_callback, world.now() + 1s) == TimerState::set);
    CHECK(world.clock().set_timer(other, Time::max()) == TimerState::set);
  }
  CHECK_FALSE(rung);
  CHECK(timer_callback.place == 0);
  CHECK(other.place == 0);
}
