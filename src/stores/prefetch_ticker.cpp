#include "src/stores/prefetch_ticker.hpp"

#include <exception>

namespace sluice::prefetch {

Ticker::Ticker(Clock& clock, Span period, Function function, void* context) noexcept
    : clock_(clock),
      clock_life_(clock.life()),
      period_(period),
      function_(function),
      context_(context),
      timer_(&Ticker::ring, this),
      thread_(clock) {}

Ticker::~Ticker() {
  if (!home_.is_here()) return;  // the mutex and the timer are the parent's
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  thread_.stop();
  // A World that is ending still has the timers that it has not ended yet.
  if (!clock_life_.is_over() || timer_.place != 0) clock_.cancel_timer(timer_);
}

void Ticker::arm() noexcept try {
  const std::lock_guard lock(mutex_);
  if (armed_ || stopping_ || clock_life_.is_over()) return;
  due_ = clock_.now() + period_;
  armed_ = true;
  if (thread_.is_running()) return thread_.wake();
  if (clock_.set_timer(timer_, due_) == TimerState::never) {
    thread_.start([this] { return ring_when_due(); });
  }
} catch (const std::exception&) {
  armed_ = false;
}

void Ticker::ring(void* self) noexcept {
  auto& ticker = *static_cast<Ticker*>(self);
  {
    const std::lock_guard lock(ticker.mutex_);
    ticker.armed_ = false;
    if (ticker.stopping_) return;
  }
  ticker.function_(ticker.context_);
}

Time Ticker::ring_when_due() noexcept {
  Time due = Time::max();
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || !armed_) return due;
    due = due_;
  }
  if (clock_.now() < due) return due;
  ring(this);
  return clock_.now();
}

}  // namespace sluice::prefetch
