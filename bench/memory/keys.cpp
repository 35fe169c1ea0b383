// A million keys, drawn uniformly: by name, by bound limiters, and in batches.
#include <benchmark/benchmark.h>

#include "bench/memory/baselines.hpp"
#include "sluice/sluice.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t batch = 16;

struct Million {
  Million()
      : store(make_memory_store({.max_keys = many})),
        bucket(*store, "b", Quota::per_second(100).burst(500)) {
    bound.reserve(many);
    for (const std::string& key : many_keys()) {
      bound.push_back(bucket.at(key));
      bound.back().try_acquire();
    }
  }

  std::unique_ptr<MemoryStore> store;
  TokenBucket bucket;
  std::vector<BoundTokenBucket> bound;
};

Million& million() {
  static Million one;
  return one;
}

void keys_by_name(benchmark::State& state) {
  Million& m = million();
  const auto& keys = many_keys();
  Draw draw(7);
  std::error_code error;
  for (auto _ : state) benchmark::DoNotOptimize(m.bucket.try_acquire(keys[draw()], error));
  const MemoryStats stats = m.store->stats();
  state.counters["bytes_per_key"] = static_cast<double>(stats.bytes) / static_cast<double>(many);
  state.counters["overflowed"] = static_cast<double>(stats.overflowed);
}
BENCHMARK(keys_by_name);

void keys_bound(benchmark::State& state) {
  Million& m = million();
  Draw draw(7);
  std::error_code error;
  for (auto _ : state) benchmark::DoNotOptimize(m.bound[draw()].try_acquire(error));
}
BENCHMARK(keys_bound);

/// Each iteration is one decision: the loop runs in batches.
template <class MakeStep>
void run_batches(benchmark::State& state, const MakeStep& make_step) {
  Million& m = million();
  Draw draw(7);
  std::vector<Step> steps(batch, make_step(0));
  const std::vector<Plan> plans(steps.begin(), steps.end());
  std::array<Decision, batch> results;
  std::array<std::error_code, batch> errors;
  while (state.KeepRunningBatch(batch)) {
    for (Step& step : steps) step = make_step(draw());
    decide_batch(*m.store, plans, results, errors);
    benchmark::DoNotOptimize(results);
  }
}

void batch_by_name(benchmark::State& state) {
  Million& m = million();
  const auto& keys = many_keys();
  run_batches(state, [&](std::size_t i) { return m.bucket.take(keys[i]); });
}
BENCHMARK(batch_by_name);

void batch_bound(benchmark::State& state) {
  Million& m = million();
  run_batches(state, [&](std::size_t i) { return m.bound[i].take(); });
}
BENCHMARK(batch_bound);

}  // namespace
}  // namespace sluice::bench
