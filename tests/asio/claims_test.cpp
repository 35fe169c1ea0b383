// async_acquire() of several limits and async_call(), under Asio's rules. Threading: as the cases
// say.
#include <array>
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
#include <vector>

#include "sluice/asio/calls.hpp"
#include "sluice/sluice.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

using namespace std::chrono_literals;
using boost::asio::awaitable;
using sluice::asio::async_acquire;
using sluice::asio::async_call;

namespace {

constexpr auto aborted = boost::asio::error::operation_aborted;

struct World {
  VirtualClock clock;
  std::unique_ptr<Store> store = make_virtual_store(clock);
  TokenBucket bucket{*store, "b", Quota::per_second(1).burst(1)};
  FixedWindow window{*store, "w", 1, Calendar::every(1min)};
  Gates gates{*store, "g", {"account"}, {.ramp = 0s, .spacing = 0s}};
  Scope account = gates.scope("account", 1);
  std::array<Claim, 2> claims{Claim(bucket, "a"), Claim(window, "a")};
  boost::asio::io_context context;

  void advance(Span span) {
    context.poll();
    clock.advance(span);
    context.restart();
    context.poll();
  }
};

}  // namespace

TEST_CASE("callbacks, deferred calls and coroutines wait for several limits", "[asio][claims]") {
  World world;
  std::vector<int> order;
  async_acquire(world.claims, 1h,
                boost::asio::bind_executor(world.context, [&](auto error, const Grants& grants) {
                  CHECK_FALSE(error);
                  CHECK(grants.size() == 2);
                  order.push_back(1);
                }));
  auto later = async_acquire(world.claims, 1h);
  boost::asio::co_spawn(
      world.context,
      [&]() -> awaitable<void> {
        const Grants second = co_await std::move(later);
        CHECK(second);
        order.push_back(2);
        const Grants none = co_await async_acquire(world.claims, 10s);
        CHECK_FALSE(none);
        CHECK(none.decision().step == 1);
        order.push_back(3);
      },
      boost::asio::detached);
  world.advance(1min);
  CHECK(order == std::vector{1, 2, 3});
}

TEST_CASE("a call of several limits is cancelled in whichever queue it waits", "[asio][claims]") {
  World world;
  std::array<boost::asio::cancellation_signal, 3> signals;
  int over = 0;
  REQUIRE(world.bucket.try_acquire("a"));
  REQUIRE(world.window.try_acquire("a"));
  for (auto& signal : signals) {
    async_acquire(world.claims, Deadline::never(),
                  boost::asio::bind_cancellation_slot(
                      signal.slot(),
                      boost::asio::bind_executor(world.context, [&](auto error, const Grants&) {
                        CHECK(error == aborted);
                        ++over;
                      })));
  }
  CHECK(world.bucket.waiting("a") == 0);
  CHECK(world.window.waiting("a") == 3);
  signals[1].emit(boost::asio::cancellation_type::terminal);
  world.context.poll();
  CHECK(over == 1);
  CHECK(world.window.waiting("a") == 2);
  world.window.cancel_waits();
  world.context.poll();
  CHECK(over == 3);
  signals[0].emit(boost::asio::cancellation_type::all);  // over already
}

TEST_CASE("calls of several limits on a context that is destroyed leave their queues",
          "[asio][claims]") {
  World world;
  const auto alive = std::make_shared<int>(0);
  {
    boost::asio::io_context context;
    for (int i = 0; i < 3; ++i) {
      async_acquire(world.claims, 1h,
                    boost::asio::bind_executor(context, [alive](auto, const Grants&) {}));
      boost::asio::co_spawn(
          context,
          [&, alive]() -> awaitable<void> {
            co_await async_call(Call(world.claims), [] { return awaitable<void>(); });
          },
          boost::asio::detached);
    }
    context.poll();
    CHECK(world.window.waiting("a") == 5);
  }
  CHECK(alive.use_count() == 1);
  CHECK(world.window.waiting("a") == 0);
  CHECK(world.clock.timers() == 0);
}

TEST_CASE("thousands of calls of several limits on several threads end once each",
          "[asio][claims]") {
  Random random("thousands of calls of several limits on several threads end once each");
  CAPTURE(random.repeat());
  const auto store = make_memory_store();
  const ConcurrencyLimiter jobs(*store, "jobs", 3);
  const ConcurrencyLimiter places(*store, "places", 4);
  const TokenBucket bucket(*store, "b", Quota::per_second(100'000).burst(1));
  const std::array<std::vector<Claim>, 3> kinds{
      std::vector<Claim>{{jobs, "a"}, {bucket, "a"}, {places, "a"}},
      std::vector<Claim>{{places, "a"}, {jobs, "a"}},
      std::vector<Claim>{{bucket, "a"}, {places, "a", 2}}};
  const std::size_t waits = scaled(6'000, 600);
  boost::asio::thread_pool pool(3);
  std::vector<boost::asio::cancellation_signal> signals(waits);
  std::vector<std::atomic<int>> ends(waits);
  std::atomic<std::size_t> granted{0};
  std::atomic<std::size_t> cancelled{0};
  for (std::size_t i = 0; i < waits; ++i) {
    const auto strand = boost::asio::make_strand(pool);
    boost::asio::post(strand, [&, i, strand] {
      async_acquire(kinds[i % kinds.size()], Deadline::never(),
                    boost::asio::bind_cancellation_slot(
                        signals[i].slot(),
                        boost::asio::bind_executor(strand, [&, i](auto error, const Grants& all) {
                          ++ends[i];
                          if (error) {
                            ++cancelled;
                          } else if (all) {
                            ++granted;  // the places are given back
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
  CHECK(jobs.peek("a").remaining == 3);
  CHECK(places.peek("a").remaining == 4);
}

TEST_CASE("a call in a coroutine is settled, refunded and tried again", "[asio][claims]") {
  World world;
  const TokenBucket tokens(*world.store, "t", Quota::per_hour(1000));
  const Call call(
      {{world.bucket, "a"}, {tokens, "a", Estimate{500}}, {world.gates, world.account}});
  int tries = 0;
  bool over = false;
  boost::asio::co_spawn(
      world.context,
      [&]() -> awaitable<void> {
        const int value = co_await async_call(call, [&](Grants& grants) -> awaitable<Costed<int>> {
          CHECK(grants.size() == 3);
          if (++tries == 1) throw RateLimited(10s);
          co_return Costed<int>{7, 100};
        });
        CHECK(value == 7);
        over = true;
      },
      [](std::exception_ptr failed) { CHECK_FALSE(failed); });
  world.context.poll();
  CHECK(tries == 1);
  CHECK(tokens.peek("a").remaining == 1000);
  CHECK(world.gates.peek(world.account).retry_after == 10s);
  world.advance(10s);
  CHECK(tries == 2);
  CHECK(over);
  CHECK(tokens.peek("a").remaining == 900);

  std::exception_ptr thrown;
  const Call once({{tokens, "a", 10}}, {.attempts = 1});
  boost::asio::co_spawn(
      world.context,
      async_call(once, []() -> awaitable<void> { throw RateLimited(1s, 0, "final"); }),
      [&](std::exception_ptr failed) { thrown = std::move(failed); });
  world.context.restart();
  world.context.poll();
  REQUIRE(thrown);
  CHECK_THROWS_WITH(std::rethrow_exception(thrown), "final");
  CHECK(tokens.peek("a").remaining == 900);
}

TEST_CASE("the exception of a coroutine whose cost cannot be charged has the result",
          "[asio][claims]") {
  World world;
  testing::FaultyStore store(*world.store);
  const SlidingWindow windows(store, "w", {{1000, 1h}});
  const Call call({{windows, "a", Estimate{500}}});
  const auto served = [&]() -> awaitable<Costed<std::string>> {
    store.fail_all(testing::Fault::not_executed(Errc::not_connected));
    co_return Costed<std::string>{"answer", 2'000};
  };
  std::exception_ptr thrown;
  boost::asio::co_spawn(world.context, async_call(call, served),
                        [&](std::exception_ptr failed, const std::string& /*result*/) {
                          thrown = std::move(failed);
                        });
  world.context.poll();
  REQUIRE(thrown);
  std::string result;
  try {
    std::rethrow_exception(thrown);
  } catch (NotSettled<std::string>& error) {
    result = error.result();
    CHECK(error.code() == Errc::not_connected);
    CHECK(std::string(error.what()).find("Grants::settle: ") == 0);
  }
  CHECK(result == "answer");
  store.heal();
  CHECK(windows.peek("a").remaining == 500);
}

TEST_CASE("a coroutine whose cost is not in order settles and learns nothing, and keeps the result",
          "[asio][claims]") {
  World world;
  const TokenBucket tokens(*world.store, "t", Quota::per_hour(1000));
  const SlidingWindow windows(*world.store, "w", {{1000, 1h}});
  Estimator estimator({.least = 1});
  const LearnedEstimate learned = estimator.of("model", 300);
  const Call call({{tokens, "a", learned}, {windows, "a", Estimate{300}}});
  struct Row {
    Word cost;
    bool settles_itself;
    Errc code;
  };
  for (const Row& row : {Row{120, true, Errc::invalid_argument}, Row{-1, false, Errc::invalid_cost},
                         Row{LearnedEstimate::max_cost + 1, false, Errc::invalid_cost}}) {
    CAPTURE(row.cost);
    tokens.reset("a");
    windows.reset("a");
    const auto served = [&](Grants& grants) -> awaitable<Costed<std::string>> {
      if (row.settles_itself) grants.settle(1, 10);
      co_return Costed<std::string>{"answer", row.cost};
    };
    int results = 0;
    const auto look = [&](const std::exception_ptr& failed) {
      try {
        std::rethrow_exception(failed);
      } catch (NotSettled<std::string>& error) {
        results += error.result() == "answer" ? 1 : 0;
        CHECK(error.code() == row.code);
      }
    };
    boost::asio::co_spawn(
        world.context, async_call(call, served),
        [&](const std::exception_ptr& failed, const std::string& /*result*/) { look(failed); });
    world.context.restart();
    world.context.poll();
    CHECK(results == 1);
    CHECK(tokens.peek("a").remaining == 700);
    CHECK(windows.peek("a").remaining == (row.settles_itself ? 990 : 700));
    CHECK(learned.cost().value() == 300);
  }
}

TEST_CASE("a call that is cancelled as its function ends is accounted for all the same",
          "[asio][claims]") {
  World world;
  const TokenBucket tokens(*world.store, "t", Quota::per_hour(1000));
  const Call call({{tokens, "a", Estimate{500}}, {world.gates, world.account}});
  boost::asio::cancellation_signal signal;
  const auto start = [&](auto function, auto done) {
    boost::asio::co_spawn(world.context, async_call(call, function),
                          boost::asio::bind_cancellation_slot(signal.slot(), done));
    world.context.restart();
    world.context.poll();
  };
  int value = 0;
  start(
      [&]() -> awaitable<Costed<int>> {
        signal.emit(boost::asio::cancellation_type::terminal);
        co_return Costed<int>{7, 100};
      },
      [&](const std::exception_ptr& failed, int result) {
        CHECK_FALSE(failed);
        value = result;
      });
  CHECK(value == 7);
  CHECK(tokens.peek("a").remaining == 900);

  std::exception_ptr thrown;
  start(
      [&]() -> awaitable<void> {
        signal.emit(boost::asio::cancellation_type::terminal);
        throw RateLimited(10s);
        co_return;
      },
      [&](std::exception_ptr failed) { thrown = std::move(failed); });
  REQUIRE(thrown);
  CHECK_THROWS_AS(std::rethrow_exception(thrown), boost::system::system_error);
  CHECK(tokens.peek("a").remaining == 900);
  CHECK(world.gates.peek(world.account).retry_after == 10s);
}

TEST_CASE("a call that the API refuses is tried again before those that came later",
          "[asio][claims]") {
  World world;
  const Call call({{world.window, "a"}, {world.gates, world.account}});
  std::vector<int> order;
  bool refuses = true;
  for (int name = 0; name < 3; ++name) {
    boost::asio::co_spawn(
        world.context,
        [&, name]() -> awaitable<void> {
          const auto use = [&]() -> awaitable<void> {
            co_await sluice::asio::sleep_for(world.clock, 1s, boost::asio::use_awaitable);
            if (std::exchange(refuses, false)) throw RateLimited(10s);
            order.push_back(name);
          };
          co_await async_call(call, use);
        },
        [](std::exception_ptr failed) { CHECK_FALSE(failed); });
  }
  for (int i = 0; i < 300; ++i) world.advance(1s);
  CHECK(order == std::vector{0, 1, 2});
}

TEST_CASE("a call without a gate sleeps in its coroutine", "[asio][claims]") {
  World world;
  const Call call({{world.bucket, "a"}}, {.deadline = 1h});
  std::vector<Time> tries;
  boost::asio::co_spawn(world.context,
                        async_call(call,
                                   [&]() -> awaitable<void> {
                                     tries.push_back(world.clock.now());
                                     if (tries.size() == 1) throw RateLimited(3s);
                                     co_return;
                                   }),
                        [](std::exception_ptr failed) { CHECK_FALSE(failed); });
  world.advance(3s - 1us);
  CHECK(tries.size() == 1);
  world.advance(1us);
  CHECK(tries.size() == 2);
}

}  // namespace sluice::test
