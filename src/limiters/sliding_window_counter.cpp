// Construction of the sliding window counter, and its calls that return more than a decision.
#include "sluice/limiters/sliding_window_counter.hpp"

#include <stdexcept>

#include "src/core/unit_text.hpp"
#include "src/limiters/or_throw.hpp"

namespace sluice {

namespace {

using Rule = SlidingWindowCounterRule;

Word valid_limit(Word limit) {
  if (limit == unlimited || (limit >= 0 && limit <= Rule::max_limit)) return limit;
  throw std::invalid_argument("sliding window counter: the limit must be 0 to " +
                              std::to_string(Rule::max_limit) + ", or unlimited, got " +
                              std::to_string(limit));
}

Span valid_span(Span span) {
  if (span.count() >= 1 && span.count() <= Rule::max_span) return span;
  throw std::invalid_argument("sliding window counter: the span must be 1 us to " +
                              std::to_string(Rule::max_span) + " us, got " +
                              std::to_string(span.count()) + " us");
}

}  // namespace

SlidingWindowCounter::SlidingWindowCounter(const StoreHandle& store, detail::TextArg name,
                                           WindowLimit window)
    : KeyedLimiter(store, name, detail::span_text(window.span)),
      limit_(valid_limit(window.limit)),
      span_(valid_span(window.span)) {}

SlidingWindowCounter::SlidingWindowCounter(const StoreHandle& store, detail::TextArg name,
                                           std::shared_ptr<const LimitTable<Word>> limits,
                                           SpanArg span)
    : KeyedLimiter(store, name, detail::span_text(valid_span(span))),
      limit_(std::move(limits)),
      span_(span) {}

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
