// The first of several alternatives in coroutines. Threading: everything on the test's thread.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <vector>

#include "sluice/asio/calls.hpp"
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

using namespace std::chrono_literals;
using boost::asio::awaitable;
using sluice::asio::async_acquire;
using sluice::asio::async_call;

namespace {

struct World {
  VirtualClock clock;
  std::unique_ptr<Store> store = make_virtual_store(clock);
  TokenBucket keys{*store, "keys", Quota::per_second(1).burst(1)};
  Gates gates{*store, "g", {"account"}, {.ramp = 0s, .spacing = 0s}};
  Scope a = gates.scope("account", "a");
  Scope b = gates.scope("account", "b");
  FirstOf either = first_of({{{keys, "a"}, {gates, a}}, {{keys, "b"}, {gates, b}}});
  boost::asio::io_context context;

  void advance(Span span) {
    context.poll();
    clock.advance(span);
    context.restart();
    context.poll();
  }
  void use_up() {
    (void)keys.try_acquire("a");
    (void)keys.try_acquire("b");
  }
};

}  // namespace

TEST_CASE("a coroutine takes the first alternative that is granted", "[asio][first_of]") {
  World world;
  (void)world.keys.try_acquire("a");
  world.clock.advance(500ms);
  (void)world.keys.try_acquire("b");
  std::optional<std::size_t> alternative;
  async_acquire(world.either, 5s,
                boost::asio::bind_executor(world.context, [&](auto error, const Grants& grants) {
                  CHECK_FALSE(error);
                  CHECK(grants);
                  alternative = grants.alternative();
                }));
  world.advance(499'999us);
  CHECK_FALSE(alternative);
  world.advance(1us);
  CHECK(alternative == std::size_t{0});
  world.advance(500ms);
  CHECK(world.keys.peek("b").allowed);
  CHECK_FALSE(world.keys.peek("a").allowed);
  CHECK(world.keys.waiting("b") == 0);
}

TEST_CASE("a coroutine that is cancelled leaves the queue of each alternative",
          "[asio][first_of]") {
  World world;
  world.use_up();
  boost::asio::cancellation_signal signal;
  boost::system::error_code ended;
  async_acquire(
      world.either, 5s,
      boost::asio::bind_executor(
          world.context, boost::asio::bind_cancellation_slot(
                             signal.slot(), [&](auto error, const Grants&) { ended = error; })));
  world.advance(10ms);
  CHECK(world.keys.waiting("a") == 1);
  CHECK(world.keys.waiting("b") == 1);
  signal.emit(boost::asio::cancellation_type::terminal);
  world.advance(0s);
  CHECK(ended == boost::asio::error::operation_aborted);
  CHECK(world.keys.waiting("a") == 0);
  CHECK(world.keys.waiting("b") == 0);
}

TEST_CASE("a context that ends takes its calls out of every queue", "[asio][first_of]") {
  World world;
  world.use_up();
  {
    boost::asio::io_context context;
    boost::asio::co_spawn(
        context,
        [&]() -> awaitable<void> {
          (void)co_await async_acquire(world.either, Deadline::never(), boost::asio::use_awaitable);
        },
        boost::asio::detached);
    context.poll();
    CHECK(world.keys.waiting("a") == 1);
  }
  CHECK(world.keys.waiting("a") == 0);
  CHECK(world.keys.waiting("b") == 0);
}

TEST_CASE("a call of a coroutine goes to the other alternative after a refusal",
          "[asio][first_of]") {
  World world;
  const Call call(world.either);
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
  CHECK_FALSE(world.gates.peek(world.a).allowed);
  CHECK(world.gates.peek(world.b).allowed);
  CHECK(world.keys.peek("a").allowed);
  CHECK_FALSE(world.keys.peek("b").allowed);
}

}  // namespace sluice::test
