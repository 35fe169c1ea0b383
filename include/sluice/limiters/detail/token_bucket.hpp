// How the calls of a TokenBucket are made.
#pragma once

#include "sluice/detail/reservation_verb.hpp"
#include "sluice/limiters/token_bucket.hpp"

namespace sluice {

/// Verbs of the calls whose result is no Decision; see sluice/detail/verb.hpp.
struct TokenBucket::Verbs : detail::BucketVerbs<TokenBucket> {
  struct Claimed;
  static std::unique_ptr<detail::ClaimedLimit> claim(const TokenBucket& bucket, const Key& key,
                                                     Cost cost);

  struct AsReservation {
    Reservation operator()(const Outcome& outcome, std::error_code& /*error*/) const noexcept {
      return reservation(outcome.decision, outcome.output);
    }
  };
  using Reserve = detail::StepVerb<AsReservation>;

  static Reserve reserve(const TokenBucket& bucket, const Key& key, Cost cost, Span max_wait) {
    return {bucket.store(), bucket.reserve_step(key, cost, max_wait), {}};
  }
  static Reserve try_acquire_up_to(const TokenBucket& bucket, const Key& key, Cost most,
                                   Cost least) {
    return {bucket.store(), bucket.up_to_step(key, most, least), {}};
  }
  static Reserve borrow(const TokenBucket& bucket, const Key& key, Cost cost, Span max_debt) {
    return reserve(bucket, key, cost, max_debt);
  }
};

}  // namespace sluice
