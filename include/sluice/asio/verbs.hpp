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
// Reservation or Lease must live until the completion, and no other call may use it meanwhile. It
// is read when the operation starts and updated on the handler's executor, right before the handler
// is called. (A lease is updated as soon as the store has answered.) The limiter, its store and the
// handler's execution context must live until the completion. The handler is posted to its
// associated executor, with its allocator, and work is tracked there.
#pragma once

#include <cstdint>

#include "sluice/asio/detail/async_verb.hpp"
#include "sluice/reservation.hpp"

namespace sluice {
class Utilization;
enum class Inheritance : Word;
enum class RateType : Word;
enum class SpentUnits : std::uint8_t;
struct LeaseId;
struct SlotPermit;
struct ToldLimit;
}  // namespace sluice

namespace sluice::asio {

namespace detail {

SLUICE_ASYNC_STEP(TryAcquire, try_acquire, acquire_step);
SLUICE_ASYNC_STEP(Peek, peek, peek_step);
SLUICE_ASYNC_CALL(Reserve, reserve);
SLUICE_ASYNC_CALL(Borrow, borrow);
SLUICE_ASYNC_CALL(TryAcquireUpTo, try_acquire_up_to);
SLUICE_ASYNC_CALL(Cancel, cancel);
SLUICE_ASYNC_CALL(Refund, refund);
SLUICE_ASYNC_CALL(Settle, settle);
SLUICE_ASYNC_STEP(Block, block, block_step);
SLUICE_ASYNC_STEP(Reward, reward, reward_step);
SLUICE_ASYNC_STEP(Penalize, penalize, penalize_step);
SLUICE_ASYNC_STEP(Reset, reset, reset_step);
SLUICE_ASYNC_CALL(Configure, configure);
SLUICE_ASYNC_CALL(TryConfigure, try_configure);
SLUICE_ASYNC_CALL(Configuration, configuration);
SLUICE_ASYNC_CALL(Refresh, refresh);
SLUICE_ASYNC_CALL(Remaining, remaining);
SLUICE_ASYNC_CALL(Synchronize, synchronize);
SLUICE_ASYNC_CALL(Renew, renew);
SLUICE_ASYNC_CALL(Release, release);
SLUICE_ASYNC_STEP(Sample, sample, sample_step);
SLUICE_ASYNC_CALL(Report, report);
SLUICE_ASYNC_STEP(Pass, pass, pass_step);
SLUICE_ASYNC_STEP(Close, close, close_step);
SLUICE_ASYNC_STEP(Limited, limited, limited_step);
SLUICE_ASYNC_STEP(Told, told, told_step);
SLUICE_ASYNC_CALL(Learned, learned);
SLUICE_ASYNC_STEP(Open, open, open_step);
#undef SLUICE_ASYNC_CALL
#undef SLUICE_ASYNC_STEP

using Text = sluice::detail::TextArg;

}  // namespace detail

/// try_acquire(), of a limiter of the program's own as well: with `acquire_step(key, cost)` and
/// `store()`.
inline constexpr detail::AsyncVerb<
    detail::TryAcquire, detail::With<const Key&, Cost>, detail::WithId<const Key&, Cost>,
    detail::With<const Key&, Cost, const LeaseId&>, detail::With<const Key&>, detail::With<Cost>,
    detail::WithId<Cost>, detail::With<detail::Text, Cost>,
    detail::With<detail::Text, Cost, const LeaseId&>, detail::With<const Key&, detail::ItsTier>,
    detail::With<const Key&, detail::Text>, detail::With<detail::ItsTier>,
    detail::With<detail::Text>>
    async_try_acquire{};

/// peek()
inline constexpr detail::AsyncVerb<
    detail::Peek, detail::With<const Key&, Cost>, detail::With<Cost>,
    detail::With<const Key&, Span>, detail::With<detail::Text, Cost>,
    detail::With<const Key&, detail::ItsTier>, detail::With<const Key&, detail::Text>,
    detail::With<detail::ItsTier>, detail::With<detail::Text>, detail::With<detail::ItsScopes>,
    detail::With<const Scope&>, detail::NoScopesInside>
    async_peek{};

/// reserve()
inline constexpr detail::AsyncVerb<detail::Reserve, detail::With<const Key&, Cost, Span>,
                                   detail::With<const Key&, Cost>, detail::With<const Key&, Span>>
    async_reserve{};

/// borrow()
inline constexpr detail::AsyncVerb<detail::Borrow, detail::With<const Key&, Cost, Span>>
    async_borrow{};

/// TokenBucket::try_acquire_up_to()
inline constexpr detail::AsyncVerb<detail::TryAcquireUpTo, detail::With<const Key&, Cost, Cost>>
    async_try_acquire_up_to{};

/// cancel()
inline constexpr detail::AsyncVerb<detail::Cancel, detail::With<const Key&, Reservation&>,
                                   detail::With<const Key&, const SlotPermit&>>
    async_cancel{};

/// refund()
inline constexpr detail::AsyncVerb<detail::Refund, detail::With<const Key&, Reservation&, Cost>>
    async_refund{};

/// settle()
inline constexpr detail::AsyncVerb<detail::Settle, detail::With<const Key&, Reservation&, Cost>>
    async_settle{};

/// block()
inline constexpr detail::AsyncVerb<detail::Block, detail::With<const Key&, Span>,
                                   detail::With<Span>>
    async_block{};

/// reward()
inline constexpr detail::AsyncVerb<detail::Reward, detail::With<const Key&, Cost>> async_reward{};

/// penalize()
inline constexpr detail::AsyncVerb<detail::Penalize, detail::With<const Key&, Cost>>
    async_penalize{};

/// reset()
inline constexpr detail::AsyncVerb<detail::Reset, detail::Silently<const Key&>, detail::Silently<>>
    async_reset{};

/// configure() and try_configure()
inline constexpr detail::AsyncVerb<detail::Configure,
                                   detail::With<const Key&, const Quota&, Inheritance>,
                                   detail::With<const Key&, RateType, Word, Span, SpentUnits>>
    async_configure{};
inline constexpr detail::AsyncVerb<detail::TryConfigure, detail::With<const Key&, const Quota&>,
                                   detail::With<const Key&, RateType, Word, Span>>
    async_try_configure{};
/// configuration()
inline constexpr detail::AsyncVerb<detail::Configuration, detail::With<const Key&>>
    async_configuration{};
/// SharedSlidingWindow::refresh()
inline constexpr detail::AsyncVerb<detail::Refresh, detail::With<const Key&>> async_refresh{};

/// LearnedRate::limited(), told() and learned()
inline constexpr detail::AsyncVerb<detail::Limited, detail::With<const Key&, const Reservation&>>
    async_limited{};
inline constexpr detail::AsyncVerb<detail::Told, detail::With<const Key&, const ToldLimit&>>
    async_told{};
inline constexpr detail::AsyncVerb<detail::Learned, detail::With<const Key&>> async_learned{};

/// SlidingWindow::remaining()
inline constexpr detail::AsyncVerb<detail::Remaining, detail::With<const Key&>> async_remaining{};

/// FixedWindow::synchronize()
inline constexpr detail::AsyncVerb<detail::Synchronize, detail::With<const Key&>>
    async_synchronize{};

/// Lease::renew()
inline constexpr detail::AsyncVerb<detail::Renew, detail::With<>> async_renew{};
/// Lease::release() and ConcurrencyLimiter::release(). False: the lease is not held, or no lease
/// with the id is live.
inline constexpr detail::AsyncVerb<detail::Release, detail::With<>,
                                   detail::With<const Key&, const LeaseId&>>
    async_release{};

/// UtilizationShedder::sample()
inline constexpr detail::AsyncVerb<detail::Sample, detail::With<const Key&, const Utilization&>,
                                   detail::With<const Utilization&>>
    async_sample{};
/// UtilizationShedder::report()
inline constexpr detail::AsyncVerb<detail::Report, detail::With<const Key&>, detail::With<>>
    async_report{};

/// Gates::pass()
inline constexpr detail::AsyncVerb<detail::Pass, detail::With<detail::ItsScopes>,
                                   detail::With<const Scope&>, detail::NoScopesInside>
    async_pass{};
/// Gates::close()
inline constexpr detail::AsyncVerb<detail::Close, detail::With<const Scope&, Span>> async_close{};
/// Gates::open()
inline constexpr detail::AsyncVerb<detail::Open, detail::Silently<const Scope&>> async_open{};

}  // namespace sluice::asio
