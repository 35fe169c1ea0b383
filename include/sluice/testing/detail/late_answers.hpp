// LateAnswers: delays answers by a clock. Threading: any member from any thread.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/store.hpp"

namespace sluice::testing::detail {

/// An outcome that outlives the completion of the inner call.
struct KeptOutcome {
  std::error_code error;
  Decision decision;
  std::vector<Decision> steps;
  std::vector<Word> output;

  explicit KeptOutcome(const Outcome& outcome)
      : error(outcome.error),
        decision(outcome.decision),
        steps(outcome.steps.begin(), outcome.steps.end()),
        output(outcome.output.begin(), outcome.output.end()) {}
  [[nodiscard]] Outcome view() const noexcept { return {error, decision, steps, output}; }
};

class LateAnswers {
 public:
  explicit LateAnswers(Clock& clock) noexcept : clock_(clock) {}
  LateAnswers(const LateAnswers&) = delete;
  LateAnswers& operator=(const LateAnswers&) = delete;

  /// Delayed answers become Errc::unknown.
  ~LateAnswers() {
    std::unordered_map<Late*, std::shared_ptr<Late>> left;
    {
      const std::lock_guard lock(mutex_);
      left.swap(late_);
    }
    for (auto& [key, late] : left) {
      late->done.fail(Errc::unknown);
      clock_.cancel_timer(late->timer);
    }
  }

  /// Delivers after `delay`: from a timer of the clock. Where the clock has none, or moves by
  /// itself because this thread waits, this thread waits here.
  void deliver(Completion done, const Outcome& outcome, Span delay) noexcept {
    const Time when = clock_.now() + delay;
    try {
      if (!KnownThread::is_here(clock_) && rings(done, outcome, when)) return;
      ManualResetEvent nobody;
      clock_.wait_until(when, nobody);
    } catch (const std::exception&) {  // no memory for the answer
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
        : owner(all), outcome(answer), timer(&LateAnswers::ring, this, &LateAnswers::lose) {}
    LateAnswers& owner;
    Completion done{nullptr, nullptr};
    KeptOutcome outcome;
    TimerCallback timer;
  };

  /// True: the timer delivers. False: `done` is still the caller's.
  bool rings(Completion& done, const Outcome& outcome, Time when) {
    const auto late = std::make_shared<Late>(*this, outcome);
    {
      const std::lock_guard lock(mutex_);
      late_.emplace(late.get(), late);
      late->done = std::move(done);
    }
    try {
      if (clock_.set_timer(late->timer, when) == TimerState::set) return true;
    } catch (const std::bad_alloc&) {
    }
    const std::lock_guard lock(mutex_);
    late_.erase(late.get());
    done = std::move(late->done);
    return false;
  }

  static void ring(void* context) noexcept {
    if (const auto late = take(*static_cast<Late*>(context))) late->done(late->outcome.view());
  }
  /// The clock was destroyed: the answer never comes.
  static void lose(void* context) noexcept {
    if (const auto late = take(*static_cast<Late*>(context))) late->done.fail(Errc::unknown);
  }
  /// Null: the destructor answers.
  static std::shared_ptr<Late> take(Late& late) noexcept {
    const std::lock_guard lock(late.owner.mutex_);
    const auto found = late.owner.late_.find(&late);
    if (found == late.owner.late_.end()) return nullptr;
    const std::shared_ptr<Late> taken = std::move(found->second);
    late.owner.late_.erase(found);
    return taken;
  }

  Clock& clock_;
  mutable std::mutex mutex_;
  std::unordered_map<Late*, std::shared_ptr<Late>> late_;
};

}  // namespace sluice::testing::detail
