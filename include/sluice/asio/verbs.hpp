// Every call of every limiter as a Boost.Asio operation. Header only; needs Boost 1.81.
//
// A call takes the limiter, the arguments of its blocking form, all of them, and a completion
// token; without one it is deferred, and starts when it is awaited:
//
//     Reservation r = co_await async_reserve(bucket, "alice", 10, 2s);
//     const Settlement settled = co_await async_settle(bucket, "alice", r, tokens_used);
//
// Completion signature: `void(boost::system::error_code, Result)` with the result of the blocking
// form, or without it if that returns nothing. The error has the value and the category of Errc.
// A call asks the store exactly what its blocking form asks: both are made of one verb.
//
// Per-operation cancellation: all types, as async_decide(). A lease or reservation of a request
// that fails with Errc::unknown may be held until it expires: see docs/failures.md.
//
// Lifetimes: arguments are copied before the call returns, except those that the call updates: a
// Reservation, RateReservation or Lease must live until the completion, and no other call may use
// it meanwhile. It is read when the operation starts and updated on the handler's executor, right
// before the handler is called. (A lease is updated as soon as the store has answered.) The
// limiter, its store and the handler's execution context must live until the completion. The
// handler is posted to its associated executor, with its allocator, and work is tracked there.
#pragma once

#include <array>
#include <concepts>

#include "sluice/asio/detail/async_verb.hpp"
#include "sluice/limiters/concurrency_limiter.hpp"
#include "sluice/limiters/fixed_window.hpp"
#include "sluice/limiters/fleet_shedder.hpp"
#include "sluice/limiters/gates.hpp"
#include "sluice/limiters/shared_sliding_window.hpp"
#include "sluice/limiters/shared_token_bucket.hpp"
#include "sluice/limiters/sliding_window.hpp"
#include "sluice/limiters/sliding_window_counter.hpp"
#include "sluice/limiters/slot_lock.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/limiters/utilization_shedder.hpp"

namespace sluice::asio {

namespace detail {

/// A limiter of the program's own, with `acquire_step(key, cost)` and `store()`.
template <class L>
concept OwnLimiter = !requires {
  typename L::Verbs;
}
&&requires(const L& limiter, const Key& key) {
  { limiter.acquire_step(key, Cost(1)) } -> std::same_as<Step>;
  { limiter.store() } -> std::convertible_to<Store&>;
};
template <class L>
Step own_step(const L& limiter, const Key& key, Cost cost) {
  return limiter.acquire_step(key, cost);
}
struct OwnTryAcquire {
  template <OwnLimiter L,
            boost::asio::completion_token_for<void(boost::system::error_code, Decision)>
                CompletionToken = boost::asio::deferred_t>
  [[nodiscard]] auto operator()(const L& limiter, const KeyArg& key, Cost cost,
                                CompletionToken&& token = {}) const {
    return Form<&own_step<L>>()(limiter, key, cost, std::forward<CompletionToken>(token));
  }
};

/// Scopes that are made inside the call: g++ 12 would destroy them twice in a co_await.
struct NoScopesInside {
  template <std::size_t n, class... Rest>
  void operator()(const Gates&, std::array<Scope, n>&&, Rest&&...) const = delete;
  template <std::size_t n, class... Rest>
  void operator()(const Gates&, const std::array<Scope, n>&&, Rest&&...) const = delete;
};

}  // namespace detail

/// try_acquire()
inline constexpr detail::AsyncVerb<
    detail::Form<&TokenBucket::acquire_step>, detail::FormOnce<&TokenBucket::acquire_step>,
    detail::Form<&BoundTokenBucket::acquire_step>,
    detail::FormOnce<&BoundTokenBucket::acquire_step>,
    detail::Form<&SharedTokenBucket::Verbs::try_acquire>,
    detail::FormOnce<&SharedTokenBucket::Verbs::try_acquire>,
    detail::Form<&FixedWindow::Verbs::try_acquire>,
    detail::FormOnce<&FixedWindow::Verbs::try_acquire>,
    detail::Form<&SlidingWindow::Verbs::try_acquire>,
    detail::FormOnce<&SlidingWindow::Verbs::try_acquire>,
    detail::Form<&SlidingWindowCounter::acquire_step>,
    detail::FormOnce<&SlidingWindowCounter::acquire_step>,
    detail::Form<&SharedSlidingWindow::Verbs::try_acquire>,
    detail::Form<&SharedSlidingWindow::Verbs::try_acquire_once>,
    detail::Form<&SlotLock::Verbs::try_acquire>,
    detail::Form<&ConcurrencyLimiter::Verbs::try_acquire>,
    detail::Form<&ConcurrencyLimiter::Verbs::try_acquire_by>,
    detail::Form<&FleetShedder::Verbs::try_acquire>,
    detail::Form<&FleetShedder::Verbs::try_acquire_by>,
    detail::Form<&UtilizationShedder::Verbs::try_acquire>,
    detail::Form<&UtilizationShedder::Verbs::try_acquire_named>,
    detail::Form<&UtilizationShedder::Verbs::try_acquire_whole>,
    detail::Form<&UtilizationShedder::Verbs::try_acquire_whole_named>, detail::OwnTryAcquire>
    async_try_acquire{};

/// peek()
inline constexpr detail::AsyncVerb<
    detail::Form<&TokenBucket::peek_step>, detail::Form<&BoundTokenBucket::peek_step>,
    detail::Form<&SharedTokenBucket::Verbs::peek>, detail::Form<&FixedWindow::Verbs::peek>,
    detail::Form<&SlidingWindow::Verbs::peek>, detail::Form<&SlidingWindowCounter::peek_step>,
    detail::Form<&SharedSlidingWindow::Verbs::peek>, detail::Form<&SlotLock::peek_step>,
    detail::Form<&ConcurrencyLimiter::peek_step>, detail::Form<&FleetShedder::Verbs::peek>,
    detail::Form<&UtilizationShedder::Verbs::peek>,
    detail::Form<&UtilizationShedder::Verbs::peek_named>,
    detail::Form<&UtilizationShedder::Verbs::peek_whole>,
    detail::Form<&UtilizationShedder::Verbs::peek_whole_named>, detail::Form<&Gates::Verbs::peek>,
    detail::Form<&Gates::Verbs::peek_one>, detail::NoScopesInside>
    async_peek{};

/// reserve()
inline constexpr detail::AsyncVerb<
    detail::Form<&TokenBucket::Verbs::reserve>, detail::Form<&SharedTokenBucket::Verbs::reserve>,
    detail::Form<&SlidingWindow::Verbs::reserve>,
    detail::Form<&SharedSlidingWindow::Verbs::reserve>, detail::Form<&SlotLock::Verbs::reserve>>
    async_reserve{};

/// borrow()
inline constexpr detail::AsyncVerb<detail::Form<&TokenBucket::Verbs::reserve>,
                                   detail::Form<&SharedTokenBucket::Verbs::reserve>>
    async_borrow{};

/// TokenBucket::try_acquire_up_to()
inline constexpr detail::AsyncVerb<detail::Form<&TokenBucket::Verbs::up_to>>
    async_try_acquire_up_to{};

/// cancel()
inline constexpr detail::AsyncVerb<
    detail::Form<&TokenBucket::Verbs::cancel>, detail::Form<&SharedTokenBucket::Verbs::cancel>,
    detail::Form<&SlidingWindow::Verbs::cancel>, detail::Form<&SharedSlidingWindow::Verbs::cancel>,
    detail::Form<&SlotLock::Verbs::cancel>>
    async_cancel{};

/// refund()
inline constexpr detail::AsyncVerb<
    detail::Form<&TokenBucket::Verbs::refund>, detail::Form<&SharedTokenBucket::Verbs::refund>,
    detail::Form<&FixedWindow::Verbs::refund>, detail::Form<&SlidingWindow::Verbs::refund>,
    detail::Form<&SlidingWindowCounter::Verbs::refund>,
    detail::Form<&SharedSlidingWindow::Verbs::refund>>
    async_refund{};

/// settle()
inline constexpr detail::AsyncVerb<
    detail::Form<&TokenBucket::Verbs::settle>, detail::Form<&SharedTokenBucket::Verbs::settle>,
    detail::Form<&FixedWindow::Verbs::settle>, detail::Form<&SlidingWindow::Verbs::settle>,
    detail::Form<&SlidingWindowCounter::Verbs::settle>,
    detail::Form<&SharedSlidingWindow::Verbs::settle>>
    async_settle{};

/// block()
inline constexpr detail::AsyncVerb<
    detail::Form<&TokenBucket::block_step>, detail::Form<&SharedTokenBucket::Verbs::block>,
    detail::Form<&FixedWindow::Verbs::block>, detail::Form<&SlidingWindow::Verbs::block>,
    detail::Form<&SlidingWindowCounter::block_step>,
    detail::Form<&SharedSlidingWindow::Verbs::block>, detail::Form<&SlotLock::block_step>,
    detail::Form<&ConcurrencyLimiter::block_step>, detail::Form<&FleetShedder::Verbs::block>>
    async_block{};

/// reward()
inline constexpr detail::AsyncVerb<
    detail::Form<&TokenBucket::reward_step>, detail::Form<&SharedTokenBucket::Verbs::reward>,
    detail::Form<&FixedWindow::Verbs::reward>, detail::Form<&SlidingWindow::Verbs::reward>,
    detail::Form<&SlidingWindowCounter::reward_step>,
    detail::Form<&SharedSlidingWindow::Verbs::reward>>
    async_reward{};

/// penalize()
inline constexpr detail::AsyncVerb<
    detail::Form<&TokenBucket::penalize_step>, detail::Form<&SharedTokenBucket::Verbs::penalize>,
    detail::Form<&FixedWindow::Verbs::penalize>, detail::Form<&SlidingWindowCounter::penalize_step>>
    async_penalize{};

/// reset()
inline constexpr detail::AsyncVerb<detail::SilentCall<&TokenBucket::reset_step>,
                                   detail::SilentCall<&SharedTokenBucket::reset_step>,
                                   detail::SilentCall<&FixedWindow::reset_step>,
                                   detail::SilentCall<&SlidingWindow::reset_step>,
                                   detail::SilentCall<&SlidingWindowCounter::reset_step>,
                                   detail::SilentCall<&SlotLock::reset_step>,
                                   detail::SilentCall<&ConcurrencyLimiter::Verbs::reset>,
                                   detail::SilentCall<&FleetShedder::Verbs::reset>,
                                   detail::SilentCall<&UtilizationShedder::reset_step>,
                                   detail::SilentCall<&UtilizationShedder::Verbs::reset_whole>>
    async_reset{};

/// configure() and try_configure()
inline constexpr detail::AsyncVerb<detail::Form<&SharedTokenBucket::Verbs::configure>,
                                   detail::Form<&SharedSlidingWindow::Verbs::configure>>
    async_configure{};
inline constexpr detail::AsyncVerb<detail::Form<&SharedTokenBucket::Verbs::try_configure>,
                                   detail::Form<&SharedSlidingWindow::Verbs::try_configure>>
    async_try_configure{};
/// config()
inline constexpr detail::AsyncVerb<detail::Form<&SharedTokenBucket::Verbs::config>,
                                   detail::Form<&SharedSlidingWindow::Verbs::config>>
    async_config{};
/// SharedSlidingWindow::refresh()
inline constexpr detail::AsyncVerb<detail::Form<&SharedSlidingWindow::Verbs::refresh>>
    async_refresh{};
/// SharedSlidingWindow::available_permits()
inline constexpr detail::AsyncVerb<detail::Form<&SharedSlidingWindow::Verbs::available_permits>>
    async_available_permits{};

/// FixedWindow::synchronize()
inline constexpr detail::AsyncVerb<detail::Form<&FixedWindow::Verbs::synchronize>>
    async_synchronize{};

/// Lease::renew()
inline constexpr detail::AsyncVerb<detail::Form<&Lease::Verbs::renew>> async_renew{};
/// Lease::release() and ConcurrencyLimiter::release(). False: the lease is not held, or no lease
/// with the id is live.
inline constexpr detail::AsyncVerb<detail::Form<&Lease::Verbs::release>,
                                   detail::Form<&ConcurrencyLimiter::Verbs::release>>
    async_release{};

/// UtilizationShedder::sample()
inline constexpr detail::AsyncVerb<detail::Form<&UtilizationShedder::sample_step>,
                                   detail::Form<&UtilizationShedder::Verbs::sample_whole>>
    async_sample{};
/// UtilizationShedder::report()
inline constexpr detail::AsyncVerb<detail::Form<&UtilizationShedder::Verbs::report>,
                                   detail::Form<&UtilizationShedder::Verbs::report_whole>>
    async_report{};

/// Gates::pass()
inline constexpr detail::AsyncVerb<detail::Form<&Gates::Verbs::pass>,
                                   detail::Form<&Gates::Verbs::pass_one>, detail::NoScopesInside>
    async_pass{};
/// Gates::close()
inline constexpr detail::AsyncVerb<detail::Form<&Gates::Verbs::close>> async_close{};
/// Gates::open()
inline constexpr detail::AsyncVerb<detail::SilentCall<&Gates::Verbs::open>> async_open{};

}  // namespace sluice::asio
