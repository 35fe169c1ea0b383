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
    KeyText key;
    for (std::size_t i = 0; i < many; ++i) {
      bound.push_back(bucket.at(Key(key(i))));
      bound.back().try_acquire();
    }
    bindings = std::vector<Binding>(many);
    for (std::size_t i = 0; i < many; ++i) store->bind(Key(key(i), "b"), bindings[i]);
  }

  std::unique_ptr<MemoryStore> store;
  TokenBucket bucket;
  std::vector<BoundTokenBucket> bound;
  std::vector<Binding> bindings;
};

Million& million() {
  static Million one;
  return one;
}

void keys_by_name(benchmark::State& state) {
  Million& m = million();
  KeyText key;
  Draw draw(7);
  std::error_code error;
  for (auto _ : state) benchmark::DoNotOptimize(m.bucket.try_acquire(Key(key(draw())), error));
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

/// Keys whose hash the caller keeps, 32 bytes each, beside whatever else it keeps of them.
void keys_hashed(benchmark::State& state) {
  Million& m = million();
  Draw draw(7);
  std::error_code error;
  Step step = m.bucket.take("any");
  for (auto _ : state) {
    step.binding = &m.bindings[draw()];
    benchmark::DoNotOptimize(decide(*m.store, step, error));
  }
}
BENCHMARK(keys_hashed);

/// Each iteration is one decision: the loop runs in batches.
template <class SetStep>
void run_batches(benchmark::State& state, const SetStep& set_step) {
  Million& m = million();
  Draw draw(7);
  std::vector<Step> steps(batch, m.bucket.take("any"));
  const std::vector<Plan> plans(steps.begin(), steps.end());
  std::array<Decision, batch> results;
  std::array<std::error_code, batch> errors;
  while (state.KeepRunningBatch(batch)) {
    for (std::size_t i = 0; i < batch; ++i) set_step(steps[i], i, draw());
    decide_batch(*m.store, plans, results, errors);
    benchmark::DoNotOptimize(results);
  }
}

void batch_by_name(benchmark::State& state) {
  std::array<KeyText, batch> keys;
  run_batches(state,
              [&](Step& step, std::size_t i, std::size_t key) { step.key.tag = keys[i](key); });
}
BENCHMARK(batch_by_name);

void batch_hashed(benchmark::State& state) {
  run_batches(state, [](Step& step, std::size_t, std::size_t key) {
    step.binding = &million().bindings[key];
  });
}
BENCHMARK(batch_hashed);

}  // namespace
}  // namespace sluice::bench
