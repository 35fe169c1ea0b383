// How one waits for a shared token bucket. Apart from its other calls: who never waits links no
// waiting.
#include "sluice/limiters/shared_token_bucket.hpp"

#include "src/waiting/claim_of.hpp"

namespace sluice {

struct SharedTokenBucket::Verbs::Claimed final : detail::ClaimOf<SharedTokenBucket, Claimed> {
  using ClaimOf::ClaimOf;

  Key key() const noexcept override { return limiter().named(own_key()); }
  const std::shared_ptr<detail::WaitQueues>& queues() const noexcept override {
    return limiter().queues();
  }
  Step step() const noexcept override { return limiter().reserve_step(own_key(), cost(), Span{0}); }
  Grant grant_of(const Outcome& outcome, Time) const noexcept {
    return reservation(outcome.decision, outcome.output);
  }
  void refund_grant(const Grant& grant, Completion done) noexcept {
    store().execute(limiter().refund_step(own_key(), grant, grant.granted), std::move(done));
  }
};

std::unique_ptr<detail::ClaimedLimit> SharedTokenBucket::Verbs::claim(
    const SharedTokenBucket& bucket, const Key& key, Cost cost) {
  return std::make_unique<Claimed>(bucket, key, cost);
}

}  // namespace sluice
