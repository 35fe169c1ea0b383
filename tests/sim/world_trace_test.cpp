// A busy World as one number, the same in every build. Threading: single-threaded.
#include <boost/asio/experimental/channel.hpp>

#include "sluice/asio.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/sim/trace.hpp"
#include "tests/sim/world_fixture.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

using Channel = net::experimental::channel<void(Error, std::uint32_t)>;

struct Busy {
  explicit Busy(const WorldOptions& options) : world(options), done(world, 4) {}

  World world;
  TraceHash trace;
  Channel done;

  net::awaitable<void> work(std::uint32_t name, Store& store) {
    const TokenBucket bucket(store, "api", Quota::per_second(100).burst(5));
    SeededRng rng = stream(world.seed(), name, 1);
    const Delay pause = Delay::exponential(200ms);
    for (;;) {
      const Decision decision =
          co_await sluice::asio::async_try_acquire(bucket, "all", 1, net::use_awaitable);
      trace.fold(world.now(), name, decision.allowed ? 1 : 2,
                 static_cast<std::uint64_t>(decision.remaining));
      if (decision.allowed) {
        co_await done.async_send(Error(), name, net::use_awaitable);
        co_await sluice::asio::sleep_for(world.clock(), pause.sample(rng));
      } else {
        co_await sluice::asio::sleep_for(world.clock(), decision.retry_after);
      }
    }
  }

  net::awaitable<void> collect() {
    for (;;) {
      const std::uint32_t name = co_await done.async_receive(net::use_awaitable);
      trace.fold(world.now(), name, 3, 0);
    }
  }
};

std::uint64_t trace_of(const WorldOptions& options) {
  std::vector<std::unique_ptr<RemoteStore>> connections;
  Busy busy(options);
  net::co_spawn(busy.world, busy.collect(), Rethrow{});
  const Link link{Delay::log_normal(250us, 800us), Delay::log_normal(250us, 800us)};
  for (std::uint32_t i = 0; i < 50; ++i) {
    connections.push_back(busy.world.connect(link));
    net::co_spawn(busy.world, busy.work(i, *connections.back()), Rethrow{});
  }
  busy.world.run_for(5s);
  connections.clear();
  return busy.trace.value();
}

}  // namespace

// A change of the World or of the limiter changes them, and is meant to be noticed here.
TEST_CASE("the trace of a World is the pinned one, whatever compiled it") {
  CHECK(trace_of({.seed = 1}) == 0xbf8a53d5b0cf1c39);
  CHECK(trace_of({.seed = 1, .shuffle_ties = true}) == 0x49086582897fef69);
}

TEST_CASE("a World's trace is its seed's") {
  CHECK(trace_of({.seed = 5}) == trace_of({.seed = 5}));
  CHECK(trace_of({.seed = 5}) != trace_of({.seed = 6}));
  const WorldOptions shuffled{.seed = 5, .shuffle_ties = true};
  CHECK(trace_of(shuffled) == trace_of(shuffled));
  CHECK(trace_of(shuffled) != trace_of({.seed = 5}));
}
