// Timer: boost::asio::steady_timer on a sluice::Clock, for real and for virtual time. Threading:
// distinct timers are independent; one timer is used by one thread at a time.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <mutex>
#include <type_traits>

#include "sluice/asio/detail/start_wait.hpp"

namespace sluice::asio {

/// A timer for any number of concurrent waits:
///
///     sluice::asio::Timer timer(executor, clock);
///     timer.expires_after(30s);
///     co_await timer.async_wait(use_awaitable);
///
/// sleep_until() documents how each clock waits. The destructor cancels the waits, as cancel()
/// does. REQUIRES: the clock outlives the timer.
template <class Executor = boost::asio::any_io_executor>
class BasicTimer {
 public:
  using executor_type = Executor;

  BasicTimer(const Executor& executor, Clock& clock)
      : executor_(executor),
        clock_(clock),
        expiry_(clock.now()),
        service_(
            detail::loop_of(clock, executor) != nullptr
                ? nullptr
                : &boost::asio::use_service<detail::WaitService>(detail::context_of(executor))) {}
  template <class Context>
  requires std::is_convertible_v<Context&, boost::asio::execution_context&> BasicTimer(
      Context& context, Clock& clock)
      : BasicTimer(context.get_executor(), clock) {}
  BasicTimer(const BasicTimer&) = delete;
  BasicTimer& operator=(const BasicTimer&) = delete;
  ~BasicTimer() {
    cancel();
    // Waits that are already completing must not refer to this list.
    const auto lock = guard();
    while (!waits_.alone()) waits_.next()->unlink();
  }

  [[nodiscard]] const Executor& get_executor() const noexcept { return executor_; }
  [[nodiscard]] Clock& clock() const noexcept { return clock_; }
  [[nodiscard]] Time expiry() const noexcept { return expiry_; }

  /// Sets the time; cancels the waits for the old one and returns their number.
  std::size_t expires_at(Time when) {
    expiry_ = when;
    return cancel();
  }
  /// expires_at(), counted from now; a span beyond the end of time never ends.
  std::size_t expires_after(Span span) { return expires_at(detail::after(clock_, span)); }

  /// Completes the waits with operation_aborted and returns their number. Waits whose time has come
  /// complete without an error nevertheless.
  std::size_t cancel() noexcept {
    const auto lock = guard();
    std::size_t count = 0;
    for (detail::Link* link = waits_.next(); link != &waits_;) {
      auto& wait = static_cast<detail::TimerWait&>(*link);
      link = link->next();  // a wait that is aborted may leave the list
      if (wait.abort()) ++count;
    }
    return count;
  }

  /// Waits for expiry().
  ///
  /// Completion signature: `void(boost::system::error_code)`.
  ///
  /// Per-operation cancellation: all types; completes with operation_aborted.
  ///
  /// Lifetimes: destroying the timer cancels the wait; the clock must live until the completion.
  /// The handler runs on its associated executor, by default the timer's, with its allocator; if
  /// its execution context is destroyed first, the handler is destroyed.
  template <class CompletionToken>
  auto async_wait(CompletionToken&& token) {
    return boost::asio::async_initiate<CompletionToken, void(boost::system::error_code)>(
        [this](auto handler) { detail::start_wait(clock_, expiry_, handler, executor_, &waits_); },
        token);
  }

 private:
  [[nodiscard]] std::unique_lock<std::mutex> guard() noexcept {
    return service_ == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(service_->mutex);
  }

  Executor executor_;
  Clock& clock_;
  Time expiry_;
  detail::WaitService* service_;  // null: the waits belong to a run loop
  detail::Link waits_;
};

using Timer = BasicTimer<>;

}  // namespace sluice::asio
