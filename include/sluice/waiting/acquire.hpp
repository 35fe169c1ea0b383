// Waiting by blocking the thread.
#pragma once

#include <atomic>
#include <memory>
#include <system_error>
#include <utility>

#include "sluice/detail/uncancelled.hpp"
#include "sluice/waiting/waiter_for.hpp"

namespace sluice::detail {

template <class L>
class BlockedWaiter final : public WaiterFor<L> {
 public:
  using WaiterFor<L>::WaiterFor;
  using typename WaiterFor<L>::Grant;

  /// Blocks until it is over. REQUIRES: made by std::make_shared.
  Grant wait(const std::stop_token& stop, std::error_code& error) {
    const Uncancelled uncancelled;
    this->start();
    const std::stop_callback cancels(stop, [this] { this->cancel(); });
    for (;;) {
      waker_.reset();
      if (over_.load(std::memory_order_acquire)) break;  // what finished() left is seen
      if (this->is_under_way()) {
        waker_.wait();
      } else if (!this->clock().wait_until(this->timer(), waker_)) {
        this->on_time();
      }
    }
    error = error_;
    return error ? Grant{} : this->take_grant();
  }

 private:
  void timer_changed() noexcept override { waker_.wake(); }
  void finished(std::error_code error) noexcept override {
    error_ = error;
    over_.store(true, std::memory_order_release);
    waker_.wake();
  }

  Waker waker_;
  std::error_code error_;
  std::atomic<bool> over_{false};
};

/// Why this call cannot wait, whatever it asks.
template <class L>
std::error_code whether_to_wait(const L& limiter, const WaitOptions& options) noexcept {
  if (!limiter.store().may_block()) return Errc::would_deadlock;
  return options.is_valid() ? std::error_code{} : Errc::invalid_argument;
}

/// As acquire() of every limiter.
template <class L>
typename L::Waiting::Grant block(const L& limiter, typename L::Waiting::Request request,
                                 const Deadline& deadline, const WaitOptions& options,
                                 std::error_code& error) noexcept try {
  error = whether_to_wait(limiter, options);
  if (error) return {};
  const auto waiter =
      std::make_shared<BlockedWaiter<L>>(limiter, std::move(request), deadline, options.priority);
  return waiter->wait(options.stop, error);
} catch (const std::bad_alloc&) {
  error = std::make_error_code(std::errc::not_enough_memory);
  return {};
}

template <class L>
typename L::Waiting::Grant block(const L& limiter, typename L::Waiting::Request request,
                                 const Deadline& deadline, const WaitOptions& options) {
  const CallName call{L::type_name, "acquire"};
  std::error_code error = whether_to_wait(limiter, options);
  if (error == Errc::invalid_argument) {
    throw std::system_error(error, call.text() + ": priority " + std::to_string(options.priority) +
                                       ", allowed -1000 to 1000");
  }
  if (error) throw std::system_error(error, call.text());
  const auto waiter =
      std::make_shared<BlockedWaiter<L>>(limiter, std::move(request), deadline, options.priority);
  auto grant = waiter->wait(options.stop, error);
  if (error) throw waiter->failed(call, error);
  return grant;
}

}  // namespace sluice::detail
