// A decision that is observed: by an observer that does nothing, and by Metrics.
#include <benchmark/benchmark.h>

#include "sluice/sluice.hpp"

namespace {

using namespace sluice;

const Quota quota = Quota::per_second(1'000'000'000).burst(1'000'000'000);

void allow(benchmark::State& state, const StoreHandle& store) {
  const TokenBucket bucket(store, "api", quota);
  std::error_code error;
  for (auto _ : state) benchmark::DoNotOptimize(bucket.try_acquire("alice", error));
}

void refuse(benchmark::State& state, const StoreHandle& store) {
  const TokenBucket bucket(store, "api", Quota::per_hour(1));
  std::error_code error;
  (void)bucket.try_acquire("alice", error);
  for (auto _ : state) benchmark::DoNotOptimize(bucket.try_acquire("alice", error));
}

void allowed(benchmark::State& state) { allow(state, make_memory_store()); }
BENCHMARK(allowed);

void refused(benchmark::State& state) { refuse(state, make_memory_store()); }
BENCHMARK(refused);

void observed_allowed(benchmark::State& state) {
  Observer nothing;
  allow(state, std::make_unique<ObservedStore>(make_memory_store(), nothing));
}
BENCHMARK(observed_allowed);

void observed_refused(benchmark::State& state) {
  Observer nothing;
  refuse(state, std::make_unique<ObservedStore>(make_memory_store(), nothing));
}
BENCHMARK(observed_refused);

void metrics_allowed(benchmark::State& state) {
  Metrics metrics;
  allow(state, std::make_unique<ObservedStore>(make_memory_store(), metrics));
}
BENCHMARK(metrics_allowed);

void metrics_refused(benchmark::State& state) {
  Metrics metrics;
  refuse(state, std::make_unique<ObservedStore>(make_memory_store(), metrics));
}
BENCHMARK(metrics_refused);

void metrics_refused_without_keys(benchmark::State& state) {
  Metrics metrics({.keys = 0});
  refuse(state, std::make_unique<ObservedStore>(make_memory_store(), metrics));
}
BENCHMARK(metrics_refused_without_keys);

}  // namespace
