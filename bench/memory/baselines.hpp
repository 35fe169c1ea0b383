// What the memory store is measured against: the primitives that bound any limiter, and limiters in
// the shape that most libraries have. They are measured in the same run as the store.
#pragma once

#include <benchmark/benchmark.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bench/memory/mutex_bucket.hpp"

namespace sluice::bench {

/// The usual keyed limiter: a map under a reader-writer lock. Its buckets are the best kind for it,
/// one atomic double that holds the time at which the bucket was empty.
class MapLimiter {
 public:
  MapLimiter(double rate, double burst, std::size_t keys) : rate_(rate), burst_(burst) {
    buckets_.reserve(keys);
  }

  bool try_acquire(const std::string& key) {
    {
      const std::shared_lock lock(mutex_);
      if (const auto found = buckets_.find(key); found != buckets_.end()) {
        return spend(found->second);
      }
    }
    const std::unique_lock lock(mutex_);
    return spend(buckets_[key]);
  }

 private:
  bool spend(std::atomic<double>& empty_at) {
    const double now = seconds_now();
    double seen = empty_at.load(std::memory_order_relaxed);
    for (;;) {
      const double from = std::max(seen, now - burst_ / rate_);
      const double next = from + 1 / rate_;
      if (next > now) return false;
      if (empty_at.compare_exchange_weak(seen, next, std::memory_order_relaxed)) return true;
    }
  }

  double rate_;
  double burst_;
  std::shared_mutex mutex_;
  std::unordered_map<std::string, std::atomic<double>> buckets_;
};

/// Runs `call`, which must answer as `expected` each time.
template <class Call>
void run(benchmark::State& state, bool expected, const Call& call) {
  bool as_expected = true;
  for (auto _ : state) {
    const auto answer = call();
    as_expected &= static_cast<bool>(answer) == expected;
  }
  if (!as_expected) state.SkipWithError("decided otherwise");
}

constexpr std::size_t many = std::size_t{1} << 20;

/// A key of 20 bytes in a buffer that is warm, as it is in a server that has just read a request.
/// The digits are a permutation of the number, so that neighbours have nothing in common.
class KeyText {
 public:
  std::string_view operator()(std::size_t number) {
    std::uint64_t bits = (number + 1) * 0x9e3779b97f4a7c15;
    for (std::size_t i = 4; i < text_.size(); ++i, bits >>= 4) {
      text_[i] = "0123456789abcdef"[bits & 15];
    }
    return text_;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_ = "user0000000000000000";
};

/// Uniform draws, cheap enough not to be measured.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 1) {}
  std::size_t operator()() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::size_t>(state_ % many);
  }

 private:
  std::uint64_t state_;
};

/// While it lives, a thread of a benchmark with several stays on a processor of its own: the
/// scheduler may leave threads that start together on one, where they take turns and never meet.
class Pinned {
 public:
  explicit Pinned(const benchmark::State& state);
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned();

 private:
  cpu_set_t before_;
};

}  // namespace sluice::bench
