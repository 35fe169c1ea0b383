// A busy World as one number, the same in every build. Threading: single-threaded.
#include <algorithm>
#include <set>

#include "sim/tests/world/fixture.hpp"
#include "sim/tests/world/pinned_world_trace.hpp"

using namespace sluice;
using namespace sluice::test;

// A change of the World or of the limiter changes them, and is meant to be noticed here.
TEST_CASE("the World's own trace is the pinned one, whatever compiled it") {
  for (const auto& [options, expected] : pinned_world_traces) {
    CAPTURE(options.shuffle_ties);
    CHECK(trace_of(options) == expected);
  }
}

TEST_CASE("the World's own trace is its seed's") {
  const WorldOptions shuffled{.seed = 5, .shuffle_ties = true};
  const std::set<std::uint64_t> traces{trace_of({.seed = 5}), trace_of({.seed = 6}),
                                       trace_of(shuffled)};
  CHECK(traces.size() == 3);
  CHECK(trace_of(shuffled) == trace_of(shuffled));
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
