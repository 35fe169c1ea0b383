// Reading: the time of a decision. The fine clock costs as much as the rest of a decision, so that
// it is read only where the coarse clock could change the decision. Belongs to one call.
#pragma once

#include "sluice/clock.hpp"
#include "sluice/extend/operation.hpp"

namespace sluice::memory {

class Reading {
 public:
  /// Reads the coarse clock if `coarse` is set and `operation` can use it, else the fine one.
  Reading(const Clock& clock, const Operation& operation, bool coarse) noexcept
      : clock_(clock),
        lag_(coarse && operation.apply_lagging != nullptr ? Clock::coarse_lag.count() : 0),
        latest_(to_word(lag_ != 0 ? clock.coarse_now() : clock.now())) {}
  /// Reads the fine clock, once for all decisions.
  explicit Reading(const Clock& clock) noexcept : Reading(clock, to_word(clock.now())) {}
  /// Uses `now`, a reading of the fine clock.
  Reading(const Clock& clock, Word now) noexcept : clock_(clock), lag_(0), latest_(now) {}

  /// The verdict of `operation` on `state` at latest(). Unsettled if the fine clock is needed: then
  /// call refine() and decide again.
  [[nodiscard]] Verdict decide(const Operation& operation, StateWords& state,
                               const Arguments& args) const noexcept {
    return lag_ != 0 ? operation.apply_lagging(state, args, latest_, lag_)
                     : operation.apply(state, args, latest_);
  }

  /// Reads the fine clock.
  void refine() noexcept {
    lag_ = 0;
    latest_ = to_word(clock_.now());
  }

  /// The last reading, for uses where an older time is only more cautious.
  [[nodiscard]] Word latest() const noexcept { return latest_; }

 private:
  const Clock& clock_;
  Word lag_;  // how far latest_ may lag
  Word latest_;
};

}  // namespace sluice::memory
