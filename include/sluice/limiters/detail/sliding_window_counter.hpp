// How the calls of a SlidingWindowCounter are made.
#pragma once

#include "sluice/detail/reservation_verb.hpp"
#include "sluice/limiters/sliding_window_counter.hpp"

namespace sluice {

/// Verbs of the calls whose result is no Decision; see sluice/detail/verb.hpp.
struct SlidingWindowCounter::Verbs : detail::ReservationVerbs<SlidingWindowCounter> {
  struct Claimed;
  static std::unique_ptr<detail::ClaimedLimit> claim(const SlidingWindowCounter& counter,
                                                     const Key& key, Cost cost);

  struct AsReservation {
    Reservation operator()(const Outcome& outcome, std::error_code& /*error*/) const noexcept {
      return reservation(outcome.decision, outcome.output, cost);
    }
    Cost cost;
  };
  static detail::StepVerb<AsReservation> reserve(const SlidingWindowCounter& counter,
                                                 const Key& key, Cost cost) {
    return {counter.store(), counter.acquire_step(key, cost), {cost}};
  }
};

}  // namespace sluice
