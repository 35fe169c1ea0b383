// Events a second of a World: coroutine workers in the hold model of timeline.cpp, each asleep for
// exponential times, beside a plain callback loop over the Timeline (the bare heap is there too).
// Threading: single-threaded.
#include "sluice/sim/world.hpp"

#include <benchmark/benchmark.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "bench/sim/spans.hpp"
#include "sluice/asio/sleep.hpp"
#include "sluice/asio/timer.hpp"

namespace {

using namespace sluice;
using namespace sluice::sim;
using sluice::bench::Spans;
namespace net = boost::asio;

template <class Executor>
net::awaitable<void, Executor> sleeps(Clock& clock, Spans& pauses) {
  for (;;) co_await sluice::asio::sleep_for(clock, pauses.next());
}

net::awaitable<void> sleeps_with_frames(Clock& clock, Spans& pauses) {
  for (;;) co_await sluice::asio::sleep_for(clock, pauses.next(), net::use_awaitable);
}

net::awaitable<void> waits_on_timer(Clock& clock, Spans& pauses) {
  sluice::asio::Timer timer(co_await net::this_coro::executor, clock);
  for (;;) {
    timer.expires_after(pauses.next());
    co_await timer.async_wait(net::deferred);
  }
}

template <class Worker>
void run(benchmark::State& state, Worker worker) {
  Spans pauses;
  World world;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    net::co_spawn(world, worker(world.clock(), pauses), net::detached);
  }
  const Span batch = std::chrono::seconds{100'000} / state.range(0);  // about 100,000 events
  world.run_for(3 * batch);
  const std::uint64_t before = world.events();
  for (auto _ : state) world.run_for(batch);
  state.SetItemsProcessed(static_cast<std::int64_t>(world.events() - before));
}

void world_sleeps(benchmark::State& state) { run(state, &sleeps<World::Executor>); }
void world_sleeps_any_executor(benchmark::State& state) {
  run(state, &sleeps<net::any_io_executor>);
}
void world_sleeps_use_awaitable(benchmark::State& state) { run(state, &sleeps_with_frames); }
void world_timers(benchmark::State& state) { run(state, &waits_on_timer); }

BENCHMARK(world_sleeps)->Arg(2'000)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(world_sleeps_any_executor)->Arg(2'000)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(world_sleeps_use_awaitable)->Arg(2'000)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(world_timers)->Arg(2'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

}  // namespace
