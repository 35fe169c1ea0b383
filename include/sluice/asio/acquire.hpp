// async_acquire(): waiting for a limiter as a Boost.Asio operation. Header only; needs Boost 1.81.
#pragma once

#include <array>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/system/error_code.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sluice/asio/detail/kept.hpp"
#include "sluice/asio/timer.hpp"
#include "sluice/calls/claim.hpp"
#include "sluice/detail/waiter.hpp"

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
/// A handler that waits for a grant. It always has a pending wait on its timer, so that the end of
/// its execution context ends it as well.
template <class Handler, class Grant>
class AsyncWaiter final : public sluice::detail::Waiter {
 public:
  static void begin(sluice::detail::ClaimedLimits limits,
                    const std::optional<sluice::detail::Arrival>& arrival, const Deadline& deadline,
                    sluice::detail::Caller caller, Handler handler) {
    const auto allocator = boost::asio::get_associated_allocator(handler);
    const auto slot = boost::asio::get_associated_cancellation_slot(handler);
    const bool is_valid = caller.is_valid();
    const auto self = std::allocate_shared<AsyncWaiter>(
        allocator, std::move(limits), arrival, deadline, std::move(caller), std::move(handler));
    if (!is_valid) return self->finished(Errc::invalid_argument);
    if (slot.is_connected()) {
      auto mine = slot;
      mine.assign([weak = self->weak_from_this()](boost::asio::cancellation_type type) {
        const auto waiter = weak.lock();
        if (waiter && type != boost::asio::cancellation_type::none) waiter->cancel();
      });
    }
    self->arm();
    self->start();
  }

  AsyncWaiter(sluice::detail::ClaimedLimits limits,
              const std::optional<sluice::detail::Arrival>& arrival, const Deadline& deadline,
              sluice::detail::Caller caller, Handler handler)
      : Waiter(std::move(limits), deadline, std::move(caller), arrival) {
    work_.emplace(std::move(handler), clock());
  }

 private:
  using Executor = boost::asio::associated_executor_t<Handler>;
  using Tracked = std::decay_t<decltype(boost::asio::prefer(
      std::declval<Executor>(), boost::asio::execution::outstanding_work.tracked))>;

  /// The members that belong to the handler's execution context, and must not outlive it.
  struct Work {
    Work(Handler&& given, Clock& clock)
        : handler(std::move(given)),
          executor(boost::asio::prefer(boost::asio::get_associated_executor(handler),
                                       boost::asio::execution::outstanding_work.tracked)),
          timer(boost::asio::get_associated_executor(handler), clock) {}
    Handler handler;
    Tracked executor;
    BasicTimer<Executor> timer;
    std::uint64_t round = 0;  // of the timer
    Time expiry = Time::min();
  };

  /// The timer's handler. If it is destroyed before it ran, the execution context has ended.
  class OnTime {
   public:
    using executor_type = Executor;

    OnTime(std::shared_ptr<AsyncWaiter> waiter, std::uint64_t round, const Executor& executor)
        : waiter_(std::move(waiter)), round_(round), executor_(executor) {}
    OnTime(OnTime&&) noexcept = default;
    OnTime& operator=(OnTime&&) = delete;
    ~OnTime() {
      if (waiter_) waiter_->abandon(round_);
    }
    [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }
    void operator()(boost::system::error_code error) {
      const auto waiter = std::exchange(waiter_, nullptr);
      if (!error && waiter->is_current(round_)) waiter->rung();
    }

   private:
    std::shared_ptr<AsyncWaiter> waiter_;
    std::uint64_t round_;
    Executor executor_;
  };

  [[nodiscard]] std::shared_ptr<AsyncWaiter> self() {
    return std::static_pointer_cast<AsyncWaiter>(this->shared_from_this());
  }
  [[nodiscard]] bool is_current(std::uint64_t round) {
    const std::lock_guard lock(mutex_);
    return work_ && work_->round == round;
  }

  void arm() {
    const std::lock_guard lock(mutex_);
    // Read under the mutex: of two threads, the later one to arm has the later time.
    const Time when = this->timer();
    if (!work_ || work_->expiry == when) return;
    work_->expiry = when;
    const std::uint64_t round =
        ++work_->round;  // first, so that the wait cancelled next is outdated
    work_->timer.expires_at(when);
    work_->timer.async_wait(
        OnTime(self(), round, boost::asio::get_associated_executor(work_->handler)));
  }
  void rung() {
    {
      const std::lock_guard lock(mutex_);
      if (work_) work_->expiry = Time::min();
    }
    this->on_time();
    arm();
  }

  void timer_changed() noexcept override { arm(); }

  void finished(std::error_code error) noexcept override {
    const std::lock_guard lock(mutex_);
    if (!work_) {  // abandoned
      static_cast<void>(taken(error));
      return;
    }
    ++work_->round;
    complete(std::move(work_->handler), std::move(work_->executor), error);
    work_.reset();
  }

  /// What was granted, for an event loop.
  Grant taken(std::error_code error) {
    Grant granted = error ? Grant{} : this->template take<Grant>();
    if constexpr (requires { granted.never_block(); }) granted.never_block();
    return granted;
  }

  void complete(Handler&& handler, Tracked&& executor, std::error_code error) {
    boost::system::error_code code(error);
    if (error == Errc::cancelled) code = boost::asio::error::operation_aborted;
    const auto allocator = boost::asio::get_associated_allocator(handler);
    boost::asio::post(executor,
                      boost::asio::bind_allocator(allocator, [handler = std::move(handler), code,
                                                              grant = taken(error)]() mutable {
                        boost::asio::get_associated_cancellation_slot(handler).clear();
                        std::move(handler)(code, std::move(grant));
                      }));
  }

  /// The execution context was destroyed, and with it the handler.
  void abandon(std::uint64_t round) noexcept {
    {
      const std::lock_guard lock(mutex_);
      if (!work_ || work_->round != round) return;
      work_.reset();
    }
    this->cancel();
  }

  std::mutex mutex_;  // guards what follows
  std::optional<Work> work_;
};

/// `limits` are waited for by each start of the operation.
template <class Grant, class CompletionToken>
[[nodiscard]] auto async_wait_for(sluice::detail::ClaimedLimits limits,
                                  const std::optional<sluice::detail::Arrival>& arrival,
                                  const Deadline& deadline, const AsyncWaitOptions& options,
                                  CompletionToken&& token) {
  return boost::asio::async_initiate<CompletionToken, void(boost::system::error_code, Grant)>(
      [arrival, deadline, caller = sluice::detail::Caller::of(options)](auto handler,
                                                                        const auto& claims) {
        sluice::detail::ClaimedLimits fresh;
        for (const auto& claim : *claims) fresh.push_back(claim->fresh());
        AsyncWaiter<decltype(handler), Grant>::begin(std::move(fresh), arrival, deadline, caller,
                                                     std::move(handler));
      },
      token, std::make_shared<const sluice::detail::ClaimedLimits>(std::move(limits)));
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
