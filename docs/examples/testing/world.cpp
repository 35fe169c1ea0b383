// The blocks of docs/testing.md about coroutines.
#include <sluice/asio/acquire.hpp>
#include <sluice/asio/sleep.hpp>
#include <sluice/sluice.hpp>
#include <sluice/testing/catch2.hpp>
#include <sluice/testing/world.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

/// Production code: a worker that calls an API, and waits a second when its store is away.
boost::asio::awaitable<void> call_api(Store& store, int calls) {
  const TokenBucket limit(store, "api", Quota::per_second(10).burst(1));
  while (calls > 0) {
    Span pause = 20ms;  // here it would call
    try {
      if (!co_await sluice::asio::async_acquire(limit, "partner", 1, Deadline::never())) co_return;
      --calls;
    } catch (const boost::system::system_error&) {
      pause = 1s;
    }
    co_await sluice::asio::sleep_for(store.clock(), pause);
  }
}

TEST_CASE_METHOD(WorldFixture, "three workers share the rate, also when one loses its store") {
  const auto network = sim::Delay::uniform(1ms, 4ms);
  for (const char* name : {"one", "two", "three"}) {
    WorldClient& worker = client(name, {.to_store = network, .from_store = network});
    if (name == std::string("one")) worker.faults.play(FaultScript("ok*20 not_connected*3"));
    boost::asio::co_spawn(world, call_api(worker.store, 100), boost::asio::detached);
  }
  CHECK(advance_until_idle(world) < 32s);  // 300 calls at 10 a second
  CHECK_THAT(trace(), keeps_rate({.burst = 1, .units = 10, .period = 1s}));
}
