// The baselines as benchmarks. Names before the slash are read by targets.cpp.
#include "bench/memory/baselines.hpp"

#include <benchmark/benchmark.h>

namespace sluice::bench {
namespace {

void clock_read(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(std::chrono::steady_clock::now());
}
BENCHMARK(clock_read);

std::atomic<std::uint64_t> word{0};

void load_cas(benchmark::State& state) {
  for (auto _ : state) {
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    while (!word.compare_exchange_weak(seen, seen + 1)) {
    }
  }
}
BENCHMARK(load_cas);
BENCHMARK(load_cas)->Name("load_cas_2t")->Threads(2)->UseRealTime();

MutexBucket mutex_one(1e9, 1e15);

void mutex_bucket(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(mutex_one.try_acquire());
}
BENCHMARK(mutex_bucket);
BENCHMARK(mutex_bucket)->Name("mutex_bucket_2t")->Threads(2)->UseRealTime();

void map_uniform(benchmark::State& state) {
  static MapLimiter limiter(100, 500, many);
  static const bool filled = [] {
    for (const std::string& key : many_keys()) limiter.try_acquire(key);
    return true;
  }();
  benchmark::DoNotOptimize(filled);
  Draw draw(7);
  const auto& keys = many_keys();
  for (auto _ : state) benchmark::DoNotOptimize(limiter.try_acquire(keys[draw()]));
}
BENCHMARK(map_uniform);

}  // namespace
}  // namespace sluice::bench
