// Running, stopping and failing, as an io_context does; what runs when, and the stores of a World.
// Threading: single-threaded.
#include <boost/asio/defer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <functional>

#include "sim/tests/world/fixture.hpp"
#include "sluice/asio.hpp"
#include "sluice/extend/manual_reset_event.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/memory_store.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

net::awaitable<void> tick(Clock& clock, Span period, int& ticks) {
  for (;; ++ticks) co_await sluice::asio::sleep_for(clock, period);
}

net::awaitable<int> deep(Clock& clock, int depth) {
  co_await sluice::asio::sleep_for(clock, 1ms);
  if (depth == 0) co_return 1;
  co_return 1 + co_await deep(clock, depth - 1);
}

}  // namespace

TEST_CASE("a run ends on its time to the microsecond, and the next goes on from there") {
  World world;
  const Time start = world.now();
  int ticks = 0;
  net::co_spawn(world, tick(world.clock(), 1s, ticks), net::detached);
  world.run_until(start + 10s - 1us);
  CHECK(ticks == 9);
  CHECK(world.now() == start + 10s - 1us);
  CHECK(world.run_for(1us) == 1);
  CHECK(ticks == 10);
  CHECK(world.poll() == 0);
  CHECK(world.run_one() == 1);
  CHECK(world.now() == start + 11s);
  CHECK_THROWS_AS(world.run_until(start), std::out_of_range);
  CHECK_THROWS_AS(world.run_for(-1us), std::out_of_range);
  CHECK_THROWS_AS(world.run_for(Span::max()), std::out_of_range);
  CHECK_THROWS_AS(world.run_for(Span::min()), std::out_of_range);
  CHECK(world.now() == start + 11s);
}

TEST_CASE("polling runs what is due and lets time stand") {
  World world;
  std::vector<int> seen;
  net::post(world, [&] {
    seen.push_back(1);
    net::post(world, [&] { seen.push_back(2); });
  });
  sluice::asio::sleep_for(world.clock(), 1us,
                          net::bind_executor(world, [&](Error) { seen.push_back(3); }));
  CHECK(world.poll() == 2);
  CHECK(seen == std::vector<int>{1, 2});
  CHECK(world.run() == 1);
  CHECK(world.run() == 0);
}

TEST_CASE("stopping ends a run after the present event, until the restart") {
  World world;
  const Time start = world.now();
  int ticks = 0;
  net::co_spawn(world, tick(world.clock(), 1s, ticks), net::detached);
  sluice::asio::sleep_for(world.clock(), 5s,
                          net::bind_executor(world, [&](Error) { world.stop(); }));
  world.run();
  CHECK(world.stopped());
  CHECK(world.now() == start + 5s);
  CHECK(ticks == 4);  // the fifth is due, behind the stop
  CHECK(world.run_for(1h) == 0);
  CHECK(world.now() == start + 5s);
  world.restart();
  world.run_for(10s);
  CHECK(ticks == 15);
}

TEST_CASE("what a handler throws leaves the run, and the next run goes on behind it") {
  World world;
  std::vector<int> seen;
  net::post(world, [] { throw std::runtime_error("posted"); });
  net::post(world, [&] { seen.push_back(1); });
  net::co_spawn(
      world,
      [&]() -> net::awaitable<void> {
        co_await sluice::asio::sleep_for(world.clock(), 1s);
        throw std::runtime_error("awaited");
      },
      Rethrow{});
  sluice::asio::sleep_for(world.clock(), 2s, [&](Error) { throw std::runtime_error("called"); });
  sluice::asio::sleep_for(world.clock(), 3s, [&](Error) { seen.push_back(2); });
  CHECK_THROWS_WITH(world.run(), "posted");
  CHECK_THROWS_WITH(world.run(), "awaited");
  CHECK_THROWS_WITH(world.run(), "called");
  world.run();
  CHECK(seen == std::vector<int>{1, 2});
}

TEST_CASE("what a spawned coroutine throws leaves the run, and the next run goes on behind it") {
  World world;
  int alive = 0;
  std::vector<int> seen;
  const auto fail = [](Clock& clock, Span span) -> net::awaitable<void, World::Executor> {
    co_await sluice::asio::sleep_for(clock, span);
    throw std::runtime_error("awaited");
  };
  world.spawn(fail(world.clock(), 1s));
  world.spawn([counted = Counted(alive)]() -> net::awaitable<void> {
    throw std::runtime_error("at once");
    co_return;
  });
  for (int i = 0; i < 3; ++i) {
    world.spawn([&, i, counted = Counted(alive)]() -> net::awaitable<void> {
      co_await sluice::asio::sleep_for(world.clock(), 2s);
      CHECK(alive == 3 - i);  // the captures live as long as the coroutine
      seen.push_back(i);
    });
  }
  CHECK(alive == 4);
  CHECK_THROWS_WITH(world.run(), "at once");
  CHECK_THROWS_WITH(world.run(), "awaited");
  world.run();
  CHECK(seen == std::vector<int>{0, 1, 2});
  CHECK(alive == 0);
  CHECK(world.outstanding_work() == 0);
}

TEST_CASE("a coroutine that is spawned inside the loop runs at once until it waits") {
  World world;
  std::vector<int> seen;
  world.spawn([&]() -> net::awaitable<void> {
    seen.push_back(1);
    world.spawn([&]() -> net::awaitable<void> {
      seen.push_back(2);
      co_await sluice::asio::sleep_for(world.clock(), 0s);
      seen.push_back(4);
      throw std::runtime_error("inner");
    });
    seen.push_back(3);
    co_return;
  });
  CHECK(seen.empty());
  CHECK_THROWS_WITH(world.run(), "inner");
  CHECK(seen == std::vector<int>{1, 2, 3, 4});
}

TEST_CASE("an exception of what was dispatched lets the function around it end first") {
  World world;
  bool ended = false;
  net::post(world, [&] {
    world.get_executor().execute([] { throw std::runtime_error("inner"); });
    ended = true;
  });
  CHECK_THROWS_WITH(world.run(), "inner");
  CHECK(ended);
}

TEST_CASE("coroutines nest and return values, through every kind of token") {
  World world;
  const Time start = world.now();
  auto future = net::co_spawn(world, deep(world.clock(), 40), net::use_future);
  int called = 0;
  net::co_spawn(world, deep(world.clock(), 2),
                [&](const std::exception_ptr&, int value) { called = value; });
  auto slept = sluice::asio::sleep_for(world.clock(), 7ms, net::use_future);
  int inner = 0;
  net::co_spawn(
      world,
      [&]() -> net::awaitable<void> {
        const auto executor = co_await net::this_coro::executor;
        inner = co_await net::co_spawn(executor, deep(world.clock(), 4), net::use_awaitable);
        co_await sluice::asio::sleep_for(world.clock(), 1ms, net::deferred);
      },
      Rethrow{});
  CHECK(world.outstanding_work() > 0);
  world.run();
  CHECK(future.wait_for(0s) == std::future_status::ready);
  CHECK(future.get() == 41);
  CHECK(slept.wait_for(0s) == std::future_status::ready);
  CHECK(called == 3);
  CHECK(inner == 5);
  CHECK(world.now() == start + 41ms);
  CHECK(world.outstanding_work() == 0);
}

TEST_CASE("a run that ends while something waits for nobody says so") {
  World world;
  int ticks = 0;
  auto waits = [&]() -> net::awaitable<void> {
    co_await sluice::asio::sleep_until(world.clock(), Time::max());
    ++ticks;
  };
  net::co_spawn(world, waits(), net::detached);
  world.run();
  CHECK(ticks == 0);
  CHECK(world.outstanding_work() > 0);
}

TEST_CASE("misuse is told at once: a run inside a run, a moved clock, a start before time began") {
  World world;
  net::post(world, [&] { world.run(); });
  CHECK_THROWS_AS(world.run(), std::logic_error);
  world.clock().advance(1s);
  CHECK_THROWS_AS(world.run(), std::logic_error);
  CHECK_THROWS_AS(World({.start = to_time(-1)}), std::invalid_argument);
  CHECK_THROWS_AS(World({.events_per_instant = 0}), std::invalid_argument);
}

TEST_CASE("a real timer on a World is an error, not a silent wait") {
  World world;
  net::co_spawn(
      world,
      []() -> net::awaitable<void> {
        net::steady_timer timer(co_await net::this_coro::executor, 24h);
        co_await timer.async_wait(net::use_awaitable);
      },
      net::detached);
  CHECK_THROWS_AS(world.run(), std::logic_error);
}

TEST_CASE("a coroutine that loops at one instant ends the run, by name of the instant") {
  int alive = 0;
  {
    World world({.events_per_instant = 1'000});
    const Time start = world.now();
    int turns = 0;
    world.spawn([&]() -> net::awaitable<void> {
      const Counted counted(alive);
      co_await sluice::asio::sleep_for(world.clock(), 2s);
      for (;; ++turns) co_await sluice::asio::sleep_for(world.clock(), 0s);
    });
    try {
      world.run_for(1h);
      FAIL("it came to its end");
    } catch (const EndlessInstant& instant) {
      CHECK(instant.at() == start + 2s);
      CHECK(instant.events() == 1'000);
    }
    CHECK(world.now() == start + 2s);
    CHECK(turns >= 400);
    CHECK(turns <= 1'000);
    // The next run goes on, as far.
    const int before = turns;
    CHECK_THROWS_AS(world.run(), EndlessInstant);
    CHECK(turns > before);
    CHECK(alive == 1);
  }
  CHECK(alive == 0);
}

TEST_CASE("functions that post one another end a thread that blocks on the clock as well") {
  World world({.shuffle_ties = GENERATE(false, true), .events_per_instant = 5'000});
  std::function<void()> again = [&] { net::post(world, again); };
  net::post(world, again);
  CHECK_THROWS_AS(world.run(), EndlessInstant);
  ManualResetEvent waker;
  CHECK_THROWS_AS(world.clock().wait_until(world.now() + 1s, waker), EndlessInstant);
}

TEST_CASE("what is posted runs at its instant, behind what is due then already") {
  World world;
  std::vector<std::string> seen;
  const Time start = world.now();
  const auto sleep = [&](Span span, auto then) {
    sluice::asio::sleep_for(world.clock(), span,
                            net::bind_executor(world, [then](Error) { then(); }));
  };
  sleep(1ms, [&] {
    seen.emplace_back("first");
    net::post(world, [&] {
      CHECK(world.now() == start + 1ms);
      seen.emplace_back("posted by first");
      net::post(world, [&] { seen.emplace_back("posted by posted"); });
      sleep(0ms, [&] { seen.emplace_back("slept zero"); });
    });
    net::dispatch(world, [&] { seen.emplace_back("dispatched by first"); });
    net::defer(world, [&] { seen.emplace_back("deferred by first"); });
  });
  sleep(1ms, [&] { seen.emplace_back("second"); });
  sleep(2ms, [&] { seen.emplace_back("later"); });
  world.run();
  CHECK(seen == std::vector<std::string>{"first", "dispatched by first", "second",
                                         "posted by first", "deferred by first", "posted by posted",
                                         "slept zero", "later"});
}

TEST_CASE("a strand keeps its order and its exclusion, also when ties are shuffled") {
  World world({.seed = 3, .shuffle_ties = true});
  auto strand = net::make_strand(world);
  std::vector<int> seen;
  for (int i = 0; i < 50; ++i) {
    net::post(strand, [&, i] {
      CHECK(strand.running_in_this_thread());
      net::dispatch(strand, [&, i] { seen.push_back(i); });
    });
  }
  int inside = 0;
  for (int i = 0; i < 5; ++i) {
    net::co_spawn(
        strand,
        [&]() -> net::awaitable<void> {
          for (int round = 0; round < 10; ++round) {
            CHECK(++inside == 1);
            --inside;
            co_await sluice::asio::sleep_for(world.clock(), 1ms);
            CHECK(strand.running_in_this_thread());
          }
        },
        Rethrow{});
  }
  world.run();
  for (int i = 0; i < 50; ++i) REQUIRE(seen[static_cast<std::size_t>(i)] == i);
  CHECK(world.outstanding_work() == 0);
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
