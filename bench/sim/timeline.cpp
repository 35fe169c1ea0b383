// Events a second of the timeline, beside bare heaps that do nothing but order.
// The hold model: N events are pending; each one that runs schedules the next of its own after an
// exponential time. items_per_second is events a second. Threading: single-threaded.
#include <benchmark/benchmark.h>

#include <queue>
#include <vector>

#include "bench/sim/spans.hpp"
#include "sluice/sim/timeline.hpp"

namespace {

using namespace sluice;
using namespace sluice::sim;
using sluice::bench::Spans;

void count_events(benchmark::State& state) {
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}

/// The floor for a binary heap: times and sequence numbers, no actions, no clock.
void bare_binary_heap(benchmark::State& state) {
  using Entry = std::pair<Word, std::uint64_t>;
  Spans spans;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap;
  std::uint64_t sequence = 0;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    heap.emplace(spans.next().count(), sequence++);
  }
  for (auto _ : state) {
    const Word now = heap.top().first;
    heap.pop();
    heap.emplace(now + spans.next().count(), sequence++);
  }
  benchmark::DoNotOptimize(heap.top());
  count_events(state);
}

/// A timeline on which so many events are pending.
struct Held {
  explicit Held(std::int64_t pending) {
    for (std::int64_t i = 0; i < pending; ++i) run(0);
  }
  void run(std::uint64_t) { timeline.after<&Held::run>(spans.next(), *this); }

  VirtualClock clock{to_time(0)};
  Timeline timeline{clock};
  Spans spans;
};

void timeline_hold(benchmark::State& state) {
  Held held(state.range(0));
  for (auto _ : state) held.timeline.step();
  count_events(state);
}

/// Each event sets a time-out that is cancelled before it runs, 1 s of virtual time later.
void timeline_with_cancelled_timers(benchmark::State& state) {
  Held held(state.range(0));
  std::vector<Timeline::Timer> timeouts(static_cast<std::size_t>(state.range(0)));
  std::size_t place = 0;
  for (auto _ : state) {
    held.timeline.step();
    held.timeline.cancel(timeouts[place]);
    timeouts[place] = held.timeline.after(
        std::chrono::seconds{3}, [](void*, std::uint64_t) {}, nullptr);
    place = place + 1 == timeouts.size() ? 0 : place + 1;
  }
  count_events(state);
}

BENCHMARK(bare_binary_heap)->Arg(2'000)->Arg(100'000);
BENCHMARK(timeline_hold)->Arg(2'000)->Arg(100'000);
BENCHMARK(timeline_with_cancelled_timers)->Arg(2'000);

}  // namespace
