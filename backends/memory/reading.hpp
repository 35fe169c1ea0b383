// What time a decision sees. The fine clock costs as much as all else in a decision, so it is read
// only where the cheap one could decide otherwise. Belongs to one call.
#pragma once

#include "sluice/clock.hpp"
#include "sluice/extend/operation.hpp"

namespace sluice::memory {

class Reading {
 public:
  /// Reads the cheap clock if `coarse` and `operation` can use it, else the fine one.
  Reading(const Clock& clock, const Operation& operation, bool coarse) noexcept
      : clock_(clock),
        lag_(coarse && operation.apply_lagging != nullptr ? Clock::coarse_lag.count() : 0),
        latest_(to_word(lag_ != 0 ? clock.coarse_now() : clock.now())) {}
  /// Reads the fine clock, once for all.
  explicit Reading(const Clock& clock) noexcept : Reading(clock, to_word(clock.now())) {}
  /// The fine clock was read: `now`.
  Reading(const Clock& clock, Word now) noexcept : clock_(clock), lag_(0), latest_(now) {}

  /// What `operation` makes of `state` at latest(). Unsettled if it takes the fine clock to tell;
  /// then refine() and ask again.
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

  /// The last reading, for what an older time only makes more careful.
  [[nodiscard]] Word latest() const noexcept { return latest_; }

 private:
  const Clock& clock_;
  Word lag_;  // how far latest_ may lie behind
  Word latest_;
};

}  // namespace sluice::memory
