// Stores for the tests of the call forms: one that answers on another thread, one that forgets.
// Threading: thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "sluice/extend/store_wrapper.hpp"
#include "sluice/store.hpp"
#include "sluice/virtual_clock.hpp"

namespace sluice::test {

/// Decides by another store at once, and delivers the answer later, on a thread of its own.
class AsyncStore final : public StoreWrapper {
 public:
  explicit AsyncStore(Store& inner) : StoreWrapper(inner), worker_([this] { work(); }) {}
  AsyncStore(const AsyncStore&) = delete;
  AsyncStore& operator=(const AsyncStore&) = delete;
  ~AsyncStore() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    worker_.join();
  }

  void execute(const Plan& plan, Completion done) noexcept override {
    auto answer = std::make_unique<Answer>(std::move(done));
    inner().execute(plan, Completion(&Answer::keep, answer.get()));
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(answer));
    }
    wake_.notify_one();
  }

  [[nodiscard]] bool may_block() const noexcept override {
    return std::this_thread::get_id() != worker_.get_id();
  }

 private:
  struct Answer {
    explicit Answer(Completion completion) : done(std::move(completion)) {}
    static void keep(void* self, const Outcome& outcome) noexcept {
      auto& answer = *static_cast<Answer*>(self);
      answer.outcome = outcome;
      std::ranges::copy(outcome.steps, answer.steps.begin());
      std::ranges::copy(outcome.output, answer.output.begin());
      answer.outcome.steps = {answer.steps.data(), outcome.steps.size()};
      answer.outcome.output = {answer.output.data(), outcome.output.size()};
    }
    Completion done;
    Outcome outcome;
    std::array<Decision, Plan::max_steps> steps;
    std::array<Word, Plan::max_steps * max_output> output;
  };

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const auto answer = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      answer->done(answer->outcome);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::unique_ptr<Answer>> queue_;
  bool stopping_ = false;
  std::thread worker_;
};

/// Drops every call: what is then delivered is the completion's own doing.
class ForgetfulStore final : public Store {
 public:
  void execute(const Plan& /*plan*/, Completion /*done*/) noexcept override {}
  [[nodiscard]] Clock& clock() noexcept override { return clock_; }

 private:
  VirtualClock clock_;
};

}  // namespace sluice::test
