// One bucket of a quota, and one with a table of 100,000 keys: what reading the table costs.
#include <memory>
#include <string>

#include <benchmark/benchmark.h>

#include "sluice/sluice.hpp"

namespace {

using namespace sluice;

constexpr int many = 100'000;
constexpr int asked = 1000;  // keys, so that states and rows are in the processor's caches

const Quota quota = Quota::per_second(1'000'000).burst(1'000'000);

std::string key(int i) { return "customer-" + std::to_string(i); }

void decide_keys(benchmark::State& state, const TokenBucket& bucket) {
  std::vector<std::string> keys;
  for (int i = 0; i < asked; ++i) keys.push_back(key(i * (many / asked)));
  std::error_code error;
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(bucket.try_acquire(keys[next], error));
    if (++next == keys.size()) next = 0;
  }
}

void bucket_of_one_quota(benchmark::State& state) {
  decide_keys(state, TokenBucket(make_memory_store(), "api", quota));
}
BENCHMARK(bucket_of_one_quota);

void bucket_with_a_table(benchmark::State& state) {
  LimitList list(quota);
  for (int i = 0; i < many; ++i) list.limit(key(i), quota);
  decide_keys(state, TokenBucket(make_memory_store(), "api", std::make_shared<QuotaTable>(list)));
}
BENCHMARK(bucket_with_a_table);

}  // namespace
