// The world fixture. Threading: single-threaded.
#include "sluice/testing/world.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "sluice/asio.hpp"
#include "sluice/asio/sleep.hpp"
#include "sluice/sluice.hpp"
#include "sluice/testing/catch2.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

namespace {

/// As it would run in production: asks, and comes back when it was told to.
boost::asio::awaitable<void> worker(Store& store, int calls) {
  const TokenBucket limit(store, "upstream", Quota::per_second(10).burst(5));
  while (calls > 0) {
    Span pause = 500ms;  // if the store fails
    try {
      const Decision decision = co_await sluice::asio::async_try_acquire(
          limit, "upstream", 1, boost::asio::use_awaitable);
      pause = decision ? 10ms : decision.retry_after;
      if (decision) --calls;
    } catch (const boost::system::system_error&) {
    }
    co_await sluice::asio::sleep_for(store.clock(), pause);
  }
}

boost::asio::awaitable<void> endless(Clock& clock) {
  for (;;) co_await sluice::asio::sleep_for(clock, 1s);
}

}  // namespace

TEST_CASE_METHOD(WorldFixture,
                 "coroutines live through their minutes, and the trace knows who asked",
                 "[testing]") {
  for (const char* name : {"one", "two", "three"}) {
    boost::asio::co_spawn(world, worker(client(name).store, 100), boost::asio::detached);
  }
  const Span took = advance_until_idle(world);
  CHECK(took > 29s);
  CHECK(took < 31s);
  CHECK(world.outstanding_work() == 0);
  CHECK_THAT(trace(), keeps_rate({.burst = 5, .units = 10, .period = 1s}));
  CHECK_THAT(trace(), share_within(0) && never_fails());
}

TEST_CASE_METHOD(WorldFixture, "one worker's connection fails, and it recovers", "[testing]") {
  WorldClient& one = client("one");
  one.faults.play(FaultScript("ok*10 not_connected*20"));
  boost::asio::co_spawn(world, worker(one.store, 100), boost::asio::detached);
  world.run_for(8s);
  mark("the connection fails");
  (void)advance_until_idle(world);
  CHECK(one.faults.counts().failed == 20);
  CHECK_THAT(trace(), !never_fails() && recovers_within(20s));
}

TEST_CASE_METHOD(WorldFixture, "a world that never ends is an error, not an endless loop",
                 "[testing]") {
  boost::asio::co_spawn(world, endless(world.clock()), boost::asio::detached);
  CHECK_THROWS_AS(advance_until_idle(world, 1000), std::runtime_error);
}
