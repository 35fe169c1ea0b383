// One decision of each remaining algorithm in memory, on one key looked up by its name, beside what
// the source designs come to when they are written for one process in the plainest way: a mutex
// and the containers that come to mind.
#include <benchmark/benchmark.h>

#include <deque>
#include <set>

#include "bench/memory/baselines.hpp"
#include "sluice/sluice.hpp"

namespace sluice::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t few_keys = 1024;

void sliding_window_counter_allow(benchmark::State& state) {
  const auto store = make_memory_store({.max_keys = few_keys});
  const SlidingWindowCounter counter(*store, "c", {1'000'000'000'000, 24h});
  std::error_code error;
  run(state, true, [&] { return counter.try_acquire("key", error).allowed; });
}
BENCHMARK(sliding_window_counter_allow);

void shared_token_bucket_allow(benchmark::State& state) {
  const auto store = make_memory_store({.max_keys = few_keys});
  const SharedTokenBucket bucket(*store, "b");
  bucket.configure("key", Quota::per_second(1'000'000).burst(2'000'000'000));
  std::error_code error;
  run(state, true, [&] { return bucket.try_acquire("key", 1, error).allowed; });
}
BENCHMARK(shared_token_bucket_allow);

void shared_sliding_window_allow(benchmark::State& state) {
  const auto store = make_memory_store({.max_keys = few_keys});
  const SharedSlidingWindow limiter(*store, "rate");
  limiter.configure("key", RateType::overall, 65'536, 1ms, SpentUnits::forgotten);
  std::error_code error;
  run(state, true, [&] { return limiter.try_acquire("key", 1, error).allowed; });
}
BENCHMARK(shared_sliding_window_allow);

void slot_lock_reserve(benchmark::State& state) {
  const auto store = make_memory_store({.max_keys = few_keys});
  const SlotLock lock(*store, "s", 1us);
  std::error_code error;
  run(state, true, [&] { return lock.reserve("key", SlotLock::max_horizon, error); });
}
BENCHMARK(slot_lock_reserve);

void token_bucket_reserve(benchmark::State& state) {
  const auto store = make_memory_store({.max_keys = few_keys});
  const TokenBucket bucket(*store, "b", Quota::per_second(1'000'000).burst(2'000'000'000));
  std::error_code error;
  run(state, true, [&] { return bucket.reserve("key", 1, 1s, error); });
}
BENCHMARK(token_bucket_reserve);

void gate_open(benchmark::State& state) {
  const auto store = make_memory_store({.max_keys = few_keys});
  const Gates gates(*store, "g", {"account"});
  const Scope scope = gates.scope("account", "key");
  std::error_code error;
  run(state, true, [&] { return decide(*store, gates.pass_step(scope), error).allowed; });
}
BENCHMARK(gate_open);

void fleet_take_and_release(benchmark::State& state) {
  SeededRng rng(1);
  const auto store = make_memory_store({.max_keys = few_keys});
  const FleetShedder fleet(
      *store, "f", 100,
      {{"critical", FleetShare::percent(100)}, {"sheddable", FleetShare::percent(80)}},
      {.rng = &rng});
  std::error_code error;
  run(state, true, [&] { return fleet.try_acquire("sheddable", error); });
}
BENCHMARK(fleet_take_and_release);

void utilization_ask(benchmark::State& state) {
  const auto store = make_memory_store({.max_keys = few_keys});
  SeededRng rng(1);
  const UtilizationShedder shedder(*store, "u", {}, rng);
  shedder.sample(Utilization::ratio(1, 2));
  const auto tier = shedder.tier("critical");
  std::error_code error;
  run(state, true, [&] { return shedder.try_acquire(tier, error).allowed; });
}
BENCHMARK(utilization_ask);

/// The two sorted sets of seed 0 as two queues of times; what cannot go counts nowhere.
void plain_two_windows(benchmark::State& state) {
  std::mutex mutex;
  std::deque<double> brief;
  std::deque<double> wide;
  run(state, true, [&] {
    const std::lock_guard lock(mutex);
    const double now = seconds_now();
    while (!brief.empty() && brief.front() <= now - 0.001) brief.pop_front();
    while (!wide.empty() && wide.front() <= now - 0.002) wide.pop_front();
    if (brief.size() >= 100'000 || wide.size() >= 200'000) return false;
    brief.push_back(now);
    wide.push_back(now);
    return true;
  });
}
BENCHMARK(plain_two_windows);

/// The daily counter of seed 1.
void plain_counter(benchmark::State& state) {
  std::mutex mutex;
  long day = 0;
  std::uint64_t count = 0;
  run(state, true, [&] {
    const std::lock_guard lock(mutex);
    const auto now = std::chrono::system_clock::now();
    const long today = std::chrono::floor<std::chrono::days>(now).time_since_epoch().count();
    if (std::exchange(day, today) != today) count = 0;
    return ++count < 1'000'000'000'000;
  });
}
BENCHMARK(plain_counter);

/// The slot lock of seed 3, by the time of the next slot.
void plain_slot(benchmark::State& state) {
  std::mutex mutex;
  double next = 0;
  run(state, true, [&] {
    const std::lock_guard lock(mutex);
    const double now = seconds_now();
    next = std::max(next, now) + 1e-6;
    return next >= now;
  });
}
BENCHMARK(plain_slot);

/// The sorted set of seed 4's concurrency limiter, 50 of 100 locked, and giving back.
void plain_leases(benchmark::State& state) {
  std::mutex mutex;
  std::set<std::pair<double, std::uint64_t>> locked_slot;
  for (std::uint64_t i = 0; i < 50; ++i) locked_slot.emplace(seconds_now(), i);
  std::uint64_t id = 50;
  run(state, true, [&] {
    const std::lock_guard lock(mutex);
    const double now = seconds_now();
    while (!locked_slot.empty() && locked_slot.begin()->first <= now - 3600)
      locked_slot.erase(locked_slot.begin());
    if (locked_slot.size() >= 100) return false;
    locked_slot.erase(locked_slot.emplace(now, ++id).first);
    return true;
  });
}
BENCHMARK(plain_leases);

}  // namespace
}  // namespace sluice::bench
