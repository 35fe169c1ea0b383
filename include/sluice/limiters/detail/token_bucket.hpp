// How the calls of a TokenBucket are made, and how acquire() waits.
#pragma once

#include "sluice/detail/reservation_verb.hpp"
#include "sluice/limiters/token_bucket.hpp"

namespace sluice {

/// Verbs of the calls whose result is no Decision; see sluice/detail/verb.hpp.
struct TokenBucket::Verbs : detail::ReservationVerbs<TokenBucket> {
  struct AsReservation {
    Reservation operator()(const Outcome& outcome, std::error_code& /*error*/) const noexcept {
      return {outcome.decision, outcome.output};
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

/// How acquire() waits; see detail::WaiterFor.
struct TokenBucket::Waiting : KeyedLimiter<TokenBucket>::Waiting {
  using Grant = Reservation;
  static Step step(const TokenBucket& bucket, const Request& request) noexcept {
    return bucket.reserve_step(request.key(), request.cost, Span{0});
  }
  /// To the microsecond, from the time until the bucket is full.
  static Span refill_time(const TokenBucket& bucket, const Request& request,
                          const Decision& left) noexcept;
  /// The bucket is empty after a grant that had to wait.
  static Span time_for(const TokenBucket& bucket, const Request& request, Word first,
                       Word further) noexcept;
  static Grant grant(const TokenBucket&, const Request&, const Outcome& outcome, Time) noexcept {
    return {outcome.decision, outcome.output};
  }
  static void refund(const TokenBucket& bucket, const Request& request, Grant& grant,
                     Completion done) noexcept {
    bucket.store().execute(bucket.refund_step(request.key(), grant, grant.granted),
                           std::move(done));
  }
};

}  // namespace sluice
