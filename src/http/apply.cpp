// Closing and blocking by a Feedback.
#include "sluice/http/apply.hpp"

#include <algorithm>

namespace sluice::http {

Decision close_gate(const Gates& gates, const Scope& scope, const Feedback& feedback,
                    std::error_code& error) noexcept {
  error.clear();
  if (feedback.wait() <= Span{0}) return {.allowed = true};
  return gates.close(scope, feedback.wait(), error);
}

Decision close_gate(const Gates& gates, const Scope& scope, const Feedback& feedback) {
  if (feedback.wait() <= Span{0}) return {.allowed = true};
  return gates.close(scope, feedback.wait());
}

Decision block(const TokenBucket& bucket, const KeyArg& key, const Feedback& feedback,
               std::error_code& error) noexcept {
  error.clear();
  if (feedback.wait() <= Span{0}) return {.allowed = true};
  return bucket.block(key, std::min(feedback.wait(), bucket.longest()), error);
}

Decision block(const TokenBucket& bucket, const KeyArg& key, const Feedback& feedback) {
  if (feedback.wait() <= Span{0}) return {.allowed = true};
  return bucket.block(key, std::min(feedback.wait(), bucket.longest()));
}

}  // namespace sluice::http
