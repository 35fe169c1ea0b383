// One key, through the public limiter class and the abstract Store.
#include <benchmark/benchmark.h>

#include "bench/memory/baselines.hpp"
#include "sluice/sluice.hpp"

namespace sluice::bench {
namespace {

/// One limiter bound to one key. The store lives as long as the program: threads share it.
struct Bound {
  explicit Bound(const Quota& quota, Clock* clock = nullptr, bool coarse = true)
      : store(make_memory_store({.max_keys = 1024, .clock = clock, .coarse_clock = coarse})),
        bucket(*store, "b", quota),
        bound(bucket.at("key")) {}

  std::unique_ptr<MemoryStore> store;
  TokenBucket bucket;
  BoundTokenBucket bound;
};

/// So much capacity that a benchmark never spends it, and a bucket that is never empty of spending.
const Quota busy = Quota::per_second(1000).burst(2'000'000'000);
/// So fast a rate that whatever was spent has drained by the next call.
const Quota idle = Quota::per_second(1'000'000'000).burst(1'000'000);

void acquire(benchmark::State& state, Bound& one) {
  const Pinned pinned(state);
  std::error_code error;
  run(state, true, [&] { return one.bound.try_acquire(error).allowed; });
}

void refuse(benchmark::State& state, Bound& one) {
  std::error_code error;
  while (one.bound.try_acquire(error)) {
  }
  run(state, false, [&] { return one.bound.try_acquire(error).allowed; });
}

void allow(benchmark::State& state) {
  static Bound one(busy);
  acquire(state, one);
}
BENCHMARK(allow);

void allow_drained(benchmark::State& state) {
  static Bound one(idle);
  acquire(state, one);
}
BENCHMARK(allow_drained);

void allow_fine_clock(benchmark::State& state) {
  static Bound one(busy, nullptr, false);
  acquire(state, one);
}
BENCHMARK(allow_fine_clock);

void allow_own_now(benchmark::State& state) {
  static VirtualClock clock;
  static Bound one(busy, &clock);
  acquire(state, one);
}
BENCHMARK(allow_own_now);

void allow_2t(benchmark::State& state) {
  static Bound one(busy);
  acquire(state, one);
}
BENCHMARK(allow_2t)->Threads(2)->UseRealTime();

void refuse_for_long(benchmark::State& state) {
  static Bound one(Quota::per_hour(3));
  refuse(state, one);
}
BENCHMARK(refuse_for_long);

void refuse_for_short(benchmark::State& state) {
  static Bound one(Quota::per_minute(1'000).burst(1));
  std::error_code error;
  // One call every 60 ms is admitted, all between them are refused: `allowed` says how many.
  std::uint64_t allowed = 0;
  for (auto _ : state) allowed += one.bound.try_acquire(error).allowed ? 1U : 0U;
  state.counters["allowed"] = static_cast<double>(allowed);
}
BENCHMARK(refuse_for_short);

}  // namespace
}  // namespace sluice::bench
