#include <sluice/asio/acquire.hpp>
#include <sluice/asio/sleep.hpp>
#include <sluice/sim/world.hpp>
#include <sluice/sluice.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

// Production code: waits for its turn, first come, first served, then calls.
boost::asio::awaitable<void> worker(Store& store, int jobs, int& calls) {
  const TokenBucket bucket{store, "api", Quota::per_second(50).burst(5)};
  for (; jobs > 0; --jobs) {
    if (!co_await sluice::asio::async_acquire(bucket, "partner", 1, Deadline::never())) co_return;
    co_await sluice::asio::sleep_for(store.clock(), 1ms);  // here it would call the API
    ++calls;
  }
}

int main() {
  int calls = 0;
  const auto store = make_memory_store();  // or make_redis_store(), for a fleet
  boost::asio::io_context context;
  for (int i = 0; i < 3; ++i) {
    boost::asio::co_spawn(context, worker(*store, 4, calls), boost::asio::detached);
  }
  context.run();
  std::cout << calls << " calls by 3 workers in real time\n";

  calls = 0;
  sim::World world;
  for (int i = 0; i < 1000; ++i) {
    boost::asio::co_spawn(world, worker(world.store(), 1000, calls), boost::asio::detached);
  }
  world.run_for(1h);
  std::cout << calls << " calls by 1000 workers in an hour of virtual time\n";
}
