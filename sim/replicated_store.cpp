#include "sluice/sim/replicated_store.hpp"
#include "sluice/extend/operation.hpp"

#include <algorithm>
#include <stdexcept>

namespace sluice::sim {

ReplicatedStore::ReplicatedStore(VirtualClock& clock, Span lag, std::size_t replicas)
    : clock_(clock), lag_(lag), primary_(std::make_unique<Copy>()) {
  for (std::size_t i = 0; i < replicas; ++i) replicas_.push_back(std::make_unique<Copy>());
}

void ReplicatedStore::execute(const Plan& plan, Completion done) noexcept {
  const Time now = clock_.now();
  const auto steps = plan.steps();
  const auto writes = [](const Step& step) { return step.operation->writes; };
  try {
    replicate();
    if (!replicas_.empty() && std::any_of(steps.begin(), steps.end(), writes)) {
      log_.push_back({now, OwnedPlan(plan)});
      ++writes_;
    }
  } catch (const std::bad_alloc&) {
    return done.fail(Errc::store_full);
  }
  primary_->clock.set(now);
  primary_->store->execute(plan, std::move(done));
}

/// The replicas decide what is older than the lag.
void ReplicatedStore::replicate() {
  const auto nobody = [](void*, const Outcome&) noexcept {};
  for (const Time end = clock_.now() - lag_; !log_.empty() && log_.front().at <= end;) {
    for (const auto& replica : replicas_) {
      replica->clock.set(log_.front().at);
      replica->store->execute(log_.front().plan.view(), Completion(nobody, nullptr));
    }
    log_.pop_front();
  }
}

std::size_t ReplicatedStore::unreplicated() {
  replicate();
  return log_.size();
}

std::unique_ptr<ReplicatedStore::Copy> ReplicatedStore::take_replica() {
  if (replicas_.empty()) {
    throw std::logic_error("ReplicatedStore: no replica is left to fail over to");
  }
  auto replica = std::move(replicas_.back());
  replicas_.pop_back();
  return replica;
}

void ReplicatedStore::fail_over() {
  replicate();
  primary_ = take_replica();
  writes_ -= log_.size();
  log_.clear();
}

void ReplicatedStore::lose_all() {
  static_cast<void>(take_replica());
  log_.clear();
  writes_ = 0;
  primary_ = std::make_unique<Copy>();
  for (auto& replica : replicas_) replica = std::make_unique<Copy>();
}

}  // namespace sluice::sim
