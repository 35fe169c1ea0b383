// How a Call is tried.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/calls/call.hpp"
#include "sluice/detail/awaitable.hpp"
#include "sluice/detail/call_end.hpp"

namespace sluice {
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
  /// REQUIRES: checked(options). Throws std::invalid_argument if the cost is to be settled and no
  /// claim is an Estimate.
  CallTries(const FirstOf& alternatives, const BackoffOptions& options, bool settles);

  /// Of the alternative that was granted, or would have been first; at the begin, of the first one.
  [[nodiscard]] std::span<const Claim> claims() const noexcept {
    return alternatives_.claims(alternative_);
  }
  [[nodiscard]] Store& store() const noexcept { return claims().front().limit().store(); }
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
  /// Teaches the estimates of the claims that learn. Before a settlement: throws std::system_error,
  /// and teaches nothing, if the cost is out of its range or the function has settled an Estimate.
  void learn(const Grants& grants, Cost actual) const;
  /// What follows from a try that has failed.
  struct Failed {
    std::optional<Step> close{};  ///< of the gate, which the next try waits for; none: it pauses
    bool limited = false;         ///< limits that learn are told, and keep what they granted
    bool refunds = true;
    Span pause{0};
    bool retries = false;
  };
  /// Throws std::out_of_range if the refusal names a gate that the call does not have.
  [[nodiscard]] Failed failed(const RateLimited& refusal);
  [[nodiscard]] Failed failed(const Transient& failure);
  /// What is told to the store in one request, before anything is refunded: views of the grants.
  [[nodiscard]] static std::vector<Step> reports(const Failed& failed, const Grants& grants);
  /// The exception if that request fails.
  [[nodiscard]] static std::system_error failed_report(const std::error_code& error,
                                                       const Step& first);

  // The blocking form.
  [[nodiscard]] Grants acquire(const StopToken& stop);
  void settle(Grants& grants, Cost actual) const;
  /// Closes the gate and tells limits that learn, refunds or at least releases, and pauses if no
  /// gate was closed. False: no further try.
  [[nodiscard]] bool retry_after(const Failed& failed, Grants grants, const StopToken& stop) const;

 private:
  [[nodiscard]] Span pause_after(const Retriable& failure);
  [[nodiscard]] bool may_retry();
  void decide_retry(Failed& failed);

  const FirstOf& alternatives_;
  std::size_t alternative_ = 0;
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

template <class Function>
auto Call::operator()(Function&& function, const StopToken& stop) const {
  using Result = decltype(detail::call_with(function, std::declval<Grants&>()));
  static_assert(!detail::is_awaitable<Result>,
                "the function returns an awaitable, which a blocking call would end without "
                "awaiting it: write co_await sluice::asio::async_call(call, function), or "
                "co_await sluice::asio::guarded(...) or with_backoff(...)");
  detail::CallTries tries(alternatives_, options(), detail::is_costed<std::remove_cvref_t<Result>>);
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
