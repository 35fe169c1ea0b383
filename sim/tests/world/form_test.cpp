// One worker, unchanged, in production form and in a World. Threading: single-threaded.
// The only tests here that let real time pass, a few milliseconds.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>

#include "sim/tests/world/fixture.hpp"
#include "sluice/asio.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/memory_store.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

/// What a user ships: takes `calls` permits, waiting as the limiter says.
net::awaitable<void> worker(const TokenBucket& bucket, Clock& clock, int calls,
                            std::vector<Time>& made) {
  while (calls > 0) {
    const Decision decision =
        co_await sluice::asio::async_try_acquire(bucket, "api", 1, net::use_awaitable);
    if (decision.allowed) {
      made.push_back(decision.at);
      --calls;
    } else {
      co_await sluice::asio::sleep_for(clock, decision.retry_after);
    }
  }
}

const Quota quota = Quota::per_second(500).burst(1);

}  // namespace

TEST_CASE("a worker runs in a World as it is shipped, on exact times") {
  World world;
  const Time start = world.now();
  const TokenBucket bucket(world.store(), "worker", quota);
  std::vector<Time> made;
  net::co_spawn(world, worker(bucket, world.clock(), 5, made), Rethrow{});
  world.run();
  CHECK(made == std::vector<Time>{start, start + 2ms, start + 4ms, start + 6ms, start + 8ms});
}

TEST_CASE("the same worker runs in an io_context, in real time") {
  net::io_context context;
  const auto store = make_memory_store();
  const TokenBucket bucket(*store, "worker", quota);
  std::vector<Time> made;
  net::co_spawn(context, worker(bucket, store->clock(), 5, made), Rethrow{});
  context.run();
  REQUIRE(made.size() == 5);
  CHECK(made.back() - made.front() >= 8ms);
}

TEST_CASE("in real time, timers are cancelled and end as they do in a World") {
  SystemClock clock;
  net::io_context context;
  const Time start = clock.now();
  std::vector<Error> errors;
  const auto note = [&](Error error) { errors.push_back(error); };
  net::cancellation_signal signal;
  {
    sluice::asio::Timer timer(context, clock);
    timer.expires_after(1h);
    timer.async_wait(note);
    timer.async_wait(net::bind_cancellation_slot(signal.slot(), note));
    signal.emit(net::cancellation_type::total);
    CHECK(timer.expires_after(2ms) == 1);
    timer.async_wait(note);
    context.run();
    CHECK(clock.now() >= start + 2ms);
    timer.expires_at(Time::max());
    timer.async_wait(note);
  }
  context.restart();
  context.run();
  const Error aborted = net::error::operation_aborted;
  CHECK(errors.size() == 4);
  CHECK(std::count(errors.begin(), errors.end(), aborted) == 3);
  sluice::asio::sleep_for(clock, -1s, net::bind_executor(context, note));
  CHECK(errors.size() == 4);
  context.restart();
  context.run();
  CHECK(errors.size() == 5);
}

TEST_CASE("an io_context that ends with waits in real time destroys their handlers") {
  SystemClock clock;
  int alive = 0;
  bool called = false;
  {
    net::io_context context;
    sluice::asio::Timer timer(context, clock);
    timer.expires_after(1h);
    timer.async_wait([&, counted = Counted(alive)](Error) { called = true; });
    net::co_spawn(
        context,
        [&, counted = Counted(alive)]() -> net::awaitable<void> {
          co_await sluice::asio::sleep_for(clock, 1h, net::use_awaitable);
          called = true;
        },
        net::detached);
    context.poll();
    CHECK(alive == 2);
  }
  CHECK(alive == 0);
  CHECK_FALSE(called);
}
