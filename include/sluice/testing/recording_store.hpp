// RecordingStore: records every plan, its outcome and the times of both, in front of another store.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "sluice/detail/in_flight.hpp"
#include "sluice/extend/store_wrapper.hpp"
#include "sluice/testing/trace.hpp"

namespace sluice::testing {

/// The recording of one or several RecordingStores. Thread-safe.
class Recording {
 public:
  /// Calls beyond `max_calls` are passed on and counted, but not recorded.
  explicit Recording(std::size_t max_calls = 1'000'000) : max_calls_(max_calls) {}

  /// The answered calls so far, in the order in which they were made.
  [[nodiscard]] Trace trace() const {
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

  /// Adds a mark between two calls. Line breaks in `text` become spaces.
  void mark(Time at, sluice::detail::TextArg given) {
    std::string text(given.view());
    for (char& c : text) c = c == '\n' || c == '\r' ? ' ' : c;
    const std::lock_guard lock(mutex_);
    marks_.push_back({at, calls_.size(), std::move(text)});
  }

  /// Clears the recording. Pending calls are not recorded.
  void clear() {
    const std::lock_guard lock(mutex_);
    first_ += calls_.size();
    calls_.clear();
    marks_.clear();
    left_out_ = 0;
  }

  /// The number of calls beyond max_calls.
  [[nodiscard]] std::size_t left_out() const {
    const std::lock_guard lock(mutex_);
    return left_out_;
  }

 private:
  friend class RecordingStore;

  /// The index of the next call, or none if there is no room. Throws std::bad_alloc.
  std::optional<std::size_t> begin() {
    const std::lock_guard lock(mutex_);
    if (calls_.size() >= max_calls_) {
      ++left_out_;
      return {};
    }
    calls_.emplace_back();
    return first_ + calls_.size() - 1;
  }
  void end(std::size_t place, TracedCall call) noexcept {
    const std::lock_guard lock(mutex_);
    if (place >= first_) calls_[place - first_] = std::move(call);
  }

  const std::size_t max_calls_;
  mutable std::mutex mutex_;
  std::deque<std::optional<TracedCall>> calls_;  // empty until it is answered
  std::vector<Mark> marks_;
  std::size_t first_ = 0;  // the index of calls_[0]
  std::size_t left_out_ = 0;
};

/// Records the calls to another store, and changes no answer.
///
///     RecordingStore store(*inner);
///     const TokenBucket bucket(store, "api", Quota::per_second(10));
///     ...
///     CHECK_THAT(store.trace(), never_exceeds(10, 1s));
///
/// To record the callers, give each worker its own RecordingStore on one Recording. The destructor
/// fails pending calls with Errc::unknown. Costs a few allocations a call. REQUIRES: the inner
/// store and the recording outlive it.
class RecordingStore final : public StoreWrapper {
 public:
  /// Makes its own recording.
  explicit RecordingStore(Store& inner)
      : StoreWrapper(inner), own_(std::make_unique<Recording>()), recording_(*own_) {}
  /// Uses a shared recording, in which its calls have this caller.
  RecordingStore(Store& inner, Recording& recording, sluice::detail::TextArg caller)
      : StoreWrapper(inner), recording_(recording), caller_(caller.view()) {}
  ~RecordingStore() override { end(); }

  void execute(const Plan& plan, Completion done) noexcept override {
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

  [[nodiscard]] Recording& recording() noexcept { return recording_; }
  /// As Recording::trace(), mark() (now) and clear().
  [[nodiscard]] Trace trace() const { return recording_.trace(); }
  void mark(sluice::detail::TextArg text) { recording_.mark(clock().now(), text); }
  void clear() { recording_.clear(); }

 private:
  class Call final : public sluice::detail::PassedCall {
   public:
    Call(RecordingStore& store, std::size_t place, const Plan& plan)
        : store_(store), place_(place) {
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

  std::unique_ptr<Recording> own_;
  Recording& recording_;
  std::string caller_;
  sluice::detail::InFlight in_flight_;
};

}  // namespace sluice::testing
