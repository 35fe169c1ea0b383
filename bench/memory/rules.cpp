// Rules with effects on one key, looked up by its name, beside the token bucket looked up the same
// way: states in a cell, states in a block, plans over both, and request ids.
#include <benchmark/benchmark.h>

#include "bench/memory/baselines.hpp"
#include "sluice/sluice.hpp"

namespace sluice::bench {
namespace {

using namespace std::chrono_literals;

constexpr Word plenty = 1'000'000'000;

std::unique_ptr<MemoryStore> a_store() { return make_memory_store({.max_keys = 1024}); }

void note_blocks(benchmark::State& state, const MemoryStore& store) {
  state.counters["block_bytes"] = static_cast<double>(store.stats().block_bytes);
}

template <class Limiter>
void ask(benchmark::State& state, const MemoryStore& store, const Limiter& limiter, bool expected) {
  std::error_code error;
  while (!expected && limiter.try_acquire("key", error)) {
  }
  run(state, expected, [&] { return limiter.try_acquire("key", error).allowed; });
  note_blocks(state, store);
}

TokenBucket a_bucket(Store& store) {
  return {store, "b", Quota::per_second(1000).burst(2'000'000'000)};
}
/// Wide enough for whatever one thread asks, short enough to forget it soon.
SlidingWindow two_windows(Store& store) { return {store, "w", {{30'000, 1ms}, {60'000, 2ms}}}; }

void bucket_by_name(benchmark::State& state) {
  const auto store = a_store();
  ask(state, *store, a_bucket(*store), true);
}
BENCHMARK(bucket_by_name);

void fixed_window_allow(benchmark::State& state) {
  const auto store = a_store();
  ask(state, *store, FixedWindow(*store, "f", plenty, Calendar::daily()), true);
}
BENCHMARK(fixed_window_allow);

void windows_allow(benchmark::State& state) {
  const auto store = a_store();
  ask(state, *store, two_windows(*store), true);
}
BENCHMARK(windows_allow);

void windows_refuse(benchmark::State& state) {
  const auto store = a_store();
  ask(state, *store, SlidingWindow(*store, "w", {{25, 1h}, {300, 24h}}), false);
}
BENCHMARK(windows_refuse);

/// Ids come from a generator of its own: the system's is slower than all else here.
void lease_and_release(benchmark::State& state) {
  SeededRng rng(1);
  const auto store = a_store();
  const ConcurrencyLimiter limiter(*store, "c", 16, {.rng = &rng});
  std::error_code error;
  run(state, true, [&] { return limiter.try_acquire("key", error); });
  note_blocks(state, *store);
}
BENCHMARK(lease_and_release);

void plan_of_bucket_and_windows(benchmark::State& state) {
  const auto store = a_store();
  const TokenBucket bucket = a_bucket(*store);
  const SlidingWindow windows = two_windows(*store);
  std::error_code error;
  run(state, true, [&] {
    return decide(*store, {bucket.acquire_step("key"), windows.acquire_step("key")}, error).allowed;
  });
}
BENCHMARK(plan_of_bucket_and_windows);

void bucket_asked_again_under_an_id(benchmark::State& state) {
  const auto store = a_store();
  const TokenBucket bucket = a_bucket(*store);
  std::error_code error;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        decide(*store, Plan(bucket.acquire_step("key")).idempotent({1, 2}), error));
  }
  note_blocks(state, *store);
}
BENCHMARK(bucket_asked_again_under_an_id);

}  // namespace
}  // namespace sluice::bench
