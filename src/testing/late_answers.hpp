// LateAnswers: delays answers by a clock. Threading: any member from any thread.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
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
  ~LateAnswers();

  /// Delivers after `delay`: from a timer of the clock. Where the clock has none, or moves by
  /// itself because this thread waits, this thread waits here.
  void deliver(Completion done, const Outcome& outcome, Span delay) noexcept;

  [[nodiscard]] std::size_t size() const;

 private:
  struct Late;

  /// True: the timer delivers. False: `done` is still the caller's.
  bool rings(Completion& done, const Outcome& outcome, Time when);
  static void ring(void* late) noexcept;
  /// The clock was destroyed: the answer never comes.
  static void lose(void* late) noexcept;
  /// Null: the destructor answers.
  static std::shared_ptr<Late> take(Late& late) noexcept;

  Clock& clock_;
  mutable std::mutex mutex_;
  std::unordered_map<Late*, std::shared_ptr<Late>> late_;
};

}  // namespace sluice::testing::detail
