// Traffic: threads that take units of many keys all the time, and know what they got.
// Threading: made, stopped and read by the test's thread.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sluice/limiters/token_bucket.hpp"
#include "sluice/redis/redis_store.hpp"
#include "tests/redis/asking.hpp"

namespace sluice::test {

class Traffic {
 public:
  static constexpr Word burst = 1'000'000;

  /// Each thread takes a unit of one key after the other, each call with `within` to answer.
  Traffic(RedisStore& store, std::vector<std::string> keys, std::size_t threads, Span within)
      : bucket_(store, "traffic", Quota::per(1, 30min).burst(burst)),
        keys_(std::move(keys)),
        granted_(keys_.size()) {
    for (std::size_t i = 0; i < threads; ++i) {
      threads_.emplace_back([this, i, within] { run(i, within); });
    }
  }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;
  ~Traffic() { stop(); }

  void stop() {
    stopping_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  /// Waits for that many more decisions.
  [[nodiscard]] bool goes_on(std::uint64_t more = 200) const {
    const std::uint64_t before = decided_;
    return eventually([&] { return decided_ >= before + more; });
  }
  [[nodiscard]] bool goes_on(std::size_t key, Word more) const {
    const Word before = granted_[key];
    return eventually([&] { return granted_[key] >= before + more; });
  }

  [[nodiscard]] std::uint64_t decided() const noexcept { return decided_; }
  [[nodiscard]] Word granted(std::size_t key) const { return granted_[key]; }
  /// The errors of calls, and how many calls each has failed.
  [[nodiscard]] std::map<std::string, int> errors() const {
    const std::lock_guard lock(mutex_);
    return errors_;
  }
  /// The first key whose state in the store is not what the threads got of it, and both numbers;
  /// empty if there is none. REQUIRES: stop().
  [[nodiscard]] std::string miscounted() const {
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const Word taken = burst - bucket_.peek(keys_[i]).remaining;
      const Word granted = granted_[i];
      if (taken != granted) {
        return keys_[i] + ": " + std::to_string(granted) + " granted, " + std::to_string(taken) +
               " taken";
      }
    }
    return "";
  }

 private:
  void run(std::size_t first, Span within) {
    for (std::size_t i = first; !stopping_; ++i) {
      const std::size_t key = i % keys_.size();
      Asked asked;
      bucket_.store().execute(Plan(bucket_.acquire_step(keys_[key])).within(within),
                              asked.completion());
      asked.wait();
      if (asked.error) {
        const std::lock_guard lock(mutex_);
        ++errors_[asked.error.message()];
        continue;
      }
      if (asked.decision.allowed) ++granted_[key];
      ++decided_;
    }
  }

  TokenBucket bucket_;
  const std::vector<std::string> keys_;
  std::vector<std::atomic<Word>> granted_;
  std::atomic<std::uint64_t> decided_{0};
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::map<std::string, int> errors_;
  std::vector<std::thread> threads_;
};

/// "key0", "key1"...
inline std::vector<std::string> numbered_keys(std::size_t count) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < count; ++i) keys.push_back("key" + std::to_string(i));
  return keys;
}

}  // namespace sluice::test
