// How the calls of a LearnedRate are made.
#pragma once

#include "sluice/detail/reservation_verb.hpp"
#include "sluice/limiters/learned_rate.hpp"

namespace sluice {

/// Verbs of the calls whose result is no Decision; see sluice/detail/verb.hpp.
struct LearnedRate::Verbs : detail::ReservationVerbs<LearnedRate> {
  struct Claimed;
  static std::unique_ptr<detail::ClaimedLimit> claim(const LearnedRate& limiter, const Key& key,
                                                     Cost cost);

  struct AsReservation {
    Reservation operator()(const Outcome& outcome, std::error_code& /*error*/) const noexcept {
      return reservation(outcome.decision, outcome.output, cost);
    }
    Cost cost;
  };
  static detail::StepVerb<AsReservation> reserve(const LearnedRate& limiter, const Key& key,
                                                 Cost cost) {
    return {limiter.store(), limiter.acquire_step(key, cost), {cost}};
  }

  struct AsSpeed {
    LearnedSpeed operator()(const Outcome& outcome, std::error_code& /*error*/) const noexcept {
      return {detail::word_of(outcome, 0), detail::word_of(outcome, 1)};
    }
  };
  static detail::StepVerb<AsSpeed> learned(const LearnedRate& limiter, const Key& key) {
    return {limiter.store(), limiter.peek_step(key, 0), {}};
  }
};

}  // namespace sluice
