#include "sluice/http/serve.hpp"

#include "sluice/limiters/fixed_window.hpp"
#include "sluice/limiters/sliding_window_counter.hpp"
#include "sluice/limiters/token_bucket.hpp"

namespace sluice::http {

std::string_view Admission::reason() const noexcept {
  if (status == 200) return {};
  return status == 429 ? "too many requests\n" : "the limit cannot be checked now\n";
}

Policy policy_of(const TokenBucket& limiter, const Key& key, const Decision& /*decision*/) {
  return {limiter.name(), limiter.quota(key)};
}

Policy policy_of(const SlidingWindowCounter& limiter, const Key& /*key*/,
                 const Decision& decision) {
  return {limiter.name(), WindowLimit{decision.limit, limiter.window().span}};
}

Policy policy_of(const FixedWindow& limiter, const Key& /*key*/, const Decision& decision) {
  const Calendar::Window window = limiter.calendar().window(decision.at);
  return {limiter.name(), WindowLimit{decision.limit, window.end - window.begin}};
}

}  // namespace sluice::http
