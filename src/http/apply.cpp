// Closing, blocking and refusing by a Feedback.
#include "sluice/http/apply.hpp"

#include <algorithm>
#include <string>

#include "sluice/calls/errors.hpp"

namespace sluice::http {
namespace {

Span span_of(const Feedback& feedback, SpanArg otherwise) noexcept {
  return feedback.wait().value_or(Span{otherwise.count()});
}

/// What a learned rate is told.
ToldLimit told_by(const Window* window, const Feedback& feedback, Time now) noexcept {
  if (window == nullptr) return {};
  const bool is_zero = window->limit == Word{0} || window->length == Span{0};
  if (is_zero || (window->limit && window->remaining > window->limit)) return {};
  ToldLimit told;
  if (window->limit && window->length) {
    told.limit = window->limit;
    told.span = *window->length;
  } else if (window->interval && *window->interval > Span{0}) {
    told.limit = 1;
    told.span = *window->interval;
  }
  const Span left = window->reset.value_or(Span{0}) - std::max(now - feedback.made, Span{0});
  told.remaining = left > Span{0} ? window->remaining : std::nullopt;
  told.reset = std::max(left, Span{0});
  return told;
}

}  // namespace

void require_served(Word status, const Feedback& feedback, std::size_t scope) {
  const std::string what = "the API answered " + std::to_string(status);
  switch (status) {
    case 418:
    case 420:
    case 429:
      throw RateLimited(feedback.wait(), scope, what);
    case 408:
    case 502:
    case 503:
    case 504:
      throw Transient(Served::perhaps, feedback.wait(), what);
    default:
      return;
  }
}

Decision close_gate(const Gates& gates, const Scope& scope, const Feedback& feedback,
                    SpanArg otherwise, std::error_code& error) noexcept {
  error.clear();
  const Span span = span_of(feedback, otherwise);
  if (span <= Span{0}) return {.allowed = true};
  return gates.close(scope, span, error);
}

Decision close_gate(const Gates& gates, const Scope& scope, const Feedback& feedback,
                    SpanArg otherwise) {
  const Span span = span_of(feedback, otherwise);
  if (span <= Span{0}) return {.allowed = true};
  return gates.close(scope, span);
}

Decision block(const TokenBucket& bucket, const KeyArg& key, const Feedback& feedback,
               SpanArg otherwise, std::error_code& error) noexcept {
  error.clear();
  const Span span = span_of(feedback, otherwise);
  if (span <= Span{0}) return {.allowed = true};
  return bucket.block(key, std::min(span, bucket.longest()), error);
}

Decision block(const TokenBucket& bucket, const KeyArg& key, const Feedback& feedback,
               SpanArg otherwise) {
  const Span span = span_of(feedback, otherwise);
  if (span <= Span{0}) return {.allowed = true};
  return bucket.block(key, std::min(span, bucket.longest()));
}

Decision lower(const LearnedRate& rate, const KeyArg& key, const Feedback& feedback,
               const Window* window, std::error_code& error) noexcept {
  return rate.told(key, told_by(window, feedback, rate.store().clock().now()), error);
}

Decision lower(const LearnedRate& rate, const KeyArg& key, const Feedback& feedback,
               const Window* window) {
  return rate.told(key, told_by(window, feedback, rate.store().clock().now()));
}

}  // namespace sluice::http
