// async_acquire() under Asio's rules: tokens, executors, allocators, cancellation, and the end of
// the execution context. Threading: as the cases say.
#include "sluice/asio/acquire.hpp"

#include <array>
#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <thread>
#include <vector>

#include "sluice/asio/decide.hpp"
#include "sluice/asio/verbs.hpp"
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

using namespace std::chrono_literals;
using boost::asio::use_awaitable;
using sluice::asio::async_acquire;

namespace {

/// Limits of a minute, and a bucket, in virtual time.
struct World {
  VirtualClock clock;
  std::unique_ptr<Store> store = make_virtual_store(clock);
  TokenBucket bucket{*store, "b", Quota::per_second(1).burst(1)};
  FixedWindow window{*store, "w", 1, Calendar::every(1min)};
  std::array<Claim, 2> claims{Claim(bucket, "a"), Claim(window, "a")};
  FirstOf either = first_of({{{window, "a"}, {bucket, "b"}}, {{window, "a"}, {bucket, "c"}}});
  boost::asio::io_context context;
};

/// Calls `visit(world, start)` for a wait of one limit, of several, and of the first of several
/// alternatives: `start(token)` waits for the window.
template <class Visit>
void for_each_wait(Visit visit) {
  const auto visit_one = [&](auto start_in) {
    World world;
    visit(world, [&](auto token) { return start_in(world, std::move(token)); });
  };
  visit_one([](World& world, auto token) {
    return async_acquire(world.window, "a", 1, 1h, std::move(token));
  });
  visit_one(
      [](World& world, auto token) { return async_acquire(world.claims, 1h, std::move(token)); });
  visit_one(
      [](World& world, auto token) { return async_acquire(world.either, 1h, std::move(token)); });
}

/// A bucket whose only token is spent.
struct Spent : World {
  Spent() { REQUIRE(bucket.try_acquire("a")); }
};

constexpr auto aborted = boost::asio::error::operation_aborted;

}  // namespace

TEST_CASE("a callback, a future, a deferred call and a coroutine all wait in virtual time",
          "[asio][waiting][claims][first_of]") {
  for_each_wait([](World& world, auto start) {
    int over = 0;
    start(boost::asio::bind_executor(world.context, [&](auto error, const auto& grant) {
      CHECK_FALSE(error);
      CHECK(grant);
      ++over;
    }));
    auto future = start(boost::asio::bind_executor(world.context, boost::asio::use_future));
    auto later = start(boost::asio::deferred);
    boost::asio::co_spawn(
        world.context,
        [&]() -> boost::asio::awaitable<void> {
          const auto third = co_await start(use_awaitable);
          const auto fourth = co_await std::move(later);
          CHECK(third);
          CHECK(fourth);
          ++over;
        },
        boost::asio::detached);
    for (int minute = 0; minute <= 3; ++minute) {
      world.context.poll();
      CHECK(over == (minute == 3 ? 2 : 1));
      world.clock.advance(1min);
    }
    const auto second = future.get();
    CHECK(second);
    CHECK(world.window.waiting("a") == 0);
  });
}

TEST_CASE("a refusal is a value, a failure an error", "[asio][waiting]") {
  Spent world;
  int over = 0;
  async_acquire(world.bucket, "a", 1, 999ms,
                boost::asio::bind_executor(world.context, [&](auto error, Reservation grant) {
                  CHECK_FALSE(error);
                  CHECK_FALSE(grant);
                  CHECK(grant.retry_after == 1s);
                  ++over;
                }));
  async_acquire(world.bucket, "a", 2, 1h,
                boost::asio::bind_executor(world.context, [&](auto error, Reservation) {
                  CHECK(std::error_code(error) == Errc::cost_exceeds_capacity);
                  ++over;
                }));
  CHECK(over == 0);  // never before the call returns
  world.context.run();
  CHECK(over == 2);
}

TEST_CASE("a wait is cancelled by its slot, or by cancel_waits() on any thread",
          "[asio][waiting][claims][first_of]") {
  for_each_wait([](World& world, auto start) {
    REQUIRE(world.window.try_acquire("a"));
    std::array<boost::asio::cancellation_signal, 3> signals;
    int over = 0;
    for (auto& signal : signals) {
      start(boost::asio::bind_cancellation_slot(
          signal.slot(),
          boost::asio::bind_executor(world.context, [&](auto error, const auto& grant) {
            CHECK(error == aborted);
            CHECK_FALSE(grant);
            ++over;
          })));
    }
    const std::size_t waiting = world.window.waiting("a");
    CHECK(waiting % 3 == 0);  // twice, of two alternatives with the window
    CHECK(world.bucket.waiting("a") == 0);
    signals[1].emit(boost::asio::cancellation_type::none);
    signals[1].emit(boost::asio::cancellation_type::terminal);
    world.context.poll();
    CHECK(over == 1);
    CHECK(world.window.waiting("a") == waiting / 3 * 2);
    std::thread([&] { world.window.cancel_waits(); }).join();
    world.context.poll();
    CHECK(over == 3);
    signals[0].emit(boost::asio::cancellation_type::all);  // over already
    world.clock.advance(1min);
    CHECK(world.window.peek("a").remaining == 1);
  });
}

TEST_CASE("asynchronous waits are served by priority and flow", "[asio][waiting]") {
  Spent world;
  std::vector<int> order;
  const auto note = [&](int name) {
    return boost::asio::bind_executor(world.context, [&order, name](auto error, Reservation) {
      if (!error) order.push_back(name);
    });
  };
  for (int i = 0; i < 9; ++i) async_acquire(world.bucket, "a", 1, 1h, note(0));
  using Options = sluice::asio::AsyncWaitOptions;
  async_acquire(world.bucket, "a", 1, 1h, Options{.flow = std::string(40, 'x')}, note(1));
  async_acquire(world.bucket, "a", 1, 1h, Options{.flow = "y", .weight = 9}, note(2));
  async_acquire(world.bucket, "a", 1, 1h, Options{.priority = 1}, note(3));
  for (int i = 0; i < 4; ++i) {
    world.clock.advance(1s);
    world.context.poll();
  }
  CHECK(order == std::vector{3, 2, 0, 1});
  world.bucket.cancel_waits();
  world.context.run();
}

TEST_CASE("waits on a context that is destroyed leave the line, and their handlers go",
          "[asio][waiting][claims][first_of]") {
  for_each_wait([](World& world, auto start) {
    REQUIRE(world.window.try_acquire("a"));
    const auto alive = std::make_shared<int>(0);
    {
      boost::asio::io_context context;
      for (int i = 0; i < 3; ++i) {
        start(boost::asio::bind_executor(context, [alive](auto, const auto&) { FAIL("called"); }));
        boost::asio::co_spawn(
            context,
            [&, alive]() -> boost::asio::awaitable<void> {
              static_cast<void>(co_await start(use_awaitable));
              FAIL("granted");
            },
            boost::asio::detached);
      }
      context.poll();
      CHECK(world.window.waiting("a") >= 6);
    }
    CHECK(alive.use_count() == 1);
    CHECK(world.window.waiting("a") == 0);
    CHECK(world.clock.timers() == 0);
    world.clock.advance(1min);
    CHECK(world.window.peek("a").remaining == 1);
  });
}

TEST_CASE("the handler's executor and allocator are used", "[asio][waiting]") {
  Spent world;
  auto strand = boost::asio::make_strand(world.context);
  bool on_strand = false;
  async_acquire(world.bucket, "a", 1, 1h,
                boost::asio::bind_executor(strand, [&](auto error, Reservation) {
                  CHECK_FALSE(error);
                  on_strand = strand.running_in_this_thread();
                }));
  world.clock.advance(1s);
  world.context.run();
  CHECK(on_strand);
}

TEST_CASE("in real time a wait is never too short", "[asio][waiting][realtime]") {
  const auto store = make_memory_store();
  const TokenBucket bucket(*store, "b", Quota::per_second(200).burst(1));
  boost::asio::io_context context;
  std::vector<Time> calls;
  boost::asio::co_spawn(
      context,
      [&]() -> boost::asio::awaitable<void> {
        for (int i = 0; i < 5; ++i) {
          const Reservation grant =
              co_await async_acquire(bucket, "a", 1, Deadline::never(), use_awaitable);
          CHECK(store->clock().now() >= grant.ready_at());
          calls.push_back(grant.ready_at());
        }
      },
      [](std::exception_ptr failed) { CHECK_FALSE(failed); });
  context.run();
  REQUIRE(calls.size() == 5);
  for (std::size_t i = 1; i < calls.size(); ++i) CHECK(calls[i] - calls[i - 1] >= 5ms);
}

TEST_CASE("thousands of waits on several threads, cancelled at random, end once each",
          "[asio][waiting][claims]") {
  Random random("thousands of waits on several threads, cancelled at random, end once each");
  CAPTURE(random.repeat());
  const auto store = make_memory_store();
  const ConcurrencyLimiter jobs(*store, "jobs", 3);
  const ConcurrencyLimiter places(*store, "places", 4);
  const TokenBucket bucket(*store, "b", Quota::per_second(100'000).burst(1));
  const std::array<std::vector<Claim>, 3> kinds{
      std::vector<Claim>{{jobs, "a"}, {bucket, "a"}, {places, "a"}},
      std::vector<Claim>{{places, "a"}, {jobs, "a"}},
      std::vector<Claim>{{bucket, "a"}, {places, "a", 2}}};
  const std::size_t waits = scaled(12'000, 1'200);
  boost::asio::thread_pool pool(3);
  std::vector<boost::asio::cancellation_signal> signals(waits);
  std::vector<std::atomic<int>> ends(waits);
  std::atomic<std::size_t> granted{0};
  std::atomic<std::size_t> cancelled{0};
  for (std::size_t i = 0; i < waits; ++i) {
    // A signal and its slot are used on one strand: Asio's rule.
    const auto strand = boost::asio::make_strand(pool);
    const auto ended = [&, i](auto error, const auto& grant) {
      ++ends[i];
      if (error) {
        ++cancelled;
      } else if (grant) {
        ++granted;  // and given back
      }
    };
    boost::asio::post(strand, [&, i, strand, ended] {
      auto token = boost::asio::bind_cancellation_slot(signals[i].slot(),
                                                       boost::asio::bind_executor(strand, ended));
      if (i % 2 == 0) {
        async_acquire(jobs, "a", 1, Deadline::never(), std::move(token));
      } else {
        async_acquire(kinds[i % kinds.size()], Deadline::never(), std::move(token));
      }
    });
    if (random.below(4) == 0) {
      boost::asio::post(strand, [&, i] { signals[i].emit(boost::asio::cancellation_type::all); });
    }
  }
  pool.join();
  for (const auto& times : ends) REQUIRE(times == 1);
  CHECK(granted + cancelled == waits);
  CHECK(jobs.peek("a").remaining == 3);
  CHECK(places.peek("a").remaining == 4);
}

TEST_CASE(
    "an executor that stops on three threads keeps its waits, and run again it ends each once",
    "[asio][waiting]") {
  constexpr int waits = 300;
  constexpr int before = 50;
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const TokenBucket bucket(*store, "b", Quota::per_second(1'000).burst(1));
  REQUIRE(bucket.try_acquire("a"));
  boost::asio::io_context context;
  std::vector<std::atomic<int>> ends(waits);
  std::atomic<int> ended{0};
  for (std::size_t i = 0; i < waits; ++i) {
    async_acquire(bucket, "a", 1, Deadline::never(),
                  boost::asio::bind_executor(context, [&, i](auto error, const Reservation& grant) {
                    ends[i] += !error && grant ? 1 : 100;
                    ++ended;
                  }));
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&] { context.run(); });
  for (int i = 1; i <= before; ++i) {
    clock.advance(1ms);
    while (ended < i) std::this_thread::yield();
  }
  context.stop();
  for (std::thread& thread : threads) thread.join();
  clock.advance(1s);
  CHECK(ended == before);
  context.restart();
  for (int i = before; i < waits; ++i) {
    context.poll();
    clock.advance(1ms);
  }
  context.run();
  CHECK(ended == waits);
  for (const auto& times : ends) CHECK(times == 1);
  CHECK(bucket.waiting("a") == 0);
}

TEST_CASE("a number is a key in a co_await, in every form", "[asio][waiting]") {
  Spent world;
  int granted = 0;
  boost::asio::co_spawn(
      world.context,
      [&]() -> boost::asio::awaitable<void> {
        granted += co_await async_acquire(world.bucket, 42, 1, 1h) ? 1 : 0;
        granted +=
            co_await sluice::asio::async_try_acquire(world.bucket, Key{7, "n"}, 1, use_awaitable)
                ? 1
                : 0;
        const std::array steps{world.bucket.acquire_step(8), world.bucket.acquire_step(-8)};
        granted += co_await sluice::asio::async_decide(*world.store, steps, use_awaitable) ? 1 : 0;
      },
      boost::asio::detached);
  world.context.run();
  CHECK(granted == 3);
  for (const Key& key : {Key("42"), Key("7", "n"), Key("8"), Key("-8")}) {
    INFO(key.tag());
    CHECK_FALSE(world.bucket.try_acquire(key));
  }
}

}  // namespace sluice::test
