// Rules with effects on one key, looked up by its name, beside the token bucket looked up the same
// way: states in a cell, states in a block, plans over both, and request ids.
#include <benchmark/benchmark.h>

#include "bench/memory/baselines.hpp"
#include "sluice/sluice.hpp"

namespace sluice::bench {
namespace {

using namespace std::chrono_literals;

constexpr Word plenty = 1'000'000'000;

/// A store with one limiter, made by `make(store)`.
template <class Limiter>
struct Lone {
  template <class Make>
  explicit Lone(const Make& make)
      : store(make_memory_store({.max_keys = 1024})), limiter(make(*store)) {}

  std::unique_ptr<MemoryStore> store;
  Limiter limiter;
};

template <class Limiter>
void ask(benchmark::State& state, Lone<Limiter>& one, bool expected) {
  std::error_code error;
  while (!expected && one.limiter.try_acquire("key", error)) {
  }
  bool as_expected = true;
  for (auto _ : state) {
    as_expected &= one.limiter.try_acquire("key", error).allowed == expected;
  }
  if (!as_expected) state.SkipWithError("decided otherwise");
  const MemoryStats stats = one.store->stats();
  state.counters["block_bytes"] = static_cast<double>(stats.block_bytes);
}

TokenBucket a_bucket(Store& store) {
  return {store, "b", Quota::per_second(1000).burst(2'000'000'000)};
}
/// Wide enough for whatever one thread asks, short enough to forget it soon.
SlidingWindow two_windows(Store& store) { return {store, "w", {{30'000, 1ms}, {60'000, 2ms}}}; }

void bucket_by_name(benchmark::State& state) {
  Lone<TokenBucket> one(a_bucket);
  ask(state, one, true);
}
BENCHMARK(bucket_by_name);

void fixed_window_allow(benchmark::State& state) {
  Lone<FixedWindow> one(
      [](Store& store) { return FixedWindow(store, "f", plenty, Calendar::daily()); });
  ask(state, one, true);
}
BENCHMARK(fixed_window_allow);

void windows_allow(benchmark::State& state) {
  Lone<SlidingWindow> one(two_windows);
  ask(state, one, true);
}
BENCHMARK(windows_allow);

void windows_refuse(benchmark::State& state) {
  Lone<SlidingWindow> one([](Store& store) {
    return SlidingWindow(store, "w", {{25, 1h}, {300, 24h}});
  });
  ask(state, one, false);
}
BENCHMARK(windows_refuse);

/// Ids come from a generator of its own: the system's is slower than all else here.
void lease_and_release(benchmark::State& state) {
  SeededRng rng(1);
  Lone<ConcurrencyLimiter> one(
      [&](Store& store) { return ConcurrencyLimiter(store, "c", 16, {.rng = &rng}); });
  std::error_code error;
  bool locked_slot = true;
  for (auto _ : state) {
    const Lease lease = one.limiter.try_acquire("key", error);
    locked_slot &= static_cast<bool>(lease);
  }
  if (!locked_slot) state.SkipWithError("refused");
  state.counters["block_bytes"] = static_cast<double>(one.store->stats().block_bytes);
}
BENCHMARK(lease_and_release);

void plan_of_bucket_and_windows(benchmark::State& state) {
  const auto store = make_memory_store({.max_keys = 1024});
  const TokenBucket bucket = a_bucket(*store);
  const SlidingWindow windows = two_windows(*store);
  std::error_code error;
  bool allowed = true;
  for (auto _ : state) {
    allowed &=
        decide(*store, {bucket.acquire_step("key"), windows.acquire_step("key")}, error).allowed;
  }
  if (!allowed) state.SkipWithError("refused");
}
BENCHMARK(plan_of_bucket_and_windows);

void bucket_asked_again_under_an_id(benchmark::State& state) {
  const auto store = make_memory_store({.max_keys = 1024});
  const TokenBucket bucket = a_bucket(*store);
  std::error_code error;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        decide(*store, Plan(bucket.acquire_step("key")).idempotent({1, 2}), error));
  }
  state.counters["block_bytes"] = static_cast<double>(store->stats().block_bytes);
}
BENCHMARK(bucket_asked_again_under_an_id);

}  // namespace
}  // namespace sluice::bench
