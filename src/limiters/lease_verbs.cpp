// The verbs of leases: renewing and releasing.
#include "sluice/limiters/detail/lease.hpp"

#include <utility>

#include "src/waiting/release.hpp"

namespace sluice::detail {

std::optional<Plan> RenewVerb::next() noexcept {
  if (step_ || !held_ || !held_->is_held()) return std::nullopt;
  if (held_->is_orphaned()) {
    error_ = Errc::shut_down;
    return std::nullopt;
  }
  asked_at_ = store().clock().now();
  step_ = held_->renew_step();
  return Plan(*step_);
}

void RenewVerb::hear(const Outcome& outcome) noexcept {
  error_ = outcome.error;
  renewed_ = !error_ && held_->renewed(outcome.decision, outcome.output, asked_at_);
  held_->tell_lost();
}

std::optional<Plan> ReleaseVerb::next() {
  if (!held_ || std::exchange(over_, true)) return std::nullopt;
  release_ = std::make_shared<const Release>(store(), held_->release_step(), held_->terms().queues);
  releasing_ = held_->begin_release(error_);
  if (!releasing_) return std::nullopt;
  return Plan(release_->steps());
}

void ReleaseVerb::hear(const Outcome& outcome) noexcept {
  error_ = outcome.error;
  held_->end_release(*releasing_, !error_);
  if (error_) return;
  release_->wake(store(), outcome.output);
  released_ = word_of(outcome, 0) == 1;
}

ReleaseByIdVerb::ReleaseByIdVerb(Store& store, const Step& step, std::shared_ptr<WaitQueues> queues)
    : store_(&store), release_(std::make_shared<const Release>(store, step, std::move(queues))) {}

std::optional<Plan> ReleaseByIdVerb::next() noexcept {
  if (std::exchange(asked_, true)) return std::nullopt;
  return Plan(release_->steps());
}

void ReleaseByIdVerb::hear(const Outcome& outcome) noexcept {
  error_ = outcome.error;
  if (error_) return;
  release_->wake(store(), outcome.output);
  released_ = word_of(outcome, 0) == 1;
}

}  // namespace sluice::detail
