// Answers that are held back for a while, by the clock that the answer is late by.
// Threading: any member from any thread.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/store.hpp"

namespace sluice::testing::detail {

/// An outcome that outlives the completion it was told to.
struct KeptOutcome {
  std::error_code error;
  Decision decision;
  std::vector<Decision> steps;
  std::vector<Word> details;

  explicit KeptOutcome(const Outcome& outcome)
      : error(outcome.error),
        decision(outcome.decision),
        steps(outcome.steps.begin(), outcome.steps.end()),
        details(outcome.details.begin(), outcome.details.end()) {}
  [[nodiscard]] Outcome view() const noexcept { return {error, decision, steps, details}; }
};

class LateAnswers {
 public:
  explicit LateAnswers(Clock& clock) noexcept : clock_(clock) {}
  LateAnswers(const LateAnswers&) = delete;
  LateAnswers& operator=(const LateAnswers&) = delete;

  /// What is held back ends in Errc::unknown.
  ~LateAnswers() {
    std::unordered_map<Late*, std::shared_ptr<Late>> left;
    {
      const std::lock_guard lock(mutex_);
      left.swap(late_);
    }
    for (auto& [key, late] : left) {
      late->done.fail(Errc::unknown);
      clock_.cancel_alarm(late->alarm);
    }
  }

  /// Delivers after `delay`: from an alarm of the clock. Where the clock has none, or moves by
  /// itself because this thread waits, this thread waits here.
  void deliver(Completion done, const Outcome& outcome, Span delay) noexcept {
    const Time when = clock_.now() + delay;
    try {
      if (!KnownThread::is_here(clock_) && rings(done, outcome, when)) return;
      Waker nobody;
      clock_.wait_until(when, nobody);
    } catch (const std::exception&) {  // no memory to keep the answer
      return done.fail(Errc::unknown);
    }
    done(outcome);
  }

  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return late_.size();
  }

 private:
  struct Late {
    Late(LateAnswers& all, const Outcome& answer)
        : owner(all), outcome(answer), alarm(&LateAnswers::ring, this) {}
    LateAnswers& owner;
    Completion done{nullptr, nullptr};
    KeptOutcome outcome;
    Alarm alarm;
  };

  /// True: the alarm delivers. False: `done` is still the caller's.
  bool rings(Completion& done, const Outcome& outcome, Time when) {
    const auto late = std::make_shared<Late>(*this, outcome);
    {
      const std::lock_guard lock(mutex_);
      late_.emplace(late.get(), late);
      late->done = std::move(done);
    }
    try {
      if (clock_.set_alarm(late->alarm, when) == AlarmState::set) return true;
    } catch (const std::bad_alloc&) {
    }
    const std::lock_guard lock(mutex_);
    late_.erase(late.get());
    done = std::move(late->done);
    return false;
  }

  static void ring(void* context) noexcept {
    auto& self = *static_cast<Late*>(context);
    std::shared_ptr<Late> late;
    {
      const std::lock_guard lock(self.owner.mutex_);
      const auto found = self.owner.late_.find(&self);
      if (found == self.owner.late_.end()) return;  // the destructor answers
      late = std::move(found->second);
      self.owner.late_.erase(found);
    }
    late->done(late->outcome.view());
  }

  Clock& clock_;
  mutable std::mutex mutex_;
  std::unordered_map<Late*, std::shared_ptr<Late>> late_;
};

}  // namespace sluice::testing::detail
