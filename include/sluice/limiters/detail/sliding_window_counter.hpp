// How the calls of a SlidingWindowCounter are made, and how acquire() waits.
#pragma once

#include "sluice/detail/verb.hpp"
#include "sluice/limiters/sliding_window_counter.hpp"

namespace sluice {

/// Verbs of the calls whose result is no Decision; see sluice/detail/verb.hpp.
struct SlidingWindowCounter::Verbs {
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

/// How acquire() waits; see detail::WaiterFor.
struct SlidingWindowCounter::Waiting : KeyedLimiter<SlidingWindowCounter>::Waiting {
  static void refund(const SlidingWindowCounter& counter, const Request& request,
                     const Grant& grant, Completion done) noexcept {
    counter.store().execute(counter.refund_step(request.key(), grant, request.cost),
                            std::move(done));
  }
};

}  // namespace sluice
