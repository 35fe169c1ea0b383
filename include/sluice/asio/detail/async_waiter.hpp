// AsyncWaiter: a handler that waits for a grant.
#pragma once

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/system/error_code.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "sluice/asio/timer.hpp"
#include "sluice/detail/waiter.hpp"

namespace sluice::asio::detail {

/// A handler that waits for a grant. It always has a pending wait on its timer, so that the end of
/// its execution context ends it as well. `Wait`: a Waiter, or a FirstOfWait.
template <class Handler, class Grant, class Wait>
class AsyncWaiter final : public Wait {
 public:
  static void begin(typename Wait::Limits limits,
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

  AsyncWaiter(typename Wait::Limits limits, const std::optional<sluice::detail::Arrival>& arrival,
              const Deadline& deadline, sluice::detail::Caller caller, Handler handler)
      : Wait(std::move(limits), deadline, std::move(caller), arrival) {
    work_.emplace(std::move(handler), this->clock());
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

}  // namespace sluice::asio::detail
