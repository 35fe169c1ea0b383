// Construction of the sliding window counter, and its calls that return more than a decision.
#include "sluice/limiters/sliding_window_counter.hpp"

#include <stdexcept>

#include "src/core/unit_text.hpp"
#include "src/limiters/or_throw.hpp"

namespace sluice {

SlidingWindowCounter::SlidingWindowCounter(const StoreHandle& store, detail::TextArg name,
                                           WindowLimit window)
    : KeyedLimiter(store, name, detail::unit_under(detail::span_text(window.span), window.limit)),
      window_(window) {
  using Rule = SlidingWindowCounterRule;
  if (window.limit != unlimited && (window.limit < 0 || window.limit > Rule::max_limit)) {
    throw std::invalid_argument("sliding window counter: the limit must be 0 to " +
                                std::to_string(Rule::max_limit) + ", or unlimited, got " +
                                std::to_string(window.limit));
  }
  if (window.span.count() < 1 || window.span.count() > Rule::max_span) {
    throw std::invalid_argument("sliding window counter: the span must be 1 us to " +
                                std::to_string(Rule::max_span) + " us, got " +
                                std::to_string(window.span.count()) + " us");
  }
}

Reservation SlidingWindowCounter::reserve(const KeyArg& key, Cost cost,
                                          std::error_code& error) const noexcept {
  return detail::run(Verbs::reserve(*this, key, cost), error);
}

Reservation SlidingWindowCounter::reserve(const KeyArg& key, Cost cost) const {
  return detail::or_throw(
      {type_name, "reserve"}, [&] { return acquire_step(key, cost); },
      [&](auto& error) { return reserve(key, cost, error); });
}

}  // namespace sluice
