// Store calls as Boost.Asio operations: any completion token, the handler's associated executor and
// allocator, per-operation cancellation. Header only; needs Boost 1.81.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/system/error_code.hpp>
#include <memory>
#include <utility>

#include "sluice/extend/owned_plan.hpp"
#include "sluice/quota.hpp"
#include "sluice/store.hpp"

namespace sluice::asio {

/// void(boost::system::error_code, Decision). The error has the value and the category of Errc.
using DecideSignature = void(boost::system::error_code, Decision);

namespace detail {

/// One pending call, in memory of the handler's allocator.
template <class Handler>
class PendingDecide {
 public:
  using Executor = boost::asio::associated_executor_t<Handler>;
  using Allocator = typename std::allocator_traits<
      boost::asio::associated_allocator_t<Handler>>::template rebind_alloc<PendingDecide>;

  static void start(Store& store, OwnedPlan plan, Handler handler) {
    Allocator allocator(boost::asio::get_associated_allocator(handler));
    PendingDecide* const self = std::allocator_traits<Allocator>::allocate(allocator, 1);
    std::construct_at(self, std::move(handler));
    auto slot = boost::asio::get_associated_cancellation_slot(self->handler_);
    if (slot.is_connected()) {
      StopSource stop;
      plan.cancelled_by(stop.get_token());
      slot.assign([stop](boost::asio::cancellation_type type) mutable {
        if (type != boost::asio::cancellation_type::none) stop.request_stop();
      });
    }
    store.execute(plan.view(), Completion(&PendingDecide::complete, self));
  }

  explicit PendingDecide(Handler handler)
      : handler_(std::move(handler)),
        executor_(boost::asio::prefer(boost::asio::get_associated_executor(handler_),
                                      boost::asio::execution::outstanding_work.tracked)) {}

 private:
  using WorkExecutor = std::decay_t<decltype(boost::asio::prefer(
      std::declval<Executor>(), boost::asio::execution::outstanding_work.tracked))>;

  struct Free {
    void operator()(PendingDecide* self) const noexcept {
      Allocator allocator(boost::asio::get_associated_allocator(self->handler_));
      std::destroy_at(self);
      std::allocator_traits<Allocator>::deallocate(allocator, self, 1);
    }
  };

  /// Always posted: an initiating function never calls its handler before it returns.
  static void complete(void* context, const Outcome& outcome) noexcept {
    std::unique_ptr<PendingDecide, Free> self(static_cast<PendingDecide*>(context));
    const auto executor = self->executor_;
    auto allocator = boost::asio::get_associated_allocator(self->handler_);
    boost::asio::post(
        executor,
        boost::asio::bind_allocator(allocator, [self = std::move(self), error = outcome.error,
                                                decision = outcome.decision]() mutable {
          Handler handler = std::move(self->handler_);
          boost::asio::get_associated_cancellation_slot(handler).clear();
          // The memory is freed before the handler runs and may start a new call.
          PendingDecide::release(std::move(self), handler);
          std::move(handler)(boost::system::error_code(error), decision);
        }));
  }

  static void release(std::unique_ptr<PendingDecide, Free> self, const Handler& handler) noexcept {
    Allocator allocator(boost::asio::get_associated_allocator(handler));
    PendingDecide* const raw = self.release();
    std::destroy_at(raw);
    std::allocator_traits<Allocator>::deallocate(allocator, raw, 1);
  }

  Handler handler_;
  WorkExecutor executor_;
};

}  // namespace detail

/// Executes a plan; the asynchronous form of decide().
///
/// Completion signature: `void(boost::system::error_code, Decision)`. With use_awaitable, `Decision
/// d = co_await async_decide(store, plan, use_awaitable)` throws boost::system::system_error if the
/// call failed.
///
/// Per-operation cancellation: all types, as Plan::cancelled_by(): a request that was not sent
/// fails with Errc::cancelled, one that was sent with Errc::unknown. Stores without I/O answer
/// before they can be cancelled.
///
/// Lifetimes: the plan and its keys are copied before this returns; in a co_await expression g++ 12
/// does not compile braced steps: put them into an array first. The store and the handler's
/// execution context must live until the completion. The handler is posted to its associated
/// executor, on which work is tracked.
template <class CompletionToken>
[[nodiscard]] auto async_decide(Store& store, const Plan& plan, CompletionToken&& token) {
  return boost::asio::async_initiate<CompletionToken, DecideSignature>(
      [&store](auto handler, OwnedPlan owned) {
        detail::PendingDecide<decltype(handler)>::start(store, std::move(owned),
                                                        std::move(handler));
      },
      token, OwnedPlan(plan));
}

/// The asynchronous form of `limiter.try_acquire(key, cost)`; see async_decide().
template <class Limiter, class CompletionToken>
[[nodiscard]] auto async_try_acquire(const Limiter& limiter, const Key& key, Cost cost,
                                     CompletionToken&& token) {
  return asio::async_decide(limiter.store(), limiter.acquire_step(key, cost),
                            std::forward<CompletionToken>(token));
}

}  // namespace sluice::asio
