// How the calls of a SharedTokenBucket are made.
#pragma once

#include "sluice/detail/reservation_verb.hpp"
#include "sluice/limiters/shared_token_bucket.hpp"

namespace sluice {

/// Verbs of the calls; see sluice/detail/verb.hpp.
struct SharedTokenBucket::Verbs : detail::BucketVerbs<SharedTokenBucket> {
  struct Claimed;
  static std::unique_ptr<detail::ClaimedLimit> claim(const SharedTokenBucket& bucket,
                                                     const Key& key, Cost cost);

  /// The decision, with the quota's burst from the second output word.
  struct WithLimit {
    Decision operator()(const Outcome& outcome, std::error_code& /*error*/) const noexcept {
      Decision decision = outcome.decision;
      decision.limit = detail::word_of(outcome, 1);
      return decision;
    }
  };
  struct AsReservation {
    Reservation operator()(const Outcome& outcome, std::error_code& /*error*/) const noexcept {
      return reservation(outcome.decision, outcome.output);
    }
  };
  struct AsChange {
    Change operator()(const Outcome& outcome, std::error_code& /*error*/) const noexcept {
      return {detail::word_of(outcome, 1) != 0, detail::word_of(outcome, 0)};
    }
  };
  struct AsConfiguration {
    std::optional<Configuration> operator()(const Outcome& outcome,
                                            std::error_code& error) const noexcept;
  };
  using Limited = detail::StepVerb<WithLimit>;
  using Reserve = detail::StepVerb<AsReservation>;
  using Reward = detail::GivesBack<Limited, detail::WhenAllowed>;
  using Configure = detail::GivesBack<detail::StepVerb<AsChange>, detail::WhenChanged>;

  static Limited try_acquire(const SharedTokenBucket& bucket, const Key& key, Cost cost) {
    return {bucket.store(), bucket.acquire_step(key, cost), {}};
  }
  static Limited peek(const SharedTokenBucket& bucket, const Key& key, Cost cost) {
    return {bucket.store(), bucket.peek_step(key, cost), {}};
  }
  static Reserve reserve(const SharedTokenBucket& bucket, const Key& key, Cost cost,
                         Span max_wait) {
    return {bucket.store(), bucket.reserve_step(key, cost, max_wait), {}};
  }
  static Reserve borrow(const SharedTokenBucket& bucket, const Key& key, Cost cost, Span max_debt) {
    return reserve(bucket, key, cost, max_debt);
  }
  static Limited block(const SharedTokenBucket& bucket, const Key& key, Span span) {
    return {bucket.store(), bucket.block_step(key, span), {}};
  }
  static Reward reward(const SharedTokenBucket& bucket, const Key& key, Cost amount) {
    return {detail::WakeUp(bucket),
            [&] { return Limited(bucket.store(), bucket.reward_step(key, amount), {}); }};
  }
  static Limited penalize(const SharedTokenBucket& bucket, const Key& key, Cost amount) {
    return {bucket.store(), bucket.penalize_step(key, amount), {}};
  }
  static Configure try_configure(const SharedTokenBucket& bucket, const Key& key,
                                 const Quota& quota) {
    return configuring(bucket, bucket.configure_step(key, quota, Inheritance::as_is, true));
  }
  static Configure configure(const SharedTokenBucket& bucket, const Key& key, const Quota& quota,
                             Inheritance inheritance) {
    return configuring(bucket, bucket.configure_step(key, quota, inheritance));
  }
  static detail::StepVerb<AsConfiguration> configuration(const SharedTokenBucket& bucket,
                                                         const Key& key) {
    return {bucket.store(), bucket.peek_step(key, 0), {}};
  }

 private:
  static Configure configuring(const SharedTokenBucket& bucket, const Step& step) {
    return {detail::WakeUp(bucket),
            [&] { return detail::StepVerb<AsChange>(bucket.store(), step, {}); }};
  }
};

}  // namespace sluice
