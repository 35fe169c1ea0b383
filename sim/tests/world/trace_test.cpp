// A busy World as one number, the same in every build: by a hash of the test's own, and by the
// World's trace. Threading: single-threaded.
#include <algorithm>
#include <boost/asio/experimental/channel.hpp>
#include <set>

#include "sim/tests/world/fixture.hpp"
#include "sim/tests/world/pinned_world_trace.hpp"
#include "sluice/asio.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/sim/trace.hpp"

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

std::uint64_t busy_trace_of(const WorldOptions& options) {
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
  CHECK(busy_trace_of({.seed = 1}) == 0xbf8a53d5b0cf1c39);
  CHECK(busy_trace_of({.seed = 1, .shuffle_ties = true}) == 0x49086582897fef69);
}

TEST_CASE("a World's trace is its seed's") {
  CHECK(busy_trace_of({.seed = 5}) == busy_trace_of({.seed = 5}));
  CHECK(busy_trace_of({.seed = 5}) != busy_trace_of({.seed = 6}));
  const WorldOptions shuffled{.seed = 5, .shuffle_ties = true};
  CHECK(busy_trace_of(shuffled) == busy_trace_of(shuffled));
  CHECK(busy_trace_of(shuffled) != busy_trace_of({.seed = 5}));
}

TEST_CASE("the World's own trace is the pinned one, whatever compiled it") {
  for (const auto& [options, expected] : pinned_world_traces) {
    CAPTURE(options.shuffle_ties);
    CHECK(trace_of(options) == expected);
  }
}

TEST_CASE("the World's own trace is its seed's") {
  CHECK(trace_of({.seed = 5}) == trace_of({.seed = 5}));
  CHECK(trace_of({.seed = 5}) != trace_of({.seed = 6}));
  CHECK(trace_of({.seed = 5, .shuffle_ties = true}) != trace_of({.seed = 5}));
}

TEST_CASE("a trace tells runs apart by order, time and notes") {
  const auto trace = [](Span first, Span second, std::uint64_t note) {
    World world;
    sluice::asio::sleep_for(world.clock(), first, [](Error) {});
    sluice::asio::sleep_for(world.clock(), second, [&world, note](Error) {
      if (note != 0) world.note(1, 2, note);
    });
    world.run();
    return world.trace();
  };
  const std::set<std::uint64_t> traces{trace(1us, 1us, 0), trace(1us, 2us, 0), trace(2us, 1us, 0),
                                       trace(1us, 1us, 1), trace(1us, 1us, 2)};
  CHECK(traces.size() == 5);
  CHECK(trace(3us, 1us, 9) == trace(3us, 1us, 9));
}

TEST_CASE("an observer sees each step, and finds the first in which two runs differ") {
  const auto steps_of = [](std::uint64_t third) {
    World world;
    std::vector<TraceStep> steps;
    world.observe(
        [](void* context, const TraceStep& step) {
          static_cast<std::vector<TraceStep>*>(context)->push_back(step);
        },
        &steps);
    world.spawn([&]() -> net::awaitable<void> {
      for (std::uint32_t i = 0; i < 5; ++i) {
        co_await sluice::asio::sleep_for(world.clock(), 1s);
        world.note(i, 7, i == 2 ? third : i);
      }
    });
    world.run();
    CHECK(steps.back().trace == world.trace());
    CHECK(steps.size() == world.events() + 5);
    return steps;
  };
  const auto steps = steps_of(2);
  CHECK(steps == steps_of(2));
  const auto others = steps_of(3);
  REQUIRE(others.size() == steps.size());
  const auto [one, other] = std::mismatch(steps.begin(), steps.end(), others.begin());
  REQUIRE(one != steps.end());
  CHECK(one->is_note);
  CHECK(one->time == VirtualClock::default_start + 3s);
  CHECK(one->entity == 2);
  CHECK(one->kind == 7);
  CHECK(one->value == 2);
  CHECK(other->value == 3);
  const TraceStep event = *(one - 1);
  CHECK_FALSE(event.is_note);
  CHECK(event.time == one->time);
  CHECK(event.order == 3);
}
