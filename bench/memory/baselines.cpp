// The baselines as benchmarks. Names before the slash are read by comparisons.cpp.
#include "bench/memory/baselines.hpp"

#include <benchmark/benchmark.h>

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <cstdlib>

namespace sluice::bench {

Pinned::Pinned(const benchmark::State& state) {
  pthread_getaffinity_np(pthread_self(), sizeof(before_), &before_);
  if (state.threads() == 1) return;
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(static_cast<unsigned>(state.thread_index()), &own);
  pthread_setaffinity_np(pthread_self(), sizeof(own), &own);
}

Pinned::~Pinned() { pthread_setaffinity_np(pthread_self(), sizeof(before_), &before_); }

namespace {

void clock_read(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(std::chrono::steady_clock::now());
}
BENCHMARK(clock_read);

std::atomic<std::uint64_t> word{0};

void load_cas(benchmark::State& state) {
  const Pinned pinned(state);
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
  const Pinned pinned(state);
  for (auto _ : state) benchmark::DoNotOptimize(mutex_one.try_acquire());
}
BENCHMARK(mutex_bucket);
BENCHMARK(mutex_bucket)->Name("mutex_bucket_2t")->Threads(2)->UseRealTime();

/// Each step hangs on the last one: a whole miss of the memory, on huge pages as the table has
/// them.
void memory_miss(benchmark::State& state) {
  constexpr std::size_t words = std::size_t{6} << 20;
  static std::uint64_t* const memory = [] {
    constexpr std::size_t huge = std::size_t{2} << 20;
    void* const start = std::aligned_alloc(huge, words * sizeof(std::uint64_t));
    madvise(start, words * sizeof(std::uint64_t), MADV_HUGEPAGE);
    auto* const all = static_cast<std::uint64_t*>(start);
    for (std::size_t i = 0; i < words; ++i) all[i] = i * 0x9e3779b97f4a7c15;
    return all;
  }();
  std::uint64_t at = 1;
  for (auto _ : state) {
    at = at * 6364136223846793005 + memory[(at >> 20) % words];
    benchmark::DoNotOptimize(at);
  }
}
BENCHMARK(memory_miss);

void map_uniform(benchmark::State& state) {
  static MapLimiter limiter(100, 500, many);
  KeyText key;
  static const bool filled = [&] {
    for (std::size_t i = 0; i < many; ++i) {
      key(i);
      limiter.try_acquire(key.text());
    }
    return true;
  }();
  benchmark::DoNotOptimize(filled);
  Draw draw(7);
  for (auto _ : state) {
    key(draw());
    benchmark::DoNotOptimize(limiter.try_acquire(key.text()));
  }
}
BENCHMARK(map_uniform);

}  // namespace
}  // namespace sluice::bench
