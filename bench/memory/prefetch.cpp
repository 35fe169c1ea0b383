// One bound key through a PrefetchStore: each thread spends a credit of its own. Beside allow and
// allow_2t, which decide every request exactly.
#include <benchmark/benchmark.h>

#include "bench/memory/baselines.hpp"
#include "sluice/prefetch_store.hpp"
#include "sluice/sluice.hpp"

namespace sluice::bench {
namespace {

struct Prefetch {
  std::unique_ptr<MemoryStore> memory = make_memory_store({.max_keys = 1024});
  PrefetchStore store{*memory, {.hold = std::chrono::seconds{1}, .most = 100'000}};
  TokenBucket bucket{store, "b", Quota::per_second(1000).burst(2'000'000'000)};
  BoundTokenBucket bound = bucket.at("key");
};

void prefetch(benchmark::State& state) {
  static Prefetch one;
  const Pinned pinned(state);
  std::error_code error;
  run(state, true, [&] { return one.bound.try_acquire(error).allowed; });
}
BENCHMARK(prefetch);
BENCHMARK(prefetch)->Name("prefetch_2t")->Threads(2)->UseRealTime();

void prefetch_by_name(benchmark::State& state) {
  static Prefetch one;
  std::error_code error;
  run(state, true, [&] { return one.bucket.try_acquire("key", error).allowed; });
}
BENCHMARK(prefetch_by_name);

}  // namespace
}  // namespace sluice::bench
