// async_acquire(): waiting for a limiter as a Boost.Asio operation. Header only; needs Boost 1.81.
#pragma once

#include <array>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/system/error_code.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sluice/asio/detail/async_waiter.hpp"
#include "sluice/asio/detail/kept.hpp"
#include "sluice/calls/claim.hpp"
#include "sluice/calls/first_of.hpp"
#include "sluice/detail/first_of_wait.hpp"

namespace sluice::asio {

/// void(boost::system::error_code, Grant), where Grant is the result of the limiter's acquire().
template <class L>
using AcquireSignature = void(boost::system::error_code, typename L::Grant);

/// Options of one asynchronous wait. Its cancellation slot, or Waitable::cancel_waits(), cancels
/// it.
///
/// Trivially destructible, as all options that may be made inside a co_await: there g++ 12 makes an
/// aggregate by copying its bytes, and destroys both.
struct AsyncWaitOptions {
  /// As those of WaitOptions. Out of range, the wait fails with Errc::invalid_argument.
  int priority = 0;
  std::string_view flow{};
  int weight = 1;
};
static_assert(std::is_trivially_destructible_v<AsyncWaitOptions>);

namespace detail {

/// A completion token: no options that were meant for another parameter.
template <class Token>
concept NoWaitOptions = !std::is_same_v<std::remove_cvref_t<Token>, AsyncWaitOptions>;

/// A limiter whose waits have a key and no cost: SlotLock.
template <class L>
concept HasSlots = requires(const L& lock, const Key& key) {
  lock.acquire(key, Deadline(Span{0}));
};

/// `limits` are waited for by each start of the operation.
template <class Grant, class Wait = sluice::detail::Waiter, class CompletionToken>
[[nodiscard]] auto async_wait_for(typename Wait::Limits limits,
                                  const std::optional<sluice::detail::Arrival>& arrival,
                                  const Deadline& deadline, const AsyncWaitOptions& options,
                                  CompletionToken&& token) {
  return boost::asio::async_initiate<CompletionToken, void(boost::system::error_code, Grant)>(
      [arrival, deadline, caller = sluice::detail::Caller::of(options)](auto handler,
                                                                        const auto& claims) {
        AsyncWaiter<decltype(handler), Grant, Wait>::begin(
            sluice::detail::fresh_limits(*claims), arrival, deadline, caller, std::move(handler));
      },
      token, std::make_shared<const typename Wait::Limits>(std::move(limits)));
}

/// For one limiter.
template <class L, class CompletionToken, class... Args>
[[nodiscard]] auto async_wait_for_one(const L& limiter, const Deadline& deadline,
                                      const AsyncWaitOptions& options, CompletionToken&& token,
                                      const Args&... args) {
  sluice::detail::ClaimedLimits limits;
  limits.push_back(L::Verbs::claim(limiter, args...));
  return async_wait_for<typename L::Grant>(std::move(limits), {}, deadline, options,
                                           std::forward<CompletionToken>(token));
}

}  // namespace detail

/// Waits until all claims are granted at one instant, or until the deadline: the asynchronous form
/// of sluice::acquire(). The grant is a Grants. The claims are copied before this returns; an array
/// of them that is made inside the call does not compile, because g++ 12 would destroy it twice in
/// a co_await. Throws as acquire() if they are not on one store.
///
///     const std::array claims{Claim(requests, "alice"), Claim(tokens, "alice", 800)};
///     const Grants granted = co_await async_acquire(claims, 10s);
template <class CompletionToken = boost::asio::deferred_t>
[[nodiscard]] auto async_acquire(std::span<const Claim> claims, const Deadline& deadline,
                                 const AsyncWaitOptions& options, CompletionToken&& token = {}) {
  return detail::async_wait_for<Grants>(sluice::detail::limits_of(claims), {}, deadline, options,
                                        std::forward<CompletionToken>(token));
}
template <detail::NoWaitOptions CompletionToken = boost::asio::deferred_t>
[[nodiscard]] auto async_acquire(std::span<const Claim> claims, const Deadline& deadline,
                                 CompletionToken&& token = {}) {
  return asio::async_acquire(claims, deadline, AsyncWaitOptions{},
                             std::forward<CompletionToken>(token));
}
template <std::size_t n, class... Rest>
auto async_acquire(std::array<Claim, n>&&, Rest&&...) = delete;
template <std::size_t n, class... Rest>
auto async_acquire(const std::array<Claim, n>&&, Rest&&...) = delete;

/// Waits until one of several alternatives is granted; see FirstOf. Otherwise as above.
template <class CompletionToken = boost::asio::deferred_t>
[[nodiscard]] auto async_acquire(const FirstOf& alternatives, const Deadline& deadline,
                                 const AsyncWaitOptions& options, CompletionToken&& token = {}) {
  return detail::async_wait_for<Grants, sluice::detail::FirstOfWait>(
      alternatives.limits(), {}, deadline, options, std::forward<CompletionToken>(token));
}
template <detail::NoWaitOptions CompletionToken = boost::asio::deferred_t>
[[nodiscard]] auto async_acquire(const FirstOf& alternatives, const Deadline& deadline,
                                 CompletionToken&& token = {}) {
  return asio::async_acquire(alternatives, deadline, AsyncWaitOptions{},
                             std::forward<CompletionToken>(token));
}

/// Waits until `cost` of `key` is granted, or until the deadline, without blocking a thread: the
/// asynchronous form of `limiter.acquire(key, cost, deadline)`. By the store's clock: in a
/// sim::World, in virtual time.
///
///     const Reservation grant = co_await async_acquire(bucket, "alice", 1, 5s);
///     if (!grant) give_up(grant.decision.retry_after);
///
/// Completion signature: `void(boost::system::error_code, Grant)`, where Grant is the result of
/// acquire(): a Reservation, a Lease, a Decision. Without a token, the operation is deferred: it
/// starts when it is awaited, and a deadline that is a span counts from then.
///
/// Per-operation cancellation: all types; completes with operation_aborted. A request that was sent
/// to the store is waited for, at most until the deadline, and its grant is refunded first.
///
/// A lease releases itself without waiting for the store: see Lease::never_block().
///
/// Lifetimes: the limiter is copied, but does not own its store then: the store must live until the
/// completion; with WaitQueueOptions::across_processes, a store in memory also until the call that
/// led to the completion has returned. If the store is destroyed before its clock and before the
/// wait ends, on the thread of the wait, the wait fails with Errc::shut_down. The handler is posted
/// to its associated executor, with its allocator, and work is tracked there. If its execution
/// context is destroyed first, the handler is destroyed and leaves the queue.
template <class L, detail::NoWaitOptions CompletionToken = boost::asio::deferred_t>
[[nodiscard]] auto async_acquire(const L& limiter, const KeyArg& key, Cost cost,
                                 const Deadline& deadline, CompletionToken&& token = {}) {
  return detail::async_wait_for_one(limiter, deadline, AsyncWaitOptions{},
                                    std::forward<CompletionToken>(token),
                                    static_cast<const Key&>(key), cost);
}
template <class L, class CompletionToken = boost::asio::deferred_t>
[[nodiscard]] auto async_acquire(const L& limiter, const KeyArg& key, Cost cost,
                                 const Deadline& deadline, const AsyncWaitOptions& options,
                                 CompletionToken&& token = {}) {
  return detail::async_wait_for_one(limiter, deadline, options,
                                    std::forward<CompletionToken>(token),
                                    static_cast<const Key&>(key), cost);
}

/// Waits for a slot of a SlotLock that begins by the deadline; the grant is a SlotPermit.
template <detail::HasSlots L, class CompletionToken = boost::asio::deferred_t>
[[nodiscard]] auto async_acquire(const L& lock, const KeyArg& key, const Deadline& deadline,
                                 const AsyncWaitOptions& options, CompletionToken&& token = {}) {
  return detail::async_wait_for_one(lock, deadline, options, std::forward<CompletionToken>(token),
                                    static_cast<const Key&>(key), Cost(1));
}
template <detail::HasSlots L, detail::NoWaitOptions CompletionToken = boost::asio::deferred_t>
[[nodiscard]] auto async_acquire(const L& lock, const KeyArg& key, const Deadline& deadline,
                                 CompletionToken&& token = {}) {
  return asio::async_acquire(lock, key, deadline, AsyncWaitOptions{},
                             std::forward<CompletionToken>(token));
}

/// Waits until one call may pass the gates of all these scopes, a std::span<const Scope>; the grant
/// is a Decision. The scopes are copied before this returns. An array of them that is made inside
/// the call does not compile, because g++ 12 would destroy it twice in a co_await.
template <class L, class CompletionToken = boost::asio::deferred_t>
[[nodiscard]] auto async_acquire(const L& gates, detail::ArgOf<detail::ItsScopes, L> scopes,
                                 const Deadline& deadline, const AsyncWaitOptions& options,
                                 CompletionToken&& token = {}) {
  return detail::async_wait_for<Decision>(L::Verbs::claims(gates, scopes), {}, deadline, options,
                                          std::forward<CompletionToken>(token));
}
template <class L, detail::NoWaitOptions CompletionToken = boost::asio::deferred_t>
[[nodiscard]] auto async_acquire(const L& gates, detail::ArgOf<detail::ItsScopes, L> scopes,
                                 const Deadline& deadline, CompletionToken&& token = {}) {
  return asio::async_acquire(gates, scopes, deadline, AsyncWaitOptions{},
                             std::forward<CompletionToken>(token));
}
template <std::size_t n, class... Rest>
auto async_acquire(const Gates&, std::array<Scope, n>&&, Rest&&...) = delete;
template <std::size_t n, class... Rest>
auto async_acquire(const Gates&, const std::array<Scope, n>&&, Rest&&...) = delete;

}  // namespace sluice::asio
