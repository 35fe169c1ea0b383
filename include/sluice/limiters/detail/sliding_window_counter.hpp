// How the calls of a SlidingWindowCounter are made.
#pragma once

#include "sluice/detail/verb.hpp"
#include "sluice/limiters/sliding_window_counter.hpp"

namespace sluice {

/// Verbs of the calls whose result is no Decision; see sluice/detail/verb.hpp.
struct SlidingWindowCounter::Verbs {
  struct Claimed;
  static std::unique_ptr<detail::ClaimedLimit> claim(const SlidingWindowCounter& counter,
                                                     const Key& key, Cost cost);

  struct AsUnits {
    Word operator()(const Outcome& outcome, std::error_code& /*error*/) const noexcept {
      return detail::word_of(outcome, 0);
    }
  };
  struct AsSettlement {
    Settlement operator()(const Outcome& outcome, std::error_code& /*error*/) const noexcept {
      const Word units = detail::word_of(outcome, 0);
      return refunds ? Settlement{units, 0} : Settlement{0, units};
    }
    bool refunds;
  };

  static detail::StepVerb<AsUnits> refund(const SlidingWindowCounter& counter, const Key& key,
                                          const Decision& taken, Cost amount) {
    return {counter.store(), counter.refund_step(key, taken, amount), {}};
  }
  static detail::StepVerb<AsSettlement> settle(const SlidingWindowCounter& counter, const Key& key,
                                               const Decision& taken, const SettledCost& cost) {
    const AsSettlement make{cost.actual.value() <= cost.estimated.value()};
    if (detail::nothing_to_settle(taken, cost)) return {counter.store(), {}, make};
    return {counter.store(), counter.settle_step(key, taken, cost), make};
  }
};

}  // namespace sluice
