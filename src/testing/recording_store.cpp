// RecordingStore and the recording of its calls.
#include "sluice/testing/recording_store.hpp"

#include <new>
#include <utility>

namespace sluice::testing {

Trace Recording::trace() const {
  const std::lock_guard lock(mutex_);
  Trace trace{{}, marks_, {}};
  std::size_t marked = 0;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    for (; marked < marks_.size() && marks_[marked].before <= i; ++marked) {
      trace.marks[marked].before = trace.calls.size();
    }
    if (calls_[i]) trace.calls.push_back(*calls_[i]);
  }
  for (; marked < marks_.size(); ++marked) trace.marks[marked].before = trace.calls.size();
  return trace;
}

void Recording::mark(Time at, sluice::detail::TextArg given) {
  std::string text(given.view());
  for (char& c : text) c = c == '\n' || c == '\r' ? ' ' : c;
  const std::lock_guard lock(mutex_);
  marks_.push_back({at, calls_.size(), std::move(text)});
}

void Recording::clear() {
  const std::lock_guard lock(mutex_);
  first_ += calls_.size();
  calls_.clear();
  marks_.clear();
  left_out_ = 0;
}

std::size_t Recording::left_out() const {
  const std::lock_guard lock(mutex_);
  return left_out_;
}

std::optional<std::size_t> Recording::begin() {
  const std::lock_guard lock(mutex_);
  if (calls_.size() >= max_calls_) {
    ++left_out_;
    return {};
  }
  calls_.emplace_back();
  return first_ + calls_.size() - 1;
}

void Recording::end(std::size_t place, TracedCall call) noexcept {
  const std::lock_guard lock(mutex_);
  if (place >= first_) calls_[place - first_] = std::move(call);
}

class RecordingStore::Call final : public sluice::detail::PassedCall {
 public:
  Call(RecordingStore& store, std::size_t place, const Plan& plan) : store_(store), place_(place) {
    traced_.asked = store.clock().now();
    traced_.caller = store.caller_;
    traced_.id = plan.id();
    for (const Step& step : plan.steps()) traced_.steps.emplace_back(step);
  }

  void answered(const Outcome& outcome) noexcept override {
    traced_.answered = store_.clock().now();
    traced_.error = outcome.error;
    traced_.decision = outcome.decision;
    if (!outcome.error) {
      traced_.each.assign(outcome.steps.begin(), outcome.steps.end());
      traced_.output.assign(outcome.output.begin(), outcome.output.end());
    }
    // Before the caller continues, so that it finds its own call in the trace.
    store_.recording_.end(place_, std::move(traced_));
    done(outcome);
  }

 private:
  RecordingStore& store_;
  std::size_t place_;
  TracedCall traced_;
};

RecordingStore::RecordingStore(Store& inner)
    : StoreWrapper(inner), own_(std::make_unique<Recording>()), recording_(*own_) {}

RecordingStore::RecordingStore(Store& inner, Recording& recording, sluice::detail::TextArg caller)
    : StoreWrapper(inner), recording_(recording), caller_(caller.view()) {}

RecordingStore::~RecordingStore() { end(); }

void RecordingStore::execute(const Plan& plan, Completion done) noexcept {
  std::unique_ptr<sluice::detail::PassedCall> call;
  try {
    const auto place = recording_.begin();
    if (!place) return inner().execute(plan, std::move(done));
    call = std::make_unique<Call>(*this, *place, plan);
    call->done = std::move(done);
    inner().execute(plan, in_flight_.pass(call));
  } catch (const std::bad_alloc&) {
    Completion& left = call ? call->done : done;
    left.fail(Errc::queue_full);
  }
}

}  // namespace sluice::testing
