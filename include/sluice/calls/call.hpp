// Call: a call of an API that stands under limits and gates.
#pragma once

#include <exception>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/calls/backoff.hpp"
#include "sluice/calls/claim.hpp"
#include "sluice/calls/errors.hpp"
#include "sluice/calls/grants.hpp"
#include "sluice/detail/awaitable.hpp"
#include "sluice/detail/call_end.hpp"
#include "sluice/wait_options.hpp"

namespace sluice {

struct BackoffOptions {
  /// The latest time to begin a call, by the store's clock.
  Deadline deadline = Deadline::never();
  /// The time by which a call must have ended, by the store's clock: waits and retries end by then,
  /// the function is told by its stop token, a coroutine is cancelled, and renewers renew its
  /// leases no longer. So a place is held until then and one TTL longer at most, whatever the
  /// function does.
  Deadline end_by = Deadline::never();
  /// The most calls, including the first. 1 or more.
  int attempts = 8;
  /// The waits after failed calls whose answer has no time; see Backoff.
  Span base = std::chrono::seconds{1};
  Span cap = std::chrono::minutes{1};
  Jitter jitter = Jitter::full;
  /// The budget of all calls to the API; null: only `attempts` limits retries.
  RetryBudget* budget = nullptr;
  /// The generator of the waits; null: rng_of() the store's clock.
  Rng* rng = nullptr;
  /// Of the waits: WaitOptions::priority, flow and weight. A Call keeps a copy of the name.
  int priority = 0;
  std::string_view flow{};
  int weight = 1;
};
// So that it may be made inside a co_await, as sluice::asio::AsyncWaitOptions.
static_assert(std::is_trivially_destructible_v<BackoffOptions>);

/// The result of a function that learns its cost during the call.
template <class T>
struct Costed {
  T value;
  Word cost;  ///< in units of the limiter, 0 or more
};

namespace detail {

template <class T>
inline constexpr bool is_costed = false;
template <class T>
inline constexpr bool is_costed<Costed<T>> = true;

/// True if the function takes a stop token, alone or behind what was granted.
template <class Function, class Granted>
inline constexpr bool takes_stop = !std::is_invocable_v<Function, Granted&> &&
                                   (std::is_invocable_v<Function, Granted&, const StopToken&> ||
                                    std::is_invocable_v<Function, const StopToken&>);

/// Calls the function, with what was granted and with the token, if it accepts them.
template <class Function, class Granted>
decltype(auto) call_with(Function&& function, Granted& granted, const StopToken& stop = {}) {
  if constexpr (std::is_invocable_v<Function, Granted&>) {
    return std::invoke(std::forward<Function>(function), granted);
  } else if constexpr (std::is_invocable_v<Function, Granted&, const StopToken&>) {
    return std::invoke(std::forward<Function>(function), granted, stop);
  } else if constexpr (std::is_invocable_v<Function, const StopToken&>) {
    return std::invoke(std::forward<Function>(function), stop);
  } else {
    return std::invoke(std::forward<Function>(function));
  }
}

/// The error of a settlement that matters to the caller.
[[nodiscard]] std::error_code settle_error(std::error_code error, const Decision& settled) noexcept;

/// The tries of one call. What the blocking form and the coroutine have in common comes first.
class CallTries {
 public:
  /// Throws std::invalid_argument if an option is out of range or there is no claim, and if the
  /// cost is to be settled and no claim is an Estimate.
  CallTries(std::span<const Claim> claims, const BackoffOptions& options, bool settles);

  [[nodiscard]] std::span<const Claim> claims() const noexcept { return claims_; }
  [[nodiscard]] Store& store() const noexcept { return claims_.front().limit().store(); }
  /// Of a wait for claims: no later than end().
  [[nodiscard]] Time deadline() const noexcept { return deadline_; }
  [[nodiscard]] Time end() const noexcept { return end_; }
  /// Throws NotGranted if it is too late for a try.
  void begin() const;
  [[nodiscard]] const BackoffOptions& options() const noexcept { return options_; }
  /// Of the first try: a retry waits where it stood.
  [[nodiscard]] const std::optional<Arrival>& arrival() const noexcept { return arrival_; }
  /// Throws NotGranted if it was refused. Leases are not renewed behind end().
  void granted(const Grants& grants);
  /// The next claim from `claim` on that is an Estimate; claims().size(): there is none.
  [[nodiscard]] std::size_t next_estimate(std::size_t claim) const noexcept;
  /// Teaches the estimates of the claims that learn.
  void learn(Cost actual) const;
  /// What follows from a try that has failed.
  struct Failed {
    std::optional<Step> close{};  ///< of the gate, which the next try waits for; none: it pauses
    bool refunds = true;
    Span pause{0};
    bool retries = false;
  };
  /// Throws std::out_of_range if the refusal names a gate that the call does not have.
  [[nodiscard]] Failed failed(const RateLimited& refusal);
  [[nodiscard]] Failed failed(const Transient& failure);

  // The blocking form.
  [[nodiscard]] Grants acquire(const StopToken& stop);
  void settle(Grants& grants, Cost actual) const;
  /// Closes the gate, refunds or at least releases, and pauses if no gate was closed. False: no
  /// further try.
  [[nodiscard]] bool retry_after(const Failed& failed, Grants grants, const StopToken& stop) const;

 private:
  [[nodiscard]] Span pause_after(const Retriable& failure);
  [[nodiscard]] bool may_retry();

  std::span<const Claim> claims_;
  BackoffOptions options_;
  Time end_;
  Time deadline_;
  Backoff backoff_;
  std::optional<Arrival> arrival_{};
  int tries_ = 1;
};

/// What was lost, or an empty text.
[[nodiscard]] std::string text_of_loss(const Grants& grants);

#ifdef __cpp_exceptions
/// A store's failure. Rethrows any other exception.
[[nodiscard]] std::optional<std::system_error> store_failure(const std::exception_ptr& thrown);

/// Behind the function: throws LeaseLost or NotSettled, with the result, if that is so.
template <class T>
void require_kept(const Grants& grants, const std::exception_ptr& settling, T& result) {
  using Value = std::remove_cvref_t<T>;
  const auto failure = store_failure(settling);
  const std::error_code code = failure ? failure->code() : std::error_code{};
  const std::string lost = text_of_loss(grants);
  if (!lost.empty()) throw LeaseLostWith<Value>(lost, code, std::move(result));
  if (failure) throw NotSettled<Value>(*failure, std::move(result));
}
inline void require_kept(const Grants& grants) {
  const std::string lost = text_of_loss(grants);
  if (!lost.empty()) throw LeaseLost(lost);
}

/// The error of a settlement, if there is one.
[[nodiscard]] std::exception_ptr settled(const CallTries& tries, Grants& grants, Cost actual);
#endif

/// Calls the function, which may take a token that is stopped at the end of its time.
template <class Function>
decltype(auto) call_in_time(const CallTries& tries, Grants& grants, Function& function,
                            const StopToken& stop) {
  if constexpr (takes_stop<Function&, Grants>) {
    const CallWatch watch(tries.store().clock(), tries.end(), grants, stop);
    return call_with(function, grants, watch.token());
  } else {
    return call_with(function, grants);
  }
}

template <class Function>
auto call_and_settle(const CallTries& tries, Grants& grants, Function& function,
                     const StopToken& stop) {
  using Result = std::decay_t<decltype(call_with(function, grants))>;
#ifdef __cpp_exceptions
  if constexpr (is_costed<Result>) {
    auto result = call_in_time(tries, grants, function, stop);
    require_kept(grants, settled(tries, grants, result.cost), result.value);
    return std::move(result.value);
  } else if constexpr (std::is_void_v<Result>) {
    call_in_time(tries, grants, function, stop);
    require_kept(grants);
  } else if constexpr (std::is_move_constructible_v<Result>) {
    Result result = call_in_time(tries, grants, function, stop);
    require_kept(grants, nullptr, result);
    return result;
  } else {  // it cannot be put into an exception
    return call_in_time(tries, grants, function, stop);
  }
#else
  if constexpr (is_costed<Result>) {
    auto result = call_in_time(tries, grants, function, stop);
    tries.settle(grants, result.cost);
    return std::move(result.value);
  } else {
    return call_in_time(tries, grants, function, stop);
  }
#endif
}

}  // namespace detail

/// A call of an API, with all that it stands under: limits, places and gates.
///
///     const Call ask({{requests, "alice"}, {tokens, "alice", Estimate{800}}, {gates, account}},
///                    {.deadline = 30s, .budget = &budget});
///     const std::string text = ask([&] {
///       const auto answer = model.ask(prompt);
///       if (answer.status == 429) throw RateLimited(answer.retry_after);
///       return Costed<std::string>{answer.text, answer.tokens};
///     });
///
/// It waits until all claims are granted at one instant (see acquire()), calls the function, and
/// ends as the function does:
/// - It returns: the result is returned, also behind BackoffOptions::end_by. The cost of a Costed
///   result is charged for each Estimate instead of what was estimated. Leases are released. If the
///   store cannot charge the cost, the result is in the exception, NotSettled.
/// - It throws RateLimited: the API did not serve the call. The gate that it names, by its number
///   among the claims that are gates, is closed for all clients, for the time that the API gives or
///   else a growing, jittered one; all else is refunded. The call then waits again, at its place in
///   the queue, until a try succeeds. Without a gate this call alone pauses.
/// - It throws Transient: what was granted stays charged or is refunded, as Served says, leases are
///   released, and this call alone pauses in the same way before it waits again.
/// - It throws anything else: leases are released, and all else stays charged, because the API may
///   have served the call.
///
/// If a lease was lost meanwhile, LeaseLost is thrown instead of the result, and has it.
///
/// The function may take the grants, a stop token, or both: `[](Grants& granted) { ... }`,
/// `[](const StopToken& stop) { ... }`, `[](Grants& granted, const StopToken& stop) { ... }`. The
/// token is stopped at BackoffOptions::end_by, when a lease of the call is lost, and by the
/// caller's own; on a thread that finds it out, which may be one of a store, of a renewer or of
/// this call. One that ignores it goes on, while its place expires. A function with a token, under
/// a time or a lease, costs a thread for as long as it runs, except on a VirtualClock.
///
/// A coroutine does not compile here: see asio::async_call(). Immutable: one object serves any
/// number of calls and threads. It keeps copies of the limiters. The stores must outlive it.
class Call {
 public:
  explicit Call(std::span<const Claim> claims, const BackoffOptions& options = {})
      : claims_(claims.begin(), claims.end()), options_(options), flow_(options.flow) {}
  Call(std::initializer_list<Claim> claims, const BackoffOptions& options = {})
      : Call(std::span(claims.begin(), claims.size()), options) {}

  /// Throws NotGranted if the claims are not granted by the deadline or `end_by`, the last
  /// RateLimited or Transient if the attempts, the budget or the time are used up (the gate is
  /// closed nevertheless), std::system_error if the store failed or there can be no thread,
  /// NotSettled if it failed behind the call, LeaseLost, std::invalid_argument for options out of
  /// range, and what else the function throws. `stop` cancels the waits and stops the token.
  template <class Function>
  auto operator()(Function&& function, const StopToken& stop = {}) const;

  [[nodiscard]] std::span<const Claim> claims() const noexcept { return claims_; }
  /// The name of the flow is that of this object.
  [[nodiscard]] BackoffOptions options() const noexcept {
    BackoffOptions options = options_;
    options.flow = flow_;
    return options;
  }

 private:
  std::vector<Claim> claims_;
  BackoffOptions options_;
  std::string flow_;
};

template <class Function>
auto Call::operator()(Function&& function, const StopToken& stop) const {
  using Result = decltype(detail::call_with(function, std::declval<Grants&>()));
  static_assert(!detail::is_awaitable<Result>,
                "the function returns an awaitable, which a blocking call would end without "
                "awaiting it: write co_await sluice::asio::async_call(call, function), or "
                "co_await sluice::asio::guarded(...) or with_backoff(...)");
  detail::CallTries tries(claims_, options(), detail::is_costed<std::remove_cvref_t<Result>>);
#ifdef __cpp_exceptions
  for (;;) {
    Grants grants = tries.acquire(stop);
    try {
      return detail::call_and_settle(tries, grants, function, stop);
    } catch (const RateLimited& refusal) {
      if (!tries.retry_after(tries.failed(refusal), std::move(grants), stop)) throw;
    } catch (const Transient& failure) {
      if (!tries.retry_after(tries.failed(failure), std::move(grants), stop)) throw;
    }
  }
#else  // refusals are exceptions
  Grants grants = tries.acquire(stop);
  return detail::call_and_settle(tries, grants, function, stop);
#endif
}

}  // namespace sluice
