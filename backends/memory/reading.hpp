// What time a decision sees. The fine clock costs more than everything else in a decision, so it is
// read only where the cheap one could decide otherwise. Belongs to one call.
#pragma once

#include "sluice/clock.hpp"
#include "sluice/operation.hpp"

namespace sluice::memory {

class Reading {
 public:
  /// Reads the cheap clock where `operation` can use it, else the fine one.
  Reading(const Clock& clock, const Operation& operation, bool coarse) noexcept
      : clock_(clock), is_fine_(!coarse || operation.settled == nullptr) {
    latest_ = to_word(is_fine_ ? clock.now() : clock.coarse_now());
  }
  /// Reads the fine clock, once for all.
  explicit Reading(const Clock& clock) noexcept
      : clock_(clock), latest_(to_word(clock.now())), is_fine_(true) {}

  /// The instant to decide at. The cheap reading c serves if the answer is settled from c to
  /// c + coarse_lag, before which the fine clock's instant lies; else the fine clock is read.
  [[nodiscard]] Word at(const Operation& operation, const StateWords& state,
                        const Arguments& args) noexcept {
    if (!is_fine_ &&
        !operation.settled(state, args, latest_, latest_ + Clock::coarse_lag.count())) {
      latest_ = to_word(clock_.now());
      is_fine_ = true;
    }
    return latest_;
  }

  /// The last reading, for what an older time only makes more careful.
  [[nodiscard]] Word latest() const noexcept { return latest_; }

 private:
  const Clock& clock_;
  Word latest_;
  bool is_fine_;
};

}  // namespace sluice::memory
