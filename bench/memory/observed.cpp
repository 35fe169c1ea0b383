// A decision that is observed: by an observer that does nothing, and by Metrics.
#include <benchmark/benchmark.h>

#include "sluice/sluice.hpp"

namespace {

using namespace sluice;

const Quota allowing = Quota::per_second(1'000'000'000).burst(1'000'000'000);
const Quota refusing = Quota::per_hour(1);
Observer nothing;
Metrics metrics;
Metrics metrics_without_keys({.keys = 0});

void decide(benchmark::State& state, const Quota& quota, Observer* observer) {
  StoreHandle store = make_memory_store();
  if (observer != nullptr) store = std::make_unique<ObservedStore>(store, *observer);
  const TokenBucket bucket(store, "api", quota);
  std::error_code error;
  (void)bucket.try_acquire("alice", error);
  for (auto _ : state) benchmark::DoNotOptimize(bucket.try_acquire("alice", error));
}
BENCHMARK_CAPTURE(decide, allowed, allowing, nullptr);
BENCHMARK_CAPTURE(decide, allowed_observed, allowing, &nothing);
BENCHMARK_CAPTURE(decide, allowed_metrics, allowing, &metrics);
BENCHMARK_CAPTURE(decide, refused, refusing, nullptr);
BENCHMARK_CAPTURE(decide, refused_observed, refusing, &nothing);
BENCHMARK_CAPTURE(decide, refused_metrics, refusing, &metrics);
BENCHMARK_CAPTURE(decide, refused_metrics_without_keys, refusing, &metrics_without_keys);

}  // namespace
