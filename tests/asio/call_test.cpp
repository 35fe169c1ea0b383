// async_call() and guarded() of coroutines: what is charged, and what a refusal by the API changes.
// Threading: everything on the test's thread.
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
using sluice::asio::async_call;

namespace {

struct World {
  VirtualClock clock;
  std::unique_ptr<Store> store = make_virtual_store(clock);
  TokenBucket bucket{*store, "b", Quota::per_second(1).burst(1)};
  FixedWindow window{*store, "w", 1, Calendar::every(1min)};
  Gates gates{*store, "g", {"account"}, {.ramp = 0s, .spacing = 0s}};
  Scope account = gates.scope("account", 1);
  boost::asio::io_context context;

  void advance(Span span) {
    context.poll();
    clock.advance(span);
    context.restart();
    context.poll();
  }
};

}  // namespace

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

TEST_CASE("the exception of a coroutine whose cost is not charged has the result",
          "[asio][claims]") {
  World world;
  testing::FaultyStore store(*world.store);
  const TokenBucket tokens(store, "t", Quota::per_hour(1000));
  const SlidingWindow windows(store, "w", {{1000, 1h}});
  Estimator estimator({.least = 1});
  const LearnedEstimate learned = estimator.of("model", 300);
  const Call call({{tokens, "a", learned}, {windows, "a", Estimate{300}}});
  struct Row {
    Word cost;
    Errc code;
  };
  for (const Row& row :
       {Row{120, Errc::invalid_argument}, Row{-1, Errc::invalid_cost},
        Row{LearnedEstimate::max_cost + 1, Errc::invalid_cost}, Row{500, Errc::not_connected}}) {
    CAPTURE(row.cost);
    tokens.reset("a");
    windows.reset("a");
    const auto served = [&](Grants& grants) -> awaitable<Costed<std::string>> {
      if (row.code == Errc::invalid_argument) grants.settle(1, 10);  // which may not be done twice
      if (row.code == Errc::not_connected) {
        store.fail_all(testing::Fault::not_executed(Errc::not_connected));
      }
      co_return Costed<std::string>{"answer", row.cost};
    };
    std::string result;
    const auto look = [&](const std::exception_ptr& failed) {
      try {
        std::rethrow_exception(failed);
      } catch (NotSettled<std::string>& error) {
        result = error.result();
        CHECK(error.code() == row.code);
        CHECK(std::string(error.what()).find("Grants::settle: ") == 0);
      }
    };
    boost::asio::co_spawn(
        world.context, async_call(call, served),
        [&](const std::exception_ptr& failed, const std::string& /*result*/) { look(failed); });
    world.context.restart();
    world.context.poll();
    store.heal();
    CHECK(result == "answer");
    CHECK(tokens.peek("a").remaining == 700);
    CHECK(windows.peek("a").remaining == (row.code == Errc::invalid_argument ? 990 : 700));
    // What a call has cost is known, if it cannot be charged.
    CHECK(learned.cost().value() == (row.code == Errc::not_connected ? 511 : 300));
  }
}

TEST_CASE("a refusal that cannot be told to the gate ends the call of a coroutine in that error",
          "[asio][claims]") {
  World world;
  testing::FaultyStore store(*world.store);
  const Gates gates(store, "told", {"account"});
  const Call call({{gates, gates.scope("account", 1)}}, {.attempts = 1});
  std::exception_ptr thrown;
  boost::asio::co_spawn(world.context,
                        async_call(call,
                                   [&]() -> awaitable<void> {
                                     store.fail_all(testing::Fault::not_executed());
                                     throw RateLimited(1s);
                                     co_return;
                                   }),
                        [&](std::exception_ptr failed) { thrown = std::move(failed); });
  world.context.poll();
  REQUIRE(thrown);
  CHECK_THROWS_AS(std::rethrow_exception(thrown), boost::system::system_error);
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

TEST_CASE("a call of a coroutine goes to the other alternative after a refusal",
          "[asio][first_of]") {
  World world;
  const Scope b = world.gates.scope("account", 2);
  const Call call(first_of({{{world.bucket, "a"}, {world.gates, world.account}},
                            {{world.bucket, "b"}, {world.gates, b}}}));
  std::vector<std::size_t> called;
  boost::asio::co_spawn(
      world.context,
      [&]() -> awaitable<void> {
        const auto function = [&called](Grants& grants) -> awaitable<void> {
          called.push_back(grants.alternative());
          if (called.size() == 1) throw RateLimited(10s);
          co_return;
        };
        co_await async_call(call, function);
      },
      boost::asio::detached);
  world.advance(0s);
  CHECK(called == std::vector<std::size_t>{0, 1});
  CHECK_FALSE(world.gates.peek(world.account).allowed);
  CHECK(world.gates.peek(b).allowed);
  CHECK(world.bucket.peek("a").allowed);
  CHECK_FALSE(world.bucket.peek("b").allowed);
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
      [&]() -> awaitable<void> {
        const auto text = co_await sluice::asio::guarded(
            tokens, "a", 500, 0s, []() -> awaitable<Costed<std::string>> {
              co_return Costed<std::string>{"answer", 120};
            });
        CHECK(text == "answer");
        CHECK(tokens.peek("a").remaining == 880);
        const auto costs = [](Word actual) -> awaitable<Costed<Word>> {
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
        co_await sluice::asio::guarded(jobs, "a", 1, 0s, [&](Lease&) -> awaitable<void> {
          CHECK(jobs.peek("a").remaining == 0);
          co_return;
        });
        CHECK(jobs.peek("a").remaining == 1);
        const int value =
            co_await sluice::asio::with_backoff(gates, scopes, [&]() -> awaitable<int> {
              if (++attempts < 3) throw RateLimited(10s);
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

}  // namespace sluice::test
