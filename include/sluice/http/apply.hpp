// Applies the feedback of a response to gates, limiters and calls. Thread-safe as those are.
//
// Every call to a store has a form that throws std::system_error if the store could not decide, and
// one that fills an error_code. Only spans are sent to the store, so that only its clock matters.
#pragma once

#include <system_error>

#include "sluice/http/detail/counted.hpp"
#include "sluice/http/feedback.hpp"
#include "sluice/limiters/gates.hpp"
#include "sluice/limiters/learned_rate.hpp"
#include "sluice/limiters/token_bucket.hpp"

namespace sluice::http {

/// For the function of a Call: throws what the Call knows how to deal with, unless the API has
/// answered. 429, 418 (a ban by Binance) and 420 (EVE Online) are RateLimited, of this scope; 408,
/// 502, 503 and 504 are Transient, which may have been served: handle those first if the call must
/// not be made twice. Both have Feedback::wait(). Any other status is an answer.
///
///     const std::string page = call([&] {
///       const auto response = client.get(url);
///       http::require_served(response.status, http::parse_feedback(response.headers, now()));
///       return response.body;
///     });
void require_served(Word status, const Feedback& feedback, std::size_t scope = 0);

/// Closes the gate of `scope` for Feedback::wait(), at most the gates' cap, for all clients; a
/// closure that ends later stays. `otherwise` is how long if the response does not say: after a
/// refusal the next pause of a Backoff, which a Call makes by itself; after any other response 0s.
/// For a time of zero it does nothing. One store operation, or none; the decision is then allowed
/// and has no time.
///
///     http::close_gate(gates, scope, feedback, is_refused ? backoff.next(rng) : Span{0});
Decision close_gate(const Gates& gates, const Scope& scope, const Feedback& feedback,
                    SpanArg otherwise);
Decision close_gate(const Gates& gates, const Scope& scope, const Feedback& feedback,
                    SpanArg otherwise, std::error_code& error) noexcept;

/// Blocks the bucket of `key` in the same way, at most for TokenBucket::longest(); use a gate for
/// longer closures.
Decision block(const TokenBucket& bucket, const KeyArg& key, const Feedback& feedback,
               SpanArg otherwise);
Decision block(const TokenBucket& bucket, const KeyArg& key, const Feedback& feedback,
               SpanArg otherwise, std::error_code& error) noexcept;

/// Spends units of `key` until at most what `window` has remaining is left: the server's number
/// counts if it is less than the limiter's. Of a window with `used` alone, the limiter's limit
/// minus that is what remains. It adds no units and makes no debt, so that several processes may
/// call it at once. If others spent some meanwhile, it may be refused and spends nothing; the next
/// response corrects that. For every limiter with store(), and peek() and try_acquire() of a key
/// and a cost.
///
///     http::lower(bucket, account, feedback, feedback.find("requests"));
///
/// A count of an earlier window spends nothing: the response's own time, Feedback::made, decides,
/// and so does the window's `reset`. It is too old
/// - for a FixedWindow, if `made` is before the present window, or if `made + reset` lies in the
///   first half of the present window or before it: the server's window then ended about when this
///   one began;
/// - for any other limiter, if `made + reset` has passed, or if `made` is longer ago than the
///   longest window of a SlidingWindow or SlidingWindowCounter, or than a TokenBucket takes to
///   fill.
/// The time of the store's Clock must be that of `at`, as parse_feedback() asks.
///
/// One store operation, or two if there are units to spend; none if `window` is null or has neither
/// number, and the decision is then allowed and has no time.
template <class Limiter>
Decision lower(const Limiter& limiter, const KeyArg& key, const Feedback& feedback,
               const Window* window, std::error_code& error) noexcept {
  error.clear();
  if (window == nullptr || !(window->remaining || window->used)) return {.allowed = true};
  const detail::Counted counted{*window, feedback.made};
  const Decision now = limiter.peek(key, 1, error);
  const Word left = counted.left_of(now.limit);
  if (error || now.remaining <= left || detail::is_over(limiter, key, counted, now.at)) return now;
  return detail::spend(limiter, key, now.remaining - left, counted, error);
}

template <class Limiter>
Decision lower(const Limiter& limiter, const KeyArg& key, const Feedback& feedback,
               const Window* window) {
  std::error_code error;
  const Decision decision = http::lower(limiter, key, feedback, window, error);
  if (!error) return decision;
  const sluice::detail::CallName call{"http", "lower"};
  if constexpr (requires { limiter.peek_step(key, 1); }) {
    sluice::detail::raise(sluice::detail::failed_call(call, error, limiter.peek_step(key, 1)));
  } else {
    sluice::detail::raise(sluice::detail::failed_with(call, error, ""));
  }
}

/// Tells a learned rate what `window` says: its limit in its length, or the time between two units,
/// as a ceiling; and what remains until its reset. See LearnedRate::told(). Nothing is told by a
/// window that contradicts itself (more remains than its limit, or a length of zero), nor of the
/// rest by one whose reset has passed since Feedback::made. One store operation.
Decision lower(const LearnedRate& rate, const KeyArg& key, const Feedback& feedback,
               const Window* window);
Decision lower(const LearnedRate& rate, const KeyArg& key, const Feedback& feedback,
               const Window* window, std::error_code& error) noexcept;

}  // namespace sluice::http
