// The only place in the library that reads a real clock.
#include "sluice/clock.hpp"
#include "sluice/extend/manual_reset_event.hpp"
#include "sluice/extend/timer_callback.hpp"

#include <algorithm>
#include <cstdint>
#include <ctime>

namespace sluice {
namespace {

#ifdef CLOCK_MONOTONIC
/// Fewer than 10^9 nanoseconds, which a division of 32 bits is enough for.
Word microseconds(const timespec& ts) noexcept {
  return Word{ts.tv_sec} * 1'000'000 + static_cast<std::uint32_t>(ts.tv_nsec) / 1'000;
}
#endif

Word monotonic_us() noexcept {
#ifdef CLOCK_MONOTONIC
  // The clock of steady_clock::now(), without the conversion from nanoseconds.
  timespec ts{};
  if (clock_gettime(CLOCK_MONOTONIC, &ts) == 0) return microseconds(ts);
#endif
  return std::chrono::duration_cast<Span>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

SystemClock::SystemClock() noexcept
    : offset_(std::chrono::duration_cast<Span>(std::chrono::system_clock::now().time_since_epoch())
                  .count() -
              monotonic_us()) {}

Time SystemClock::now() const noexcept { return to_time(monotonic_us() + offset_); }

Time SystemClock::coarse_now() const noexcept {
#ifdef CLOCK_MONOTONIC_COARSE
  timespec ts{};
  if (clock_gettime(CLOCK_MONOTONIC_COARSE, &ts) == 0) {
    return to_time(microseconds(ts) + offset_);
  }
#endif
  return now();
}

bool SystemClock::wait_until(Time when, ManualResetEvent& waker) {
  return wait_in_steps(when, waker, std::chrono::hours{1});
}

bool Clock::wait_until(Time when, ManualResetEvent& waker) {
  return wait_in_steps(when, waker, std::chrono::milliseconds{10});
}

bool Clock::wait_in_steps(Time when, ManualResetEvent& waker, Span step) {
  std::unique_lock lock(waker.mutex_);
  while (!waker.awake_) {
    const Time present = now();
    if (present >= when) return false;
    waker.changed_.wait_for(lock, std::min(when - present, step));
  }
  return true;
}

TimerState Clock::set_timer(TimerCallback&, Time when) {
  return now() >= when ? TimerState::due : TimerState::never;
}

bool Clock::cancel_timer(TimerCallback&) noexcept { return false; }

namespace {
thread_local const KnownThread* innermost = nullptr;
}

KnownThread::KnownThread(Clock& clock) noexcept : clock_(clock), outer_(innermost) {
  innermost = this;
  clock_.thread_begins();
}

KnownThread::~KnownThread() {
  innermost = outer_;
  clock_.thread_ends();
}

bool KnownThread::is_here(const Clock& clock) noexcept {
  for (const KnownThread* known = innermost; known != nullptr; known = known->outer_) {
    if (&known->clock_ == &clock) return true;
  }
  return false;
}

}  // namespace sluice
