// How one waits for a slot lock. Apart from its other calls: who never waits links no waiting.
#include "sluice/limiters/slot_lock.hpp"

#include <algorithm>

#include "src/waiting/claim_of.hpp"

namespace sluice {

struct SlotLock::Verbs::Claimed final : detail::ClaimOf<SlotLock, Claimed> {
  using ClaimOf::ClaimOf;

  Key key() const noexcept override { return limiter().named(own_key()); }
  const std::shared_ptr<detail::WaitQueues>& queues() const noexcept override {
    return limiter().queues();
  }
  Step step() const noexcept override { return limiter().acquire_step(own_key()); }
  Span time_for(Word /*first*/, Word further) const noexcept override {
    const Span interval = limiter().interval();
    return interval * std::min(further, word_limit / interval.count());
  }
  Grant grant_of(const Outcome& outcome, Time asked) const noexcept {
    return limiter().permit(outcome.decision, asked);
  }
  void refund_grant(const Grant& grant, Completion done) noexcept {
    execute_refund(limiter().cancel_step(own_key(), grant), std::move(done));
  }
};

std::unique_ptr<detail::ClaimedLimit> SlotLock::Verbs::claim(const SlotLock& lock, const Key& key,
                                                             Cost /*cost*/) {
  return std::make_unique<Claimed>(lock, key, 1);
}

SlotPermit SlotLock::acquire(const KeyArg& key, const Deadline& deadline,
                             const WaitOptions& options) const {
  return detail::acquire_one(*this, key, 1, deadline, options);
}
SlotPermit SlotLock::acquire(const KeyArg& key, const Deadline& deadline,
                             const WaitOptions& options, std::error_code& error) const noexcept {
  return detail::acquire_one(*this, key, 1, deadline, options, error);
}

}  // namespace sluice
