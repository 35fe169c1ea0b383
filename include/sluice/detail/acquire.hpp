// Waiting by blocking the thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "sluice/detail/exceptions.hpp"
#include "sluice/detail/uncancelled.hpp"
#include "sluice/detail/waiter_for.hpp"

namespace sluice::detail {

template <class L>
class BlockedWaiter final : public WaiterFor<L> {
 public:
  using WaiterFor<L>::WaiterFor;
  using typename WaiterFor<L>::Grant;

  /// Blocks until the wait has ended. REQUIRES: made by std::make_shared.
  Grant wait(const StopToken& stop, std::error_code& error) {
    const Uncancelled uncancelled;
    this->start();
    const auto cancel = [this] { this->cancel(); };
    const StopCallback<decltype(cancel)> cancels(stop, cancel);
    for (;;) {
      event_.reset();
      if (over_.load(std::memory_order_acquire)) break;  // pairs with finished()
      if (!wait_for_event()) this->on_time();
    }
    error = error_;
    if (never_ && error == Errc::cancelled) {
      error = Errc::would_deadlock;
      reason_ = never_;
    }
    if (error) note_reason(error, std::move(reason_), this->refusal());
    return error ? Grant{} : this->take_grant();
  }

 private:
  /// False once the clock shows timer(). A request that is under way is not waited for by the
  /// clock.
  bool wait_for_event() {
    const bool is_under_way = this->is_under_way();
    const Time until = this->timer();
    if (!is_under_way) return wait_or_give_up(until);
    if (until != Time::max()) return this->clock().Clock::wait_until(until, event_);
    event_.wait();
    return true;
  }
  /// A wait that cannot end is cancelled: it then fails with Errc::would_deadlock.
  bool wait_or_give_up(Time until) {
    std::string why;
    const WaitEnd end = this->clock().wait_or_tell(until, event_, why);
    if (end != WaitEnd::never) return end == WaitEnd::woken;
    never_ = std::make_shared<const std::string>(std::move(why));
    this->cancel();
    return true;
  }
  void timer_changed() noexcept override { event_.wake(); }
  void finished(std::error_code error) noexcept override {
    error_ = error;
    reason_ = this->reason_for(error);
    over_.store(true, std::memory_order_release);
    event_.wake();
  }

  ManualResetEvent event_;
  std::error_code error_;
  std::shared_ptr<const std::string> reason_;
  std::atomic<bool> over_{false};
  std::shared_ptr<const std::string> never_;  // why the wait cannot end
};

/// The error of a call that must not wait, or none.
template <class L>
std::error_code error_before_wait(const L& limiter, const WaitOptions& options) noexcept {
  if (!limiter.store().may_block()) return Errc::would_deadlock;
  return options.is_valid() ? std::error_code{} : Errc::invalid_argument;
}

/// Implements acquire() of every limiter.
template <class L>
typename L::Waiting::Grant block(const L& limiter, typename L::Waiting::Request request,
                                 const Deadline& deadline, const WaitOptions& options,
                                 std::error_code& error) noexcept {
  error = error_before_wait(limiter, options);
  if (error) return {};
  typename L::Waiting::Grant grant{};
  const auto wait = [&] {
    const auto waiter = std::make_shared<BlockedWaiter<L>>(limiter, std::move(request), deadline,
                                                           Caller::of(options));
    grant = waiter->wait(options.stop, error);
  };
  call_within_memory(wait, error);
  return grant;
}

template <class L>
typename L::Waiting::Grant block(const L& limiter, typename L::Waiting::Request request,
                                 const Deadline& deadline, const WaitOptions& options) {
  const CallName call{L::type_name, "acquire"};
  std::error_code error = error_before_wait(limiter, options);
  if (error == Errc::invalid_argument) raise({error, call.text() + ": " + options.what_is_wrong()});
  if (error) raise({error, call.text()});
  const auto waiter = std::make_shared<BlockedWaiter<L>>(limiter, std::move(request), deadline,
                                                         Caller::of(options));
  auto grant = waiter->wait(options.stop, error);
  if (error) raise(waiter->failed(call, error));
  return grant;
}

}  // namespace sluice::detail
