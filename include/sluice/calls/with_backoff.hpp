// with_backoff(): a Call that stands under the gates of an API alone.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "sluice/calls/call.hpp"
#include "sluice/limiters/gates.hpp"

namespace sluice {

namespace detail {
[[nodiscard]] std::vector<Claim> gate_claims(const Gates& gates, std::span<const Scope> scopes);
}  // namespace detail

/// Waits until all scopes are open and calls the function. If it throws RateLimited, closes the
/// scope of the refusal for all clients, for the time that the API gives or else a growing,
/// jittered one, and starts again, until a call succeeds. If it throws Transient, this call pauses.
///
///     const auto page = with_backoff(gates, scopes, [&] {
///       const auto answer = http.get(url);
///       if (answer.status == 429) throw RateLimited(answer.feedback.wait(), answer.scope);
///       return answer.body;
///     });
///
/// The errors are those of a Call. Not available under -fno-exceptions, because refusals are
/// exceptions.
#ifdef __cpp_exceptions
template <class Function>
auto with_backoff(const Gates& gates, std::span<const Scope> scopes, Function&& function,
                  const BackoffOptions& options = {}, const StopToken& stop = {}) {
  const Call call(detail::gate_claims(gates, scopes), options);
  if constexpr (std::is_invocable_v<Function&, const StopToken&>) {
    return call([&](const StopToken& told) { return std::invoke(function, told); }, stop);
  } else {
    return call([&] { return std::invoke(function); }, stop);
  }
}
#endif

}  // namespace sluice
