// with_backoff(): a call that respects the gates of an API, and closes them when the API refuses.
#pragma once

#include <functional>
#include <span>
#include <type_traits>
#include <utility>

#include "sluice/calls/backoff.hpp"
#include "sluice/calls/errors.hpp"
#include "sluice/limiters/gates.hpp"

namespace sluice {

struct BackoffOptions {
  /// The latest time to begin a call, by the store's clock.
  Deadline deadline = Deadline::never();
  /// The most calls, including the first. 1 or more.
  int attempts = 8;
  /// The waits after refusals without a time; see Backoff.
  Span base = std::chrono::seconds{1};
  Span cap = std::chrono::minutes{1};
  Jitter jitter = Jitter::full;
  /// The budget of all calls to the API; null: only `attempts` limits retries.
  RetryBudget* budget = nullptr;
  /// The generator of the waits; null: rng_of() the store's clock.
  Rng* rng = nullptr;
  /// WaitOptions::priority of the waits for the gates.
  int priority = 0;
};
// So that it may be made inside a co_await, as sluice::asio::AsyncWaitOptions.
static_assert(std::is_trivially_destructible_v<BackoffOptions>);

namespace detail {

/// The logic that the blocking and the coroutine form of with_backoff() share.
class BackoffCall {
 public:
  /// Throws std::invalid_argument if an option is out of range, or there are no scopes.
  BackoffCall(const Gates& gates, std::span<const Scope> scopes, const BackoffOptions& options);

  [[nodiscard]] const Gates& gates() const noexcept { return gates_; }
  [[nodiscard]] std::span<const Scope> scopes() const noexcept { return scopes_; }
  [[nodiscard]] Time deadline() const noexcept { return deadline_; }
  [[nodiscard]] int priority() const noexcept { return options_.priority; }

  /// Throws NotGranted if the gates refused.
  void passed(const Decision& decision) const;
  /// The scope to close after a refusal, and for how long.
  struct Closure {
    const Scope& scope;
    Span span;
  };
  [[nodiscard]] Closure closure(const RateLimited& refusal);
  /// False: no further attempt, because of `attempts` or the budget.
  [[nodiscard]] bool may_retry();

 private:
  const Gates& gates_;
  std::span<const Scope> scopes_;
  BackoffOptions options_;
  Time deadline_;
  Backoff backoff_;
  int calls_ = 1;
};

}  // namespace detail

/// Waits until all scopes are open and calls the function. If it throws RateLimited, closes the
/// scope of the refusal for all clients, for the time that the API gives or else a growing,
/// jittered one, and starts again, until a call succeeds.
///
///     const auto page = with_backoff(gates, scopes, [&] {
///       const auto answer = http.get(url);
///       if (answer.status == 429) throw RateLimited(answer.retry_after, answer.scope);
///       return answer.body;
///     });
///
/// Throws NotGranted if the scopes do not open by the deadline, the last RateLimited if the
/// attempts or the budget are used up (the scope is closed nevertheless), std::system_error if the
/// store failed, and at once whatever else the function throws. `stop` cancels the waits for the
/// gates, as WaitOptions::stop. Not available under -fno-exceptions, because refusals are
/// exceptions.
#ifdef __cpp_exceptions
template <class Function>
auto with_backoff(const Gates& gates, std::span<const Scope> scopes, Function&& function,
                  const BackoffOptions& options = {}, const StopToken& stop = {}) {
  detail::BackoffCall call(gates, scopes, options);
  const WaitOptions wait{call.priority(), stop};
  for (;;) {
    call.passed(gates.acquire(scopes, call.deadline(), wait));
    try {
      return std::invoke(function);
    } catch (const RateLimited& refusal) {
      const auto closure = call.closure(refusal);
      gates.close(closure.scope, closure.span);
      if (!call.may_retry()) throw;
    }
  }
}
#endif

}  // namespace sluice
