// ReplayingStore: the recorded call that answers, and what differs.
#include "sluice/testing/replaying_store.hpp"

#include <exception>
#include <utility>

#include "sluice/testing/text.hpp"
#include "src/testing/trace_line.hpp"

namespace sluice::testing {
namespace {

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

}  // namespace

const std::error_category& replay_category() noexcept {
  static const Category category;
  return category;
}

std::error_code make_error_code(ReplayErrc code) noexcept {
  return {static_cast<int>(code), replay_category()};
}

ReplayingStore::ReplayingStore(Trace trace, VirtualClock& clock, ReplayOptions options)
    : clock_(clock), options_(options), start_(trace.start()) {
  for (TracedCall& call : trace.calls) left_.push_back(std::move(call));
}

void ReplayingStore::execute(const Plan& plan, Completion done) noexcept {
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

std::vector<std::string> ReplayingStore::differences() const {
  const std::lock_guard lock(mutex_);
  return differences_;
}

std::size_t ReplayingStore::unasked() const {
  const std::lock_guard lock(mutex_);
  return left_.size();
}

std::string ReplayingStore::report() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  for (const std::string& difference : differences_) out += difference + '\n';
  if (!left_.empty()) {
    out += std::to_string(left_.size()) + " recorded calls were not asked, the first is " +
           question(left_.front()) + '\n';
  }
  return out;
}

std::string ReplayingStore::question(const TracedCall& call) const {
  return detail::question_text(call.steps, call.id) + " at " + to_text(Time{call.asked - start_});
}

bool ReplayingStore::same(const TracedCall& a, const TracedCall& b) const {
  if (a.steps != b.steps || a.id.has_value() != b.id.has_value()) return false;
  if (options_.same_ids && a.id != b.id) return false;
  return options_.times != ReplayOptions::Times::same || a.asked == b.asked;
}

TracedCall ReplayingStore::find(const Plan& plan) {
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

TracedCall ReplayingStore::differ(const TracedCall& asked) {
  const bool over = left_.empty();
  differences_.push_back("call " + std::to_string(calls_) + ": expected " +
                         (over ? "no more calls" : question(left_.front())) + ", got " +
                         question(asked));
  if (!over && options_.order == ReplayOptions::Order::as_recorded) left_.pop_front();
  TracedCall answer;
  answer.error = make_error_code(over ? ReplayErrc::over : ReplayErrc::asked_differently);
  return answer;
}

}  // namespace sluice::testing
