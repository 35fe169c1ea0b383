// ReplayingStore: answers from a recording, and reports calls that differ from it.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "sluice/store.hpp"
#include "sluice/testing/history.hpp"
#include "sluice/testing/trace_text.hpp"
#include "sluice/virtual_store.hpp"

namespace sluice::testing {

/// The errors of a ReplayingStore. Nothing was executed.
enum class ReplayErrc {
  asked_differently = 1,  ///< the recording has another call here; see differences()
  over = 2,               ///< the recording has no more calls
};

/// The category of ReplayErrc, named "sluice.replay".
[[nodiscard]] inline const std::error_category& replay_category() noexcept {
  class Category final : public std::error_category {
   public:
    [[nodiscard]] const char* name() const noexcept override { return "sluice.replay"; }
    [[nodiscard]] std::string message(int value) const override {
      return value == static_cast<int>(ReplayErrc::over)
                 ? "the recording has no more calls"
                 : "the recording has another question here; see ReplayingStore::differences()";
    }
    [[nodiscard]] std::error_condition default_error_condition(int) const noexcept override {
      return make_error_condition(Failure::not_executed);
    }
  };
  static const Category category;
  return category;
}

[[nodiscard]] inline std::error_code make_error_code(ReplayErrc code) noexcept {
  return {static_cast<int>(code), replay_category()};
}

/// How calls must match the recording.
struct ReplayOptions {
  /// The order of the calls.
  enum class Order : std::uint8_t {
    as_recorded,  ///< one after the other
    any,          ///< the first equal recorded call answers: for threads
  };
  Order order = Order::as_recorded;
  /// The time of the calls.
  enum class Times : std::uint8_t {
    any,     ///< the clock is not moved, and a call may come at any time
    follow,  ///< the clock is moved to the time of the recorded call
    same,    ///< a call at another time is a difference
  };
  Times times = Times::any;
  /// Whether request ids must equal the recorded ones; otherwise only their presence is compared.
  bool same_ids = false;
};

/// Answers each call as in the recording: decisions, output words and errors, at once. A different
/// call fails with ReplayErrc::asked_differently and is reported; the recording then continues
/// after it. Thread-safe.
///
///     VirtualClock clock;
///     ReplayingStore store(load_trace("orders.trace"), clock);
///     run_the_code(store);
///     CHECK(store.report() == "");
///
/// REQUIRES: the clock outlives it, and with Times::follow nothing else moves it.
class ReplayingStore final : public Store {
 public:
  ReplayingStore(Trace trace, VirtualClock& clock, ReplayOptions options = {})
      : clock_(clock), options_(options), start_(trace.start()) {
    for (TracedCall& call : trace.calls) left_.push_back(std::move(call));
  }

  void execute(const Plan& plan, Completion done) noexcept override {
    TracedCall answer;
    try {
      answer = find(plan);
      // Not under the lock: timers of the clock may call this store.
      if (options_.times == ReplayOptions::Times::follow && answer.asked != Time{}) {
        clock_.set(answer.asked);
      }
    } catch (const std::exception&) {  // no memory, or a recording beyond the clock's range
      return done.fail(Errc::queue_full);
    }
    if (answer.error) {
      return done.fail(answer.error, answer.decision.step, answer.decision.part);
    }
    done(Outcome{{}, answer.decision, answer.each, answer.output});
  }

  [[nodiscard]] Clock& clock() noexcept override { return clock_; }

  /// The differences, each as "call 3: expected ... at +1.5 s, got ... at +2 s". Calls count from
  /// 1, times from the first recorded call.
  [[nodiscard]] std::vector<std::string> differences() const {
    const std::lock_guard lock(mutex_);
    return differences_;
  }

  /// The number of recorded calls that were not made.
  [[nodiscard]] std::size_t unasked() const {
    const std::lock_guard lock(mutex_);
    return left_.size();
  }

  /// Empty if exactly the recorded calls were made; else a line for each difference.
  [[nodiscard]] std::string report() const {
    const std::lock_guard lock(mutex_);
    std::string out;
    for (const std::string& difference : differences_) out += difference + '\n';
    if (!left_.empty()) {
      out += std::to_string(left_.size()) + " recorded calls were not asked, the first is " +
             question(left_.front()) + '\n';
    }
    return out;
  }

 private:
  [[nodiscard]] std::string question(const TracedCall& call) const {
    return detail::question_text(call.steps, call.id) + " at " + to_text(Time{call.asked - start_});
  }

  [[nodiscard]] bool same(const TracedCall& a, const TracedCall& b) const {
    if (a.steps != b.steps || a.id.has_value() != b.id.has_value()) return false;
    if (options_.same_ids && a.id != b.id) return false;
    return options_.times != ReplayOptions::Times::same || a.asked == b.asked;
  }

  /// The recorded call, or one with only an error.
  TracedCall find(const Plan& plan) {
    const std::lock_guard lock(mutex_);
    TracedCall asked;
    asked.asked = clock_.now();
    asked.id = plan.id();
    for (const Step& step : plan.steps()) asked.steps.emplace_back(step);
    ++calls_;
    auto match = left_.begin();
    if (options_.order == ReplayOptions::Order::any) {
      while (match != left_.end() && !same(*match, asked)) ++match;
    }
    if (match == left_.end() || !same(*match, asked)) return differ(asked);
    TracedCall answer = std::move(*match);
    left_.erase(match);
    return answer;
  }

  TracedCall differ(const TracedCall& asked) {
    const bool over = left_.empty();
    differences_.push_back("call " + std::to_string(calls_) + ": expected " +
                           (over ? "no more calls" : question(left_.front())) + ", got " +
                           question(asked));
    if (!over && options_.order == ReplayOptions::Order::as_recorded) left_.pop_front();
    TracedCall answer;
    answer.error = make_error_code(over ? ReplayErrc::over : ReplayErrc::asked_differently);
    return answer;
  }

  VirtualClock& clock_;
  const ReplayOptions options_;
  const Time start_;
  mutable std::mutex mutex_;
  std::deque<TracedCall> left_;
  std::size_t calls_ = 0;
  std::vector<std::string> differences_;
};

}  // namespace sluice::testing

template <>
struct std::is_error_code_enum<sluice::testing::ReplayErrc> : std::true_type {};
