// Calls of a test: what was asked, and how often and how it was answered. Waiting is always for a
// condition; the guard of 30 s only turns a hang into a failure.
// Threading: made and read by the test's thread, completed by any.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
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

/// One call and its answer. It may end before the answer comes.
struct Asked {
  std::atomic<unsigned> answers{0};
  std::error_code error;
  Decision decision;

  Asked() : link_(std::make_shared<Link>()) { link_->asked = this; }
  Asked(const Asked&) = delete;
  ~Asked() {
    const std::lock_guard lock(link_->mutex);
    link_->asked = nullptr;
  }

  /// Needs no memory.
  Completion completion() {
    const std::lock_guard lock(link_->mutex);
    ++link_->pending;
    link_->self = link_;
    return {[](void* link, const Outcome& outcome) noexcept {
              static_cast<Link*>(link)->hear(outcome);
            },
            link_.get()};
  }

  /// Waits for the answer.
  const Asked& wait() const {
    if (!eventually([this] { return answers > 0; })) throw std::runtime_error("a call hangs");
    return *this;
  }

 private:
  struct Link {
    std::mutex mutex;
    Asked* asked = nullptr;
    int pending = 0;
    std::shared_ptr<Link> self;  // while answers are pending

    void hear(const Outcome& outcome) noexcept {
      std::shared_ptr<Link> last;  // ends behind the lock
      const std::lock_guard lock(mutex);
      if (--pending == 0) last = std::move(self);
      if (asked == nullptr) return;
      asked->error = outcome.error;
      asked->decision = outcome.decision;
      ++asked->answers;
    }
  };

  std::shared_ptr<Link> link_;
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
