// RequestLimit: limits the requests of an HTTP server by key. For any HTTP library; sluice/adapters
// has the rest for Boost.Beast and cpp-httplib.
#pragma once

#include <string_view>
#include <system_error>
#include <utility>

#include "sluice/decision.hpp"
#include "sluice/http/emit.hpp"
#include "sluice/key.hpp"

namespace sluice {
class FixedWindow;
class SlidingWindowCounter;
class TokenBucket;
}  // namespace sluice

namespace sluice::http {

/// How a server answers a request.
struct Admission {
  /// 200: serve it. 429 Too Many Requests: the limiter refused it. 503 Service Unavailable: the
  /// store could not decide.
  int status = 200;
  /// For the response, whatever its status.
  LimitHeaders headers{};
  Decision decision{};      ///< meaningless if there is an error
  std::error_code error{};  ///< of the store

  /// Whether to serve it.
  [[nodiscard]] explicit operator bool() const noexcept { return status == 200; }
  /// A line for the body of a refusal, "" for others.
  [[nodiscard]] std::string_view reason() const noexcept;
};

/// The limit of the key that the limiter has decided, as clients are told of it, under the name of
/// the limiter. Throws as Policy.
[[nodiscard]] Policy policy_of(const TokenBucket& limiter, const Key& key,
                               const Decision& decision);
[[nodiscard]] Policy policy_of(const SlidingWindowCounter& limiter, const Key& key,
                               const Decision& decision);
[[nodiscard]] Policy policy_of(const FixedWindow& limiter, const Key& key,
                               const Decision& decision);

/// Limits the requests of a server by the key of each, which may be an API key, an account or an
/// address; with a limiter that takes its limits from a table, each key by its tier.
///
///     const http::RequestLimit limit(TokenBucket(*store, "api", table));
///     const http::Admission admission = limit.admit(api_key.empty() ? "anonymous" : api_key);
///     admission.headers.for_each([&](auto name, auto value) { response.set(name, value); });
///     if (!admission) return response.send(admission.status, admission.reason());
///
/// For a TokenBucket, a SlidingWindowCounter or a FixedWindow; several limits of one request are a
/// plan, with limit_headers(). An empty key is Errc::invalid_key, which is a 503. Immutable and
/// thread-safe. It keeps a copy of the limiter.
template <class L>
class RequestLimit {
 public:
  /// Throws std::invalid_argument if the name of the limiter is none for a Policy. There is only
  /// one, which is the `primary` one.
  explicit RequestLimit(L limiter, const EmitOptions& options = {})
      : limiter_(std::move(limiter)), options_(options) {
    options_.primary = {};
    (void)policy_of(limiter_, Key("any"), Decision{.limit = 1});
  }

  /// Decides a request; it blocks for one operation of the store. See async_admit() of
  /// sluice/adapters/beast.hpp.
  [[nodiscard]] Admission admit(const Key& key, Cost cost = 1) const noexcept {
    std::error_code error;
    const Decision decision = limiter_.try_acquire(key, cost, error);
    return answer(key, decision, error);
  }
  /// The same for a request that was decided in another way.
  [[nodiscard]] Admission answer(const Key& key, const Decision& decision,
                                 const std::error_code& error) const noexcept {
    if (error) return {.status = 503, .error = error};
    return {.status = decision.allowed ? 200 : 429,
            .headers = limit_headers(policy_of(limiter_, key, decision), decision, options_),
            .decision = decision};
  }

  [[nodiscard]] const L& limiter() const noexcept { return limiter_; }

 private:
  L limiter_;
  EmitOptions options_;
};

}  // namespace sluice::http
