// guarded() and with_backoff() as coroutines. Header only; needs Boost 1.81.
#pragma once

#include <array>
#include <span>
#include <type_traits>
#include <utility>

#include "sluice/asio/detail/run_call.hpp"
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

/// The coroutine form of `call(function)`, for a function that returns an awaitable, with the same
/// errors. Make the Call, which has a destructor, before the co_await. Cancellation: of the waits
/// as async_acquire(), of the call as the function's awaitable; a call that has ended is settled,
/// or refunded with its gate closed, all the same. At BackoffOptions::end_by the awaitable is
/// cancelled, and NotEnded is thrown if it ends by that; what it returns nevertheless is the
/// result. The token of a function that takes one is stopped as that of a Call, except by a
/// cancellation of the caller, which reaches the awaitable. With either, the executor runs one
/// handler at a time: a strand, or a context of one thread. Lifetimes: the call and the function
/// are copied; the stores, the budget and the generator must live until the end.
///
///     const std::string text = co_await sluice::asio::async_call(ask, [&] { return model(prompt);
///     });
template <SafeInCoAwait Function>
[[nodiscard]] auto async_call(const Call& call, Function&& function) {
  return detail::run(call, std::decay_t<Function>(std::forward<Function>(function)));
}

/// sluice::guarded() for a function that returns an awaitable, with the same errors.
///
///     co_await sluice::asio::guarded(bucket, "alice", 1, 5s, [&] { return client.fetch(url); });
///
/// Cancellation: during the wait as async_acquire(), during the call as the function's awaitable.
/// Lifetimes: the limiter must live until the end; the key's bytes and the function are copied.
template <class L, SafeInCoAwait Function>
[[nodiscard]] auto guarded(const L& limiter, const KeyArg& key, Cost cost, const Deadline& deadline,
                           Function&& function, const AsyncWaitOptions& options = {}) {
  return detail::guard<typename L::Grant>(
      sluice::detail::guarded_claim(limiter, key, cost), deadline,
      std::decay_t<Function>(std::forward<Function>(function)), options);
}
template <SafeInCoAwait Function>
[[nodiscard]] auto guarded(const SlotLock& lock, const KeyArg& key, const Deadline& deadline,
                           Function&& function, const AsyncWaitOptions& options = {}) {
  return detail::guard<SlotPermit>(
      {lock, key}, deadline, std::decay_t<Function>(std::forward<Function>(function)), options);
}

/// sluice::with_backoff() for a function that returns an awaitable, with the same errors.
/// Lifetimes: the gates, the budget and the generator must live until the end; the scopes and the
/// function are copied.
template <SafeInCoAwait Function>
[[nodiscard]] auto with_backoff(const Gates& gates, std::span<const Scope> scopes,
                                Function&& function, const BackoffOptions& options = {}) {
  return detail::run(sluice::Call(sluice::detail::gate_claims(gates, scopes), options),
                     std::decay_t<Function>(std::forward<Function>(function)));
}
template <std::size_t n, class... Rest>
auto with_backoff(const Gates&, std::array<Scope, n>&&, Rest&&...) = delete;  // see async_acquire()
template <std::size_t n, class... Rest>
auto with_backoff(const Gates&, const std::array<Scope, n>&&, Rest&&...) = delete;

}  // namespace sluice::asio
