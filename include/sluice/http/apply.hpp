// Applies the feedback of a response to gates and limiters. Thread-safe as those are.
//
// Every call has a form that throws std::system_error if the store could not decide, and one that
// fills an error_code. Only spans are sent to the store, so that only its clock matters.
#pragma once

#include <system_error>

#include "sluice/http/feedback.hpp"
#include "sluice/limiters/gates.hpp"
#include "sluice/limiters/token_bucket.hpp"

namespace sluice::http {

/// Closes the gate of `scope` for Feedback::wait(), at most the gates' cap, for all clients; a
/// closure that ends later stays. Without a wait it does nothing. One store operation, or none; the
/// decision is then allowed and has no time.
Decision close_gate(const Gates& gates, const Scope& scope, const Feedback& feedback);
Decision close_gate(const Gates& gates, const Scope& scope, const Feedback& feedback,
                    std::error_code& error) noexcept;

/// Blocks the bucket of `key` for Feedback::wait(), at most TokenBucket::longest(); use a gate for
/// longer closures. Without a wait it does nothing. One store operation, or none, as above.
Decision block(const TokenBucket& bucket, const KeyArg& key, const Feedback& feedback);
Decision block(const TokenBucket& bucket, const KeyArg& key, const Feedback& feedback,
               std::error_code& error) noexcept;

/// Spends units of `key` until at most `remaining` are left: the server's number counts if it is
/// less than the limiter's. It adds no units and makes no debt, so that several processes may call
/// it at once. If others spent some meanwhile, it may be refused and spends nothing; the next
/// response corrects that. For every limiter with peek() and try_acquire() of a key and a cost. One
/// store operation, or two if there are units to spend.
///
///     if (const Window* w = feedback.find("requests"); w && w->remaining)
///       http::lower(bucket, account, *w->remaining);
template <class Limiter>
Decision lower(const Limiter& limiter, const KeyArg& key, Word remaining,
               std::error_code& error) noexcept {
  const Decision now = limiter.peek(key, 1, error);
  if (error || now.remaining <= remaining) return now;
  return limiter.try_acquire(key, now.remaining - std::max(remaining, Word{0}), error);
}

template <class Limiter>
Decision lower(const Limiter& limiter, const KeyArg& key, Word remaining) {
  std::error_code error;
  const Decision decision = http::lower(limiter, key, remaining, error);
  if (!error) return decision;
  const sluice::detail::CallName call{"http", "lower"};
  if constexpr (requires { limiter.peek_step(key, 1); }) {
    sluice::detail::raise(sluice::detail::failed_call(call, error, limiter.peek_step(key, 1)));
  } else {
    sluice::detail::raise(sluice::detail::failed_with(call, error, ""));
  }
}

}  // namespace sluice::http
