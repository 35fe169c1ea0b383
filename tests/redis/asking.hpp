// Calls of a test: what was asked, and how often and how it was answered. Waiting is always for a
// condition; the guard of 30 s only turns a hang into a failure.
// Threading: made and read by the test's thread, completed by any.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sluice/limiters/token_bucket.hpp"
#include "sluice/redis/redis_store.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

/// True as soon as `condition` is; false if it is not within 30 s.
inline bool eventually(const auto& condition) {
  const SystemClock clock;
  const Time end = clock.now() + 30s;
  while (!condition()) {
    if (clock.now() > end) return false;
    std::this_thread::sleep_for(500us);
  }
  return true;
}

/// One call and its answer.
struct Asked {
  std::atomic<unsigned> answers{0};
  std::error_code error;
  Decision decision;

  Completion completion() {
    return {[](void* self, const Outcome& outcome) noexcept {
              auto& asked = *static_cast<Asked*>(self);
              asked.error = outcome.error;
              asked.decision = outcome.decision;
              ++asked.answers;
            },
            this};
  }

  /// Waits for the answer.
  const Asked& wait() const {
    if (!eventually([this] { return answers > 0; })) throw std::runtime_error("a call hangs");
    return *this;
  }
};

/// Many calls.
class Crowd {
 public:
  explicit Crowd(std::size_t size) : calls_(size) {}

  Asked& operator[](std::size_t i) { return calls_[i]; }
  [[nodiscard]] std::size_t size() const noexcept { return calls_.size(); }
  [[nodiscard]] auto begin() const { return calls_.begin(); }
  [[nodiscard]] auto end() const { return calls_.end(); }

  /// Waits for all, and is true if each was answered exactly once.
  [[nodiscard]] bool wait() const {
    for (const Asked& call : calls_) call.wait();
    for (const Asked& call : calls_) {
      if (call.answers != 1) return false;
    }
    return true;
  }

  [[nodiscard]] std::size_t count(const auto& predicate) const {
    std::size_t result = 0;
    for (const Asked& call : calls_) result += predicate(call) ? 1U : 0U;
    return result;
  }

 private:
  std::vector<Asked> calls_;
};

/// A bucket that asks without blocking.
class Bucket {
 public:
  Bucket(Store& store, Quota quota) : bucket_(store, "api", quota) {}

  /// Zero: as long as the store gives a call by default.
  void ask(Asked& asked, const Key& key, Span within = Span{0}, std::stop_token stop = {}) const {
    const Step step = bucket_.acquire_step(key);
    const Plan plan = within == Span{0} ? Plan(step) : Plan(step).within(within);
    bucket_.store().execute(plan.cancelled_by(std::move(stop)), asked.completion());
  }

  /// Asks and waits for the answer.
  [[nodiscard]] std::error_code error(const Key& key, Span within = 10s) const {
    Asked asked;
    ask(asked, key, within);
    return asked.wait().error;
  }

  [[nodiscard]] const TokenBucket& operator*() const noexcept { return bucket_; }

 private:
  TokenBucket bucket_;
};

}  // namespace sluice::test
