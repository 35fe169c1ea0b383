#include "src/stores/leased_ticker.hpp"

#include <exception>

#include "sluice/detail/uncancelled.hpp"

namespace sluice::leased {

Ticker::Ticker(Clock& clock, Span period, Function function, void* context) noexcept
    : clock_(clock),
      clock_life_(clock.life()),
      period_(period),
      function_(function),
      context_(context),
      timer_(&Ticker::ring, this) {}

Ticker::~Ticker() {
  if (!home_.is_here()) {
    thread_.end();
    thread_.leave(waker_);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  const detail::Uncancelled uncancelled;
  waker_->wake();
  thread_.end();
  // A World that is ending still has the timers that it has not ended yet.
  if (!clock_life_.is_over() || timer_.place != 0) clock_.cancel_timer(timer_);
}

void Ticker::arm() noexcept try {
  const std::lock_guard lock(mutex_);
  if (armed_ || stopping_ || clock_life_.is_over()) return;
  due_ = clock_.now() + period_;
  armed_ = true;
  if (thread_.is_running()) return waker_->wake();
  if (clock_.set_timer(timer_, due_) == TimerState::never) {
    thread_.start([this] { run(); });
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

void Ticker::run() {
  const KnownThread here(clock_);
  for (;;) {
    Time due = Time::max();
    {
      const std::lock_guard lock(mutex_);
      waker_->reset();
      if (stopping_) return;
      if (armed_) due = due_;
    }
    if (due != Time::max() && clock_.now() >= due) {
      ring(this);
    } else {
      clock_.wait_until(due, *waker_);
    }
  }
}

}  // namespace sluice::leased
