// A wait on a clock that the program moves: the thread that moves it posts the completion.
// Threading: started and ended on the executor; the timer runs on any thread.
#pragma once

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/system/error_code.hpp>

#include "sluice/asio/detail/wait_service.hpp"
#include "sluice/clock.hpp"
#include "sluice/extend/timer_callback.hpp"

namespace sluice::asio::detail {

template <class Handler, class IoExecutor>
class TimerCallbackWait final : public OwnedWait {
  using Executor = boost::asio::associated_executor_t<Handler, IoExecutor>;
  using Work = std::decay_t<decltype(boost::asio::prefer(
      std::declval<Executor>(), boost::asio::execution::outstanding_work.tracked))>;
  using Memory = OperationMemory<TimerCallbackWait, Handler>;
  friend Memory;

 public:
  /// On a clock without timers, `otherwise(handler)` is called.
  template <class Otherwise>
  static void start(Clock& clock, Time when, Handler& handler, const IoExecutor& executor,
                    Link* timer, Otherwise otherwise) {
    auto& service = boost::asio::use_service<WaitService>(context_of(executor));
    TimerCallbackWait& self = *Memory::make(handler, clock, executor, service);
    TimerState state = TimerState::never;
    try {
      auto slot = boost::asio::get_associated_cancellation_slot(self.handler_);
      if (slot.is_connected()) slot.template emplace<OnCancel>(self);
      service.add(self, timer);
      state = clock.set_timer(self.timer_callback_, when);
    } catch (...) {
      self.take();
      throw;
    }
    // If it was set, it may have been destroyed by now.
    if (state == TimerState::due) self.post({});
    if (state != TimerState::never) return;
    // An io_context stops when it has no work for a moment.
    [[maybe_unused]] const Work kept = self.work_;
    Handler back = self.take();
    otherwise(back);
  }

  bool abort() noexcept override {
    if (!withdraw()) return false;
    post(boost::asio::error::operation_aborted);
    return true;
  }
  bool withdraw() noexcept override { return clock_.cancel_timer(timer_callback_); }
  void destroy() noexcept override {
    slot_is_gone_ = true;
    take();
  }

 private:
  struct OnCancel {
    explicit OnCancel(TimerCallbackWait& wait) noexcept : self(wait) {}
    void operator()(boost::asio::cancellation_type type) {
      if (type != boost::asio::cancellation_type::none) self.abort();
    }
    TimerCallbackWait& self;
  };

  // The posted function: it completes the wait, or destroys it with the queue.
  class Delivery {
   public:
    Delivery(TimerCallbackWait& wait, boost::system::error_code error) noexcept
        : wait_(&wait), error_(error) {}
    Delivery(Delivery&& other) noexcept
        : wait_(std::exchange(other.wait_, nullptr)), error_(other.error_) {}
    ~Delivery() {
      if (wait_ != nullptr) wait_->destroy();
    }
    void operator()() { std::exchange(wait_, nullptr)->take()(error_); }

   private:
    TimerCallbackWait* wait_;
    boost::system::error_code error_;
  };

  TimerCallbackWait(Handler&& handler, Clock& clock, const IoExecutor& executor,
                    WaitService& service)
      : handler_(std::move(handler)),
        clock_(clock),
        timer_callback_(&TimerCallbackWait::ring, this, &TimerCallbackWait::lose),
        work_(boost::asio::prefer(boost::asio::get_associated_executor(handler_, executor),
                                  boost::asio::execution::outstanding_work.tracked)),
        service_(service) {}
  ~TimerCallbackWait() = default;

  static void ring(void* self) noexcept { static_cast<TimerCallbackWait*>(self)->post({}); }
  /// The clock was destroyed, on the thread of its world.
  static void lose(void* self) noexcept { static_cast<TimerCallbackWait*>(self)->destroy(); }

  void post(boost::system::error_code error) noexcept {
    const Work work = work_;  // the wait may be destroyed before post() returns
    boost::asio::post(
        work, boost::asio::bind_allocator(Memory::allocator(handler_), Delivery(*this, error)));
  }

  /// Frees the operation, so that the handler may start the next one in its memory.
  Handler take() {
    service_.remove(*this);
    auto memory = Memory::allocator(handler_);
    if (!slot_is_gone_) clear_slot();
    Handler handler = std::move(handler_);
    Memory::destroy(*this, memory);
    return handler;
  }

  void clear_slot() {
    auto slot = boost::asio::get_associated_cancellation_slot(handler_);
    if (slot.is_connected()) slot.clear();
  }

  Handler handler_;
  Clock& clock_;
  TimerCallback timer_callback_;
  Work work_;
  WaitService& service_;
  bool slot_is_gone_ = false;  // perhaps
};

}  // namespace sluice::asio::detail
