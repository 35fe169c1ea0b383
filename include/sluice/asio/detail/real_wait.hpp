// A wait in real time, for a clock that moves by itself. Threading: as boost::asio::steady_timer.
#pragma once

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <memory>

#include "sluice/asio/detail/wait_service.hpp"
#include "sluice/clock.hpp"

namespace sluice::asio::detail {

template <class Handler, class IoExecutor>
class RealWait final : public TimerWait {
  using SteadyTimer = boost::asio::basic_waitable_timer<
      std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, IoExecutor>;
  using Memory = OperationMemory<RealWait, Handler>;
  friend Memory;

 public:
  static void start(Clock& clock, Time when, Handler& handler, const IoExecutor& executor,
                    Link* timer) {
    auto& service = boost::asio::use_service<WaitService>(context_of(executor));
    std::unique_ptr<RealWait, Free> self(Memory::make(handler, clock, when, executor, service));
    {
      const std::lock_guard lock(self->service_.mutex);
      if (timer != nullptr) timer->push_back(*self);
    }
    wait(std::move(self));
  }

  bool abort() noexcept override { return timer_.cancel() != 0; }

 private:
  struct Free {
    void operator()(RealWait* self) const noexcept { (void)self->take(); }
  };

  // The handler of the timer, with the properties of the wait's handler.
  struct Expired {
    using executor_type = boost::asio::associated_executor_t<Handler, IoExecutor>;
    using allocator_type = typename Memory::Base;
    using cancellation_slot_type = boost::asio::associated_cancellation_slot_t<Handler>;

    std::unique_ptr<RealWait, Free> self;

    executor_type get_executor() const noexcept {
      return boost::asio::get_associated_executor(self->handler_, self->timer_.get_executor());
    }
    allocator_type get_allocator() const noexcept { return Memory::allocator(self->handler_); }
    cancellation_slot_type get_cancellation_slot() const noexcept {
      return boost::asio::get_associated_cancellation_slot(self->handler_);
    }
    void operator()(boost::system::error_code error) {
      // A clock that was set back, or runs slower than the machine's.
      if (!error && self->clock_.now() < self->when_) return wait(std::move(self));
      self.release()->take()(error);
    }
  };

  RealWait(Handler&& handler, Clock& clock, Time when, const IoExecutor& executor,
           WaitService& service)
      : handler_(std::move(handler)),
        clock_(clock),
        when_(when),
        timer_(executor),
        service_(service) {}
  ~RealWait() = default;

  static void wait(std::unique_ptr<RealWait, Free> self) {
    SteadyTimer& timer = self->timer_;
    timer.expires_after(std::min(self->when_, to_time(word_limit)) - self->clock_.now());
    timer.async_wait(Expired{std::move(self)});
  }

  Handler take() {
    {
      const std::lock_guard lock(service_.mutex);
      unlink();
    }
    auto memory = Memory::allocator(handler_);
    Handler handler = std::move(handler_);
    Memory::destroy(*this, memory);
    return handler;
  }

  Handler handler_;
  Clock& clock_;
  Time when_;
  SteadyTimer timer_;
  WaitService& service_;
};

}  // namespace sluice::asio::detail
