// A million keys, drawn uniformly: by name, by bound limiters, and in batches.
#include <benchmark/benchmark.h>

#include <deque>

#include "bench/memory/baselines.hpp"
#include "sluice/extend/binding.hpp"
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
      static_cast<void>(bound.back().try_acquire());
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

/// A binding as its owner has it at hand: the hash is warm, where the state lies is not known.
class HashedKey {
 public:
  explicit HashedKey(const Store& store) { binding_.owner = &store; }
  Binding* operator()(std::size_t number) {
    const std::uint64_t mixed = (number + 1) * 0x9e3779b97f4a7c15;
    binding_.hash = {(mixed ^ mixed >> 32) * 0xd6e8feb86659fd93, mixed * 0xd6e8feb86659fd93};
    binding_.slot.store(nullptr, std::memory_order_relaxed);
    return &binding_;
  }

 private:
  Binding binding_;
};

struct HashedMillion {
  HashedMillion()
      : store(make_memory_store({.max_keys = many})),
        bucket(*store, "b", Quota::per_second(100).burst(500)) {
    HashedKey key(*store);
    Step step = bucket.acquire_step("any");
    for (std::size_t i = 0; i < many; ++i) {
      step.binding = key(i);
      static_cast<void>(decide(*store, step));
    }
  }

  std::unique_ptr<MemoryStore> store;
  TokenBucket bucket;
};

HashedMillion& hashed_million() {
  static HashedMillion one;
  return one;
}

void keys_hashed(benchmark::State& state) {
  HashedMillion& m = hashed_million();
  HashedKey key(*m.store);
  Draw draw(7);
  std::error_code error;
  Step step = m.bucket.acquire_step("any");
  for (auto _ : state) {
    step.binding = key(draw());
    benchmark::DoNotOptimize(decide(*m.store, step, error));
  }
}
BENCHMARK(keys_hashed);

/// Each iteration is one decision: the loop runs in batches.
template <class SetStep>
void run_batches(benchmark::State& state, Store& store, const TokenBucket& bucket,
                 const SetStep& set_step) {
  Draw draw(7);
  std::vector<Step> steps(batch, bucket.acquire_step("any"));
  const std::vector<Plan> plans(steps.begin(), steps.end());
  std::array<Decision, batch> results;
  std::array<std::error_code, batch> errors;
  while (state.KeepRunningBatch(batch)) {
    for (std::size_t i = 0; i < batch; ++i) set_step(steps[i], i, draw());
    decide_batch(store, plans, results, errors);
    benchmark::DoNotOptimize(results);
  }
}

void batch_by_name(benchmark::State& state) {
  Million& m = million();
  std::array<KeyText, batch> keys;
  run_batches(state, *m.store, m.bucket, [&](Step& step, std::size_t i, std::size_t key) {
    step.key = Key{keys[i](key), step.key.name()};
  });
}
BENCHMARK(batch_by_name);

void batch_hashed(benchmark::State& state) {
  HashedMillion& m = hashed_million();
  std::deque<HashedKey> keys;
  for (std::size_t i = 0; i < batch; ++i) keys.emplace_back(*m.store);
  run_batches(state, *m.store, m.bucket,
              [&](Step& step, std::size_t i, std::size_t key) { step.binding = keys[i](key); });
}
BENCHMARK(batch_hashed);

}  // namespace
}  // namespace sluice::bench
