// A call that keeps to the gates of an API, and closes them when the API says so.
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
  /// Until when to begin calls; by the store's clock.
  Deadline deadline = Deadline::never();
  /// Calls at most, the first included. 1 or more.
  int attempts = 8;
  /// For refusals that do not say how long: see Backoff.
  Span base = std::chrono::seconds{1};
  Span cap = std::chrono::minutes{1};
  Jitter jitter = Jitter::full;
  /// Of all calls to the API; null: no bound but `attempts`.
  RetryBudget* budget = nullptr;
  /// What waits are drawn from; null: rng_of() the store's clock.
  Rng* rng = nullptr;
  /// Of the waits for the gates: WaitOptions::priority.
  int priority = 0;
};
// As sluice::asio::AsyncWaitOptions: it may be made inside a co_await.
static_assert(std::is_trivially_destructible_v<BackoffOptions>);

namespace detail {

/// The steps of with_backoff(), for its blocking form and its coroutine.
class BackoffCall {
 public:
  /// Throws std::invalid_argument if an option is out of range, or there are no scopes.
  BackoffCall(const Gates& gates, std::span<const Scope> scopes, const BackoffOptions& options);

  [[nodiscard]] const Gates& gates() const noexcept { return gates_; }
  [[nodiscard]] std::span<const Scope> scopes() const noexcept { return scopes_; }
  [[nodiscard]] Time deadline() const noexcept { return deadline_; }
  [[nodiscard]] int priority() const noexcept { return options_.priority; }

  /// What the gates answered. Throws NotGranted if it is a refusal.
  void passed(const Decision& decision) const;
  /// How long to close which scope after this refusal.
  struct Closure {
    const Scope& scope;
    Span span;
  };
  [[nodiscard]] Closure closure(const RateLimited& refusal);
  /// False: the refusal is final, because of `attempts` or the budget.
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

/// Waits until all scopes are open, calls, and if the function throws RateLimited, closes the scope
/// that it is about, for everybody, for as long as the API says or else a growing, jittered time;
/// then it begins again, until a call succeeds.
///
///     const auto page = with_backoff(gates, scopes, [&] {
///       const auto answer = http.get(url);
///       if (answer.status == 429) throw RateLimited(answer.retry_after, answer.scope);
///       return answer.body;
///     });
///
/// Throws NotGranted if the scopes do not open by the deadline, the last RateLimited if there have
/// been enough attempts or the budget is used up (the scope is closed even so), std::system_error
/// if the store failed, and at once whatever else the function throws. `stop` ends the waits for
/// the gates, as WaitOptions::stop. Not there under -fno-exceptions: it learns of a refusal by an
/// exception.
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
