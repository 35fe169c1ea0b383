// The sliding window counter: construction, calls, and how one waits for it.
#include "sluice/limiters/sliding_window_counter.hpp"

#include <stdexcept>

#include "src/core/unit_text.hpp"
#include "src/limiters/keyed_limiter.hpp"
#include "src/limiters/or_throw.hpp"
#include "src/waiting/claim_of.hpp"

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

Decision SlidingWindowCounter::reward(const KeyArg& key, Cost amount,
                                      std::error_code& error) const noexcept {
  return detail::run(Verbs::reward(*this, key, amount), error);
}

Decision SlidingWindowCounter::reward(const KeyArg& key, Cost amount) const {
  return detail::or_throw(
      {type_name, "reward"}, [&] { return reward_step(key, amount); },
      [&](auto& error) { return reward(key, amount, error); });
}

void SlidingWindowCounter::reset(const KeyArg& key, std::error_code& error) const noexcept {
  detail::run(Verbs::reset(*this, key), error);
}

void SlidingWindowCounter::reset(const KeyArg& key) const {
  detail::or_throw(
      {type_name, "reset"}, [&] { return reset_step(key); },
      [&](auto& error) { return detail::run(Verbs::reset(*this, key), error); });
}

struct SlidingWindowCounter::Verbs::Claimed final : detail::ClaimOf<SlidingWindowCounter, Claimed> {
  using ClaimOf::ClaimOf;

  Key key() const noexcept override { return limiter().named(own_key()); }
  const std::shared_ptr<detail::WaitQueues>& queues() const noexcept override {
    return limiter().queues();
  }
  Step step() const noexcept override { return limiter().acquire_step(own_key(), cost()); }
};

std::unique_ptr<detail::ClaimedLimit> SlidingWindowCounter::Verbs::claim(
    const SlidingWindowCounter& counter, const Key& key, Cost cost) {
  return std::make_unique<Claimed>(counter, key, cost);
}

template class KeyedLimiter<SlidingWindowCounter>;

}  // namespace sluice
