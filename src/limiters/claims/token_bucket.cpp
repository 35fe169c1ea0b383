// How one waits for a token bucket. Apart from its other calls: who never waits links no waiting.
#include "sluice/limiters/token_bucket.hpp"

#include <algorithm>

#include "src/waiting/claim_of.hpp"

namespace sluice {

struct TokenBucket::Verbs::Claimed final : detail::ClaimOf<TokenBucket, Claimed> {
  using ClaimOf::ClaimOf;

  Key key() const noexcept override { return limiter().named(own_key()); }
  const std::shared_ptr<detail::WaitQueues>& queues() const noexcept override {
    return limiter().queues();
  }
  Step step() const noexcept override { return limiter().reserve_step(own_key(), cost(), Span{0}); }
  /// To the microsecond, from the time until the bucket is full.
  Span refill_time(const Decision& left) const noexcept override {
    const Quota quota = limiter().quota_.of(own_key());
    if (limiter().shape_[3] != 1 || cost().value() > quota.capacity()) return Span{0};
    // In the units of the rule: see sluice/rules/token_bucket.hpp.
    const Word spent =
        std::min(left.reset_after.count(), word_limit / quota.refill()) * quota.refill();
    const Word over = spent + (cost().value() - quota.capacity()) * quota.period();
    return Span{std::max<Word>(0, (over + quota.refill() - 1) / quota.refill())};
  }
  /// The bucket is empty after a grant that had to wait.
  Span time_for(Word /*first*/, Word further) const noexcept override {
    const Quota quota = limiter().quota_.of(own_key());
    if (cost().value() > quota.capacity() || quota.is_unlimited()) return Span{0};
    const Word tokens = std::min(further, word_limit / quota.period()) * quota.period();
    const Word interval = limiter().shape_[3];
    return Span{tokens / quota.refill() / interval * interval};
  }
};

std::unique_ptr<detail::ClaimedLimit> TokenBucket::Verbs::claim(const TokenBucket& bucket,
                                                                const Key& key, Cost cost) {
  return std::make_unique<Claimed>(bucket, key, cost);
}

template Reservation KeyedLimiter<TokenBucket>::acquire(const KeyArg&, Cost, const Deadline&,
                                                        const WaitOptions&) const;
template Reservation KeyedLimiter<TokenBucket>::acquire(const KeyArg&, Cost, const Deadline&,
                                                        const WaitOptions&,
                                                        std::error_code&) const noexcept;
template std::size_t KeyedLimiter<TokenBucket>::waiting(const KeyArg&) const;

}  // namespace sluice
