// Construction of the sliding window counter.
#include "sluice/limiters/sliding_window_counter.hpp"

#include <stdexcept>

#include "src/core/unit_text.hpp"
#include "src/limiters/refund_calls.hpp"

namespace sluice {

SlidingWindowCounter::SlidingWindowCounter(const StoreHandle& store, detail::TextArg name,
                                           WindowLimit window)
    : KeyedLimiter(store, name, detail::span_text(window.span)), window_(window) {
  using Rule = SlidingWindowCounterRule;
  if (window.limit < 1 || window.limit > Rule::max_limit) {
    throw std::invalid_argument("sliding window counter: the limit must be 1 to " +
                                std::to_string(Rule::max_limit) + ", got " +
                                std::to_string(window.limit));
  }
  if (window.span.count() < 1 || window.span.count() > Rule::max_span) {
    throw std::invalid_argument("sliding window counter: the span must be 1 us to " +
                                std::to_string(Rule::max_span) + " us, got " +
                                std::to_string(window.span.count()) + " us");
  }
}

Word SlidingWindowCounter::refund(const KeyArg& key, const Decision& taken, Cost amount,
                                  std::error_code& error) const noexcept {
  return detail::run(Verbs::refund(*this, key, taken, amount), error);
}

Word SlidingWindowCounter::refund(const KeyArg& key, const Decision& taken, Cost amount) const {
  return detail::or_throw(
      {type_name, "refund"}, [&] { return refund_step(key, taken, amount); },
      [&](auto& error) { return refund(key, taken, amount, error); });
}

Step SlidingWindowCounter::settle_step(const Key& key, const Decision& taken,
                                       const SettledCost& cost) const noexcept {
  using Change = SlidingWindowCounterRule::Change;
  return detail::settle_step(
      cost, [&](Word units) { return refund_step(key, taken, units); },
      [&](Word units) { return adjust(key, Change::charge, charged(taken, units), taken.at); });
}

Settlement SlidingWindowCounter::settle(const KeyArg& key, const Decision& taken,
                                        const SettledCost& cost,
                                        std::error_code& error) const noexcept {
  return detail::run(Verbs::settle(*this, key, taken, cost), error);
}

Settlement SlidingWindowCounter::settle(const KeyArg& key, const Decision& taken,
                                        const SettledCost& cost) const {
  return detail::settle(*this, key, taken, cost);
}

}  // namespace sluice
