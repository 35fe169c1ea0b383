// A wait that is an event of a run loop, and completes directly from it. Threading: the loop's.
#pragma once

#include <algorithm>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/system/error_code.hpp>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include "sluice/asio/detail/wait.hpp"
#include "sluice/asio/timed_loop.hpp"

namespace sluice::asio::detail {

/// Calls the handler of a wait that is over, from the event of the loop if the executor allows it.
template <class Executor, class Handler, class... Args>
void call_from(const TimedLoop& loop, const Executor& executor, Handler&& handler, Args... args) {
  if constexpr (std::is_same_v<Executor, boost::asio::any_io_executor>) {
    if (loop.calls_for(executor)) return std::forward<Handler>(handler)(std::move(args)...);
  }
  if constexpr (requires { executor.runs_at_once(); }) {
    if (executor.runs_at_once()) return std::forward<Handler>(handler)(std::move(args)...);
  }
  if constexpr (std::is_same_v<Executor, boost::asio::system_executor>) {
    std::forward<Handler>(handler)(std::move(args)...);  // no executor was requested
  } else {
    run_on(executor,
           [own = std::decay_t<Handler>(std::forward<Handler>(handler)),
            ... with = std::move(args)]() mutable { std::move(own)(std::move(with)...); });
  }
}

template <class Handler, class IoExecutor>
class LoopWait final : public TimedLoop::Wait, public TimerWait {
  using Executor = boost::asio::associated_executor_t<Handler, IoExecutor>;
  using Memory = OperationMemory<LoopWait, Handler>;
  friend Memory;

 public:
  /// `timer`: the waits of the timer that starts it, or null.
  static void start(TimedLoop& loop, Time when, Handler& handler, const IoExecutor& executor,
                    Link* timer) {
    LoopWait& self = *Memory::make(handler, loop, executor);
    try {
      auto slot = boost::asio::get_associated_cancellation_slot(self.handler_);
      if (slot.is_connected()) slot.template emplace<OnCancel>(self);
      loop.set(self, when);
    } catch (...) {
      self.take();
      throw;
    }
    if (timer != nullptr) timer->push_back(self);
  }

  bool abort() noexcept override {
    if (error_ || !loop_.cancel(*this)) return false;
    error_ = boost::asio::error::operation_aborted;
    unlink();
    loop_.set(*this, Time{});  // now
    return true;
  }

 private:
  struct OnCancel {
    explicit OnCancel(LoopWait& wait) noexcept : self(wait) {}
    void operator()(boost::asio::cancellation_type type) {
      if (type != boost::asio::cancellation_type::none) self.abort();
    }
    LoopWait& self;
  };

  LoopWait(Handler&& handler, TimedLoop& loop, const IoExecutor& executor)
      : TimedLoop::Wait(&LoopWait::finish_wait),
        handler_(std::move(handler)),
        loop_(loop),
        io_executor_(executor) {
    // A suspended coroutine's handler consists of pointers into its frames.
    if constexpr (sizeof(Handler) >= sizeof(void*) && alignof(Handler) >= alignof(void*)) {
      std::memcpy(near.data(), static_cast<const void*>(std::addressof(handler_)),
                  std::min(sizeof(near), sizeof(Handler)));
    }
  }
  ~LoopWait() = default;

  /// Frees the operation, so that the handler may start the next one in its memory.
  Handler take() {
    auto memory = Memory::allocator(handler_);
    Handler handler = std::move(handler_);
    Memory::destroy(*this, memory);
    return handler;
  }

  static void finish_wait(TimedLoop::Wait& wait, bool complete) {
    auto& self = static_cast<LoopWait&>(wait);
    if (complete) return self.complete();
    self.take();  // its cancellation slot may be gone already
  }

  void complete() {
    auto slot = boost::asio::get_associated_cancellation_slot(handler_);
    if (slot.is_connected()) slot.clear();
    const boost::system::error_code error = error_;
    const Executor executor = boost::asio::get_associated_executor(handler_, io_executor_);
    TimedLoop& loop = loop_;  // take() ends this object
    call_from(loop, executor, take(), error);
  }

  Handler handler_;
  TimedLoop& loop_;
  boost::system::error_code error_;
  [[no_unique_address]] IoExecutor io_executor_;
};

}  // namespace sluice::asio::detail
