// How the calls of a SlidingWindow are made.
#pragma once

#include "sluice/detail/reservation_verb.hpp"
#include "sluice/limiters/sliding_window.hpp"

namespace sluice {

/// Verbs of the calls whose result is no Decision; see sluice/detail/verb.hpp.
struct SlidingWindow::Verbs : detail::ReservationVerbs<SlidingWindow> {
  struct Claimed;
  static std::unique_ptr<detail::ClaimedLimit> claim(const SlidingWindow& windows, const Key& key,
                                                     Cost cost);

  struct AsReservation {
    Reservation operator()(const Outcome& outcome, std::error_code& /*error*/) const noexcept {
      return reservation(outcome.decision, outcome.output, cost);
    }
    Cost cost;
  };
  static detail::StepVerb<AsReservation> reserve(const SlidingWindow& windows, const Key& key,
                                                 Cost cost, Span max_wait = Span{0}) {
    return {windows.store(), windows.reserve_step(key, cost, max_wait), {cost}};
  }

  struct AsRemaining {
    std::vector<Word> operator()(const Outcome& outcome, std::error_code& error) const {
      if (error) return {};
      if (detail::is_constant(outcome.decision.limit)) {
        return std::vector<Word>(windows.size(), outcome.decision.limit);
      }
      const auto left = remaining_of(outcome.output);
      std::vector<Word> result(left.begin(), left.end());
      for (std::size_t i = 0; i < result.size(); ++i) {
        if (windows[i].limit == unlimited) result[i] = unlimited;
      }
      return result;
    }
    std::vector<WindowLimit> windows;
  };
  static detail::StepVerb<AsRemaining> remaining(const SlidingWindow& windows, const Key& key) {
    return {windows.store(), windows.peek_step(key, 0), {windows.limit_.of(key)->windows}};
  }
};

}  // namespace sluice
