// The verbs of leases: renewing and releasing.
#include "sluice/limiters/detail/lease.hpp"

namespace sluice::detail {

std::optional<Plan> RenewVerb::next() noexcept {
  if (step_ || !held_ || !held_->is_held()) return std::nullopt;
  if (held_->is_orphaned()) {
    error_ = Errc::shut_down;
    return std::nullopt;
  }
  renewed_ = held_->holds_nothing();
  if (renewed_) return std::nullopt;
  asked_at_ = store().clock().now();
  step_ = held_->renew_step();
  return Plan(*step_);
}

void RenewVerb::hear(const Outcome& outcome) noexcept {
  error_ = outcome.error;
  renewed_ = !error_ && held_->renewed(outcome.decision, outcome.output, asked_at_);
  held_->tell_lost();
}

std::optional<Plan> ReleaseVerb::next() noexcept {
  if (!held_ || step_) return std::nullopt;
  step_ = held_->release_step();
  releasing_ = held_->begin_release(error_);
  if (!releasing_) return std::nullopt;
  if (held_->holds_nothing()) {
    released_ = true;
    held_->end_release(*releasing_, true);
    return std::nullopt;
  }
  return Plan(*step_);
}

void ReleaseVerb::hear(const Outcome& outcome) noexcept {
  error_ = outcome.error;
  held_->end_release(*releasing_, !error_);
  released_ = !error_ && word_of(outcome, 0) == 1;
}

}  // namespace sluice::detail
