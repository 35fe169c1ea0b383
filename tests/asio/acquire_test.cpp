// async_acquire() under Asio's rules: tokens, executors, allocators, cancellation, and the end of
// the execution context. Threading: as the cases say.
#include "sluice/asio/acquire.hpp"

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <thread>
#include <vector>

#include "sluice/asio/calls.hpp"
#include "sluice/asio/verbs.hpp"
#include "sluice/sluice.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

using namespace std::chrono_literals;
using boost::asio::use_awaitable;
using sluice::asio::async_acquire;

namespace {

/// A bucket whose only token is spent, in virtual time.
struct Spent {
  VirtualClock clock;
  std::unique_ptr<Store> store = make_virtual_store(clock);
  TokenBucket bucket{*store, "b", Quota::per_second(1).burst(1)};
  boost::asio::io_context context;

  Spent() { REQUIRE(bucket.try_acquire("a")); }
};

constexpr auto aborted = boost::asio::error::operation_aborted;

}  // namespace

TEST_CASE("a callback, a future, a deferred call and a coroutine all wait in virtual time",
          "[asio][waiting]") {
  Spent world;
  const Time start = world.clock.now();
  int over = 0;
  async_acquire(world.bucket, "a", 1, 1h,
                boost::asio::bind_executor(world.context, [&](auto error, Reservation grant) {
                  CHECK_FALSE(error);
                  CHECK(grant.granted == 1);
                  ++over;
                }));
  auto future = async_acquire(world.bucket, "a", 1, 1h,
                              boost::asio::bind_executor(world.context, boost::asio::use_future));
  auto later = async_acquire(world.bucket, "a", 1, 1h);
  boost::asio::co_spawn(
      world.context,
      [&]() -> boost::asio::awaitable<void> {
        const Reservation first = co_await async_acquire(world.bucket, "a", 1, 1h, use_awaitable);
        const Reservation second = co_await std::move(later);
        CHECK(first.ready_at() == start + 3s);
        CHECK(second.ready_at() == start + 4s);
        ++over;
      },
      boost::asio::detached);
  for (int second = 0; second <= 4; ++second) {
    world.context.poll();
    CHECK(over == (second >= 4 ? 2 : second >= 1 ? 1 : 0));
    world.clock.advance(1s);
  }
  CHECK(future.get());
  CHECK(world.bucket.waiting("a") == 0);
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

TEST_CASE("a wait is cancelled by its slot, and gives back what it had reserved",
          "[asio][waiting]") {
  Spent world;
  boost::asio::cancellation_signal signal;
  int over = 0;
  async_acquire(world.bucket, "a", 1, 1h,
                boost::asio::bind_cancellation_slot(
                    signal.slot(),
                    boost::asio::bind_executor(world.context, [&](auto error, Reservation grant) {
                      CHECK(error == aborted);
                      CHECK_FALSE(grant);
                      ++over;
                    })));
  CHECK(world.bucket.waiting("a") == 1);
  signal.emit(boost::asio::cancellation_type::terminal);
  world.context.run();
  CHECK(over == 1);
  CHECK(world.bucket.peek("a").retry_after == 1s);
  signal.emit(boost::asio::cancellation_type::all);  // over already
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

TEST_CASE("cancel_waits() ends all waits, from any thread", "[asio][waiting]") {
  Spent world;
  int over = 0;
  auto note = boost::asio::bind_executor(world.context, [&](auto error, Reservation) {
    CHECK(error == aborted);
    ++over;
  });
  async_acquire(world.bucket, "a", 1, 1h, note);
  async_acquire(world.bucket, "a", 1, 1h, sluice::asio::AsyncWaitOptions{.priority = 1}, note);
  std::thread([&] { world.bucket.cancel_waits(); }).join();
  world.context.run();
  CHECK(over == 2);
}

TEST_CASE("waits on a context that is destroyed leave the line, and their handlers go",
          "[asio][waiting]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const TokenBucket bucket(*store, "b", Quota::per_second(1).burst(1));
  const FixedWindow minutes(*store, "f", 1, Calendar::every(1min));
  REQUIRE(bucket.try_acquire("a"));
  REQUIRE(minutes.try_acquire("a"));
  const auto alive = std::make_shared<int>(0);
  {
    boost::asio::io_context context;
    for (int i = 0; i < 3; ++i) {
      auto handler =
          boost::asio::bind_executor(context, [alive](auto, const auto&) { FAIL("called"); });
      async_acquire(bucket, "a", 1, 1h, handler);
      async_acquire(minutes, "a", 1, Deadline::never(), handler);
      boost::asio::co_spawn(
          context,
          [&, alive]() -> boost::asio::awaitable<void> {
            static_cast<void>(co_await async_acquire(bucket, "a", 1, 1h, use_awaitable));
            FAIL("granted");
          },
          boost::asio::detached);
    }
    context.poll();
    CHECK(bucket.waiting("a") == 6);
    CHECK(minutes.waiting("a") == 3);
  }
  CHECK(alive.use_count() == 1);
  CHECK(bucket.waiting("a") == 0);
  CHECK(minutes.waiting("a") == 0);
  CHECK(clock.timers() == 0);
  CHECK(bucket.peek("a").retry_after == 1s);  // for the first call alone
  clock.advance(1h);
  CHECK(bucket.peek("a").remaining == 1);
  CHECK(minutes.peek("a").remaining == 1);
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
          "[asio][waiting]") {
  Random random("thousands of waits on several threads, cancelled at random, end once each");
  CAPTURE(random.repeat());
  const auto store = make_memory_store();
  const ConcurrencyLimiter jobs(*store, "jobs", 8);
  const std::size_t waits = scaled(10'000, 1'000);
  boost::asio::thread_pool pool(3);
  std::vector<boost::asio::cancellation_signal> signals(waits);
  std::vector<std::atomic<int>> ends(waits);
  std::atomic<std::size_t> granted{0};
  std::atomic<std::size_t> cancelled{0};
  for (std::size_t i = 0; i < waits; ++i) {
    // A signal and its slot are used on one strand: Asio's rule.
    const auto strand = boost::asio::make_strand(pool);
    boost::asio::post(strand, [&, i, strand] {
      async_acquire(jobs, "a", 1, Deadline::never(),
                    boost::asio::bind_cancellation_slot(
                        signals[i].slot(),
                        boost::asio::bind_executor(strand, [&, i](auto error, const Lease& lease) {
                          ++ends[i];
                          if (error) {
                            ++cancelled;
                          } else if (lease) {
                            ++granted;  // and given back
                          }
                        })));
    });
    if (random.below(4) == 0) {
      boost::asio::post(strand, [&, i] { signals[i].emit(boost::asio::cancellation_type::all); });
    }
  }
  pool.join();
  for (const auto& times : ends) REQUIRE(times == 1);
  CHECK(granted + cancelled == waits);
  CHECK(jobs.peek("a").remaining == 8);
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

TEST_CASE("a true cost that no store has charged is an error", "[asio][calls][fallback]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  testing::FaultyStore primary(*inner);
  CircuitBreaker breaker(clock, {.failures = 1});
  FallbackStore store(primary, breaker, FailurePolicy::open());
  const SlidingWindow windows(store, "w", {{10, 1h}});
  boost::asio::io_context context;
  boost::asio::co_spawn(
      context,
      [&]() -> boost::asio::awaitable<void> {
        co_await sluice::asio::guarded(
            windows, "a", 2, 0s, [&]() -> boost::asio::awaitable<Costed<int>> {
              primary.fail_all(testing::Fault::not_executed(Errc::not_connected));
              co_return Costed<int>{1, 5};
            });
      },
      [&](std::exception_ptr failed) {
        REQUIRE(failed);
        CHECK_THROWS_AS(std::rethrow_exception(failed), NotSettled<int>);
        try {
          std::rethrow_exception(failed);
        } catch (NotSettled<int>& error) {
          CHECK(error.code() == Errc::not_connected);
          CHECK(error.result() == 1);
        }
      });
  context.run();
}

TEST_CASE("guarded and backed-off calls are coroutines as well", "[asio][calls]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const TokenBucket tokens(*store, "t", Quota::per_second(1).burst(1000));
  const SlidingWindow windows(*store, "w", {{10, 1h}});
  const FixedWindow daily(*store, "d", 10, Calendar::daily());
  const ConcurrencyLimiter jobs(*store, "j", 1);
  const Gates gates(*store, "g", {"account"}, {.ramp = 0s, .spacing = 0s});
  const std::vector<Scope> scopes{gates.scope("account", "7")};
  boost::asio::io_context context;
  int attempts = 0;
  bool over = false;
  boost::asio::co_spawn(
      context,
      [&]() -> boost::asio::awaitable<void> {
        const auto text = co_await sluice::asio::guarded(
            tokens, "a", 500, 0s, []() -> boost::asio::awaitable<Costed<std::string>> {
              co_return Costed<std::string>{"answer", 120};
            });
        CHECK(text == "answer");
        CHECK(tokens.peek("a").remaining == 880);
        const auto costs = [](Word actual) -> boost::asio::awaitable<Costed<Word>> {
          co_return Costed<Word>{actual, actual};
        };
        co_await sluice::asio::guarded(windows, "a", 5, 0s, [&] { return costs(2); });
        co_await sluice::asio::guarded(windows, "a", 2, 0s, [&] { return costs(5); });
        CHECK(windows.peek("a").remaining == 3);
        co_await sluice::asio::guarded(daily, "a", 5, 0s, [&] { return costs(7); });
        CHECK(daily.peek("a").remaining == 3);
        // Its window is over when the true cost is known: nothing is left to charge.
        const auto slow = [&] {
          clock.advance(24h);
          return costs(3);
        };
        CHECK(co_await sluice::asio::guarded(daily, "a", 1, 0s, slow) == 3);
        CHECK(daily.peek("a").remaining == 10);
        co_await sluice::asio::guarded(jobs, "a", 1, 0s,
                                       [&](Lease&) -> boost::asio::awaitable<void> {
                                         CHECK(jobs.peek("a").remaining == 0);
                                         co_return;
                                       });
        CHECK(jobs.peek("a").remaining == 1);
        const int value = co_await sluice::asio::with_backoff(gates, scopes,
                                                              [&]() -> boost::asio::awaitable<int> {
                                                                if (++attempts < 3)
                                                                  throw RateLimited(10s);
                                                                co_return 42;
                                                              });
        CHECK(value == 42);
        over = true;
      },
      [](std::exception_ptr failed) { CHECK_FALSE(failed); });
  for (int i = 0; i < 3; ++i) {
    context.poll();
    clock.advance(10s);
  }
  CHECK(attempts == 3);
  CHECK(over);
}

TEST_CASE("a shared sliding window is waited for by callbacks and coroutines", "[asio][waiting]") {
  Spent world;
  const SharedSlidingWindow limiter(*world.store, "rate");
  limiter.configure("api", RateType::overall, 1, 1s, SpentUnits::forgotten);
  REQUIRE(limiter.try_acquire("api"));
  const Time start = world.clock.now();
  std::vector<Span> granted;
  const auto note = [&](const Decision& decision) {
    CHECK(decision.allowed);
    granted.push_back(world.clock.now() - start);
  };
  async_acquire(limiter, "api", 1, 1h,
                boost::asio::bind_executor(world.context, [&](auto error, const Reservation& d) {
                  CHECK_FALSE(error);
                  note(d);
                }));
  boost::asio::co_spawn(
      world.context,
      [&]() -> boost::asio::awaitable<void> {
        auto later = async_acquire(limiter, "api", 1, 1h);
        note(co_await std::move(later)(use_awaitable));
      },
      boost::asio::detached);
  for (int i = 0; i < 3; ++i) {
    world.context.poll();
    world.clock.advance(1s);
  }
  world.context.run();
  CHECK(granted == std::vector<Span>{1s, 2s});
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
