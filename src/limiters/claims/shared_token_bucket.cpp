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
};

std::unique_ptr<detail::ClaimedLimit> SharedTokenBucket::Verbs::claim(
    const SharedTokenBucket& bucket, const Key& key, Cost cost) {
  return std::make_unique<Claimed>(bucket, key, cost);
}

template Reservation KeyedLimiter<SharedTokenBucket>::acquire(const KeyArg&, Cost, const Deadline&,
                                                              const WaitOptions&) const;
template Reservation KeyedLimiter<SharedTokenBucket>::acquire(const KeyArg&, Cost, const Deadline&,
                                                              const WaitOptions&,
                                                              std::error_code&) const noexcept;
template std::size_t KeyedLimiter<SharedTokenBucket>::waiting(const KeyArg&) const;

}  // namespace sluice
