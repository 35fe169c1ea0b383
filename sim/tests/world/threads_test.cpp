// What other threads may do with a World and with a virtual clock: stop a run, move the clock, and
// no more. Threading: as each case says.
#include <atomic>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <thread>

#include "sim/tests/world/fixture.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;

TEST_CASE("a stop from another thread ends a run without end") {
  World world;
  const auto tick = [&]() -> net::awaitable<void> {
    for (;;) co_await sluice::asio::sleep_for(world.clock(), 1s);
  };
  net::co_spawn(world, tick(), net::detached);
  std::thread other([&] { world.stop(); });
  world.run();
  other.join();
  CHECK(world.stopped());
}

TEST_CASE("misuse is told at once: another thread posts into a run") {
  World world;
  net::post(world, [&] {
    std::thread([&] { CHECK_THROWS_AS(net::post(world, [] {}), std::logic_error); }).join();
  });
  world.run();
}

TEST_CASE("waits of many threads on a clock that another thread moves complete once each") {
  test::Random random("waits of many threads on a clock that another thread moves");
  CAPTURE(random.repeat());
  VirtualClock clock;
  std::atomic<int> completed{0};
  std::atomic<int> aborted{0};
  const auto count = static_cast<int>(test::scaled(4'000, 400));
  {
    net::thread_pool pool(2);
    std::atomic<bool> over{false};
    std::thread mover([&] {
      while (!over) clock.advance(10us);
    });
    for (int i = 0; i < count; ++i) {
      const Span span{random.between(0, 300)};
      const Span cancel{random.between(0, 300)};
      net::co_spawn(
          pool,
          [&, span, cancel]() -> net::awaitable<void> {
            auto strand = net::make_strand(co_await net::this_coro::executor);
            co_await net::post(net::bind_executor(strand, net::use_awaitable));
            sluice::asio::Timer timer(strand, clock);
            timer.expires_after(span);
            timer.async_wait(
                net::bind_executor(strand, [&](Error error) { ++(error ? aborted : completed); }));
            co_await sluice::asio::sleep_for(clock, cancel,
                                             net::bind_executor(strand, net::use_awaitable));
          },
          net::detached);
    }
    pool.join();
    over = true;
    mover.join();
  }
  CHECK(completed + aborted == count);
}
