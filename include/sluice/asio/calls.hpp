// guarded() and with_backoff() as coroutines. Header only; needs Boost 1.81.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/asio.hpp"
#include "sluice/asio/acquire.hpp"
#include "sluice/calls/guarded.hpp"
#include "sluice/calls/with_backoff.hpp"

namespace sluice::asio {

/// The functions that guarded() and with_backoff() accept. g++ 12 destroys a closure twice if it is
/// made inside a co_await and its captures have destructors. Make such a function before, and pass
/// it by its name, or by std::ref() if it cannot be copied:
///
///     const auto fetch = [client] { return client->fetch(); };
///     co_await sluice::asio::guarded(bucket, "alice", 1, 5s, fetch);
template <class Function>
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
concept SafeInCoAwait =
    std::is_lvalue_reference_v<Function> || std::is_trivially_destructible_v<Function>;
#else
concept SafeInCoAwait = true;
#endif

namespace detail {

template <class Awaitable>
struct AwaitableOf;
template <class T, class Ex>
struct AwaitableOf<boost::asio::awaitable<T, Ex>> {
  using Value = T;
  using Executor = Ex;
};

template <class T>
struct ValueOf {
  using Type = T;
};
template <class T>
struct ValueOf<Costed<T>> {
  using Type = T;
};

/// The awaitable of a guarded function, called with the grant or without.
template <class Grant, class Function>
using CallOf = AwaitableOf<decltype(sluice::detail::call_with(std::declval<Function&>(),
                                                              std::declval<Grant&>()))>;
template <class Grant, class Function>
using GuardedOf =
    boost::asio::awaitable<typename ValueOf<typename CallOf<Grant, Function>::Value>::Type,
                           typename CallOf<Grant, Function>::Executor>;

/// The step that replaces the estimated cost of the grant with the true cost.
template <class L, class Grant>
Step settle_step(const L& limiter, const Key& key, const Grant& grant, const SettledCost& cost) {
  if constexpr (requires { limiter.settle_step(key, grant, cost); }) {
    return limiter.settle_step(key, grant, cost);
  } else {
    const Word more = cost.actual.value() - grant.granted;
    return more > 0 ? limiter.penalize_step(key, more) : limiter.refund_step(key, grant, -more);
  }
}

template <class L, class Function>
GuardedOf<typename L::Waiting::Grant, Function> guard(const L& limiter, std::string tag,
                                                      std::string name, Cost cost,
                                                      Deadline deadline, Function function) {
  using Call = CallOf<typename L::Waiting::Grant, Function>;
  constexpr boost::asio::use_awaitable_t<typename Call::Executor> token;
  const Key key{tag, name};
  auto grant = co_await async_acquire(limiter, key, cost, deadline, token);
  sluice::detail::require_granted(grant, limiter.name());
  if constexpr (sluice::detail::is_costed<typename Call::Value>) {
    auto result = co_await sluice::detail::call_with(function, grant);
    if (sluice::detail::charged_nothing(sluice::detail::decision_of(grant))) {
      co_return std::move(result.value);  // decided without the store
    }
    const SettledCost true_cost{cost, result.cost};
    auto [error, settled] = co_await async_decide(
        limiter.store(), settle_step(limiter, key, grant, true_cost), boost::asio::as_tuple(token));
    // A policy may answer an additional charge, which the store then has not made.
    if (!error && is_degraded(settled.source)) error = make_error_code(Errc::circuit_open);
    if (error && error != make_error_code(Errc::outside_calendar)) {  // then its window has ended
      throw boost::system::system_error(error);
    }
    co_return std::move(result.value);
  } else {
    co_return co_await sluice::detail::call_with(function, grant);
  }
}

template <class Function>
GuardedOf<SlotPermit, Function> guard(const SlotLock& lock, std::string tag, std::string name,
                                      Deadline deadline, Function function) {
  constexpr boost::asio::use_awaitable_t<typename CallOf<SlotPermit, Function>::Executor> token;
  auto permit = co_await async_acquire(lock, Key{tag, name}, deadline, token);
  sluice::detail::require_granted(permit, lock.name());
  co_return co_await sluice::detail::call_with(function, permit);
}

template <class Function>
std::invoke_result_t<Function&> back_off(const Gates& gates, std::vector<Scope> scopes,
                                         Function function, BackoffOptions options) {
  using Call = AwaitableOf<std::invoke_result_t<Function&>>;
  constexpr boost::asio::use_awaitable_t<typename Call::Executor> token;
  sluice::detail::BackoffCall call(gates, scopes, options);
  for (;;) {
    call.passed(co_await async_acquire(gates, std::span<const Scope>(scopes), call.deadline(),
                                       AsyncWaitOptions{call.priority()}, token));
    std::optional<RateLimited> refusal;
    try {
      co_return co_await std::invoke(function);
    } catch (const RateLimited& thrown) {
      refusal = thrown;  // a handler cannot contain co_await
    }
    const auto closure = call.closure(*refusal);
    co_await async_decide(gates.store(), gates.close_step(closure.scope, closure.span), token);
    if (!call.may_retry()) throw *refusal;
  }
}

}  // namespace detail

/// sluice::guarded() for a function that returns an awaitable, with the same errors.
///
///     co_await sluice::asio::guarded(bucket, "alice", 1, 5s, [&] { return client.fetch(url); });
///
/// Cancellation: during the wait as async_acquire(), during the call as the function's awaitable.
/// Lifetimes: the limiter must live until the end; the key's bytes and the function are copied.
template <class L, SafeInCoAwait Function>
[[nodiscard]] auto guarded(const L& limiter, const Key& key, Cost cost, const Deadline& deadline,
                           Function&& function) {
  return detail::guard(limiter, std::string(key.tag()), std::string(key.name()), cost, deadline,
                       std::decay_t<Function>(std::forward<Function>(function)));
}
template <SafeInCoAwait Function>
[[nodiscard]] auto guarded(const SlotLock& lock, const Key& key, const Deadline& deadline,
                           Function&& function) {
  return detail::guard(lock, std::string(key.tag()), std::string(key.name()), deadline,
                       std::decay_t<Function>(std::forward<Function>(function)));
}

/// sluice::with_backoff() for a function that returns an awaitable, with the same errors; a final
/// refusal is thrown as a copy of type RateLimited. Lifetimes: the gates, the budget and the
/// generator must live until the end; the scopes and the function are copied.
template <SafeInCoAwait Function>
[[nodiscard]] auto with_backoff(const Gates& gates, std::span<const Scope> scopes,
                                Function&& function, const BackoffOptions& options = {}) {
  return detail::back_off(gates, std::vector<Scope>(scopes.begin(), scopes.end()),
                          std::decay_t<Function>(std::forward<Function>(function)), options);
}
template <std::size_t n, class... Rest>
auto with_backoff(const Gates&, std::array<Scope, n>&&, Rest&&...) = delete;  // see async_acquire()
template <std::size_t n, class... Rest>
auto with_backoff(const Gates&, const std::array<Scope, n>&&, Rest&&...) = delete;

}  // namespace sluice::asio
