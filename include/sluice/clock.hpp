// Clocks. A store owns the clock that its rules see; the library reads the time and waits only
// through a Clock. Every clock may be used from any thread.
#pragma once

#include <string>

#include "sluice/detail/life.hpp"
#include "sluice/rng.hpp"
#include "sluice/time.hpp"

namespace sluice {

class ManualResetEvent;  // sluice/extend/manual_reset_event.hpp
class TimedLoop;         // sluice/asio/timed_loop.hpp
class TimerCallback;     // sluice/extend/timer_callback.hpp

/// The result of Clock::set_timer().
enum class TimerState : std::uint8_t {
  set,    ///< the callback will run
  due,    ///< not set: the time has already come
  never,  ///< not set: this clock has no timers; wait in real time
};

/// How a wait on a clock ended.
enum class WaitEnd : std::uint8_t {
  woken,  ///< the event was set
  due,    ///< the time has come
  never,  ///< neither can happen any more
};

/// The time of one store, and the means to wait for a time.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  /// The present instant, in [0, word_limit] microseconds. Thread-safe.
  [[nodiscard]] virtual Time now() const noexcept = 0;

  /// A cheaper reading that is never ahead of now() and lags it by less than coarse_lag.
  /// Thread-safe. The default is now() itself.
  [[nodiscard]] virtual Time coarse_now() const noexcept { return now(); }

  /// The bound of how far coarse_now() lags now(). A kernel tick is 1 to 10 ms; the rest is a
  /// margin for delayed ticks.
  static constexpr Span coarse_lag{100'000};

  /// Blocks this thread until the clock shows `when` or the event is set, and returns at once if
  /// either holds. True: the event was set. The default waits in real time and reads the clock at
  /// least every 10 ms, in case it is set.
  virtual bool wait_until(Time when, ManualResetEvent& waker);

  /// wait_until() for a caller that can report a wait without an end: WaitEnd::never, and then
  /// `why` says what is missing. The default never returns that; see VirtualClock.
  virtual WaitEnd wait_or_tell(Time when, ManualResetEvent& waker, std::string& why) {
    return (void)why, wait_until(when, waker) ? WaitEnd::woken : WaitEnd::due;
  }

  /// Runs `timer` once when the clock shows `when` or later. Only clocks that the program moves
  /// have timers: they run them on the thread that moves the clock, in the order of their times,
  /// then of setting. The callback may set other timers and move the clock. Throws std::bad_alloc.
  /// REQUIRES: the timer is not set, and no other thread sets or cancels it at the same time.
  virtual TimerState set_timer(TimerCallback& timer, Time when);

  /// True: the timer was set and will not run. False: it was not set, or it is running; then this
  /// returns after it has run, unless the callback itself makes this call.
  virtual bool cancel_timer(TimerCallback& timer) noexcept;

  /// The run loop whose events are the waits on this clock, if there is one; see
  /// asio/timed_loop.hpp.
  [[nodiscard]] virtual TimedLoop* loop() noexcept { return nullptr; }

  /// The generator for users of this clock that were given none; null: thread_rng(). The clock of a
  /// simulated world derives all draws from the seed of the world. See rng_of().
  [[nodiscard]] virtual Rng* rng(DrawFor) noexcept { return nullptr; }

  /// Ends with the clock, or when a simulated world begins to end: waits and leases on this clock
  /// then call no store.
  [[nodiscard]] virtual detail::Life::View life() const noexcept { return life_.view(); }

  /// Registers and unregisters the calling thread; see KnownThread.
  virtual void thread_begins() noexcept {}
  virtual void thread_ends() noexcept {}

 protected:
  /// wait_until() in real time, which reads the clock at least every `step`.
  bool wait_in_steps(Time when, ManualResetEvent& waker, Span step);

 private:
  detail::Life life_;
};

/// The generator for a purpose where the caller passes none: that of the clock, else thread_rng().
[[nodiscard]] inline Rng& rng_of(Clock& clock, DrawFor purpose) noexcept {
  Rng* const own = clock.rng(purpose);
  return own != nullptr ? *own : thread_rng();
}

/// Registers the current thread with a clock for the lifetime of this object. A VirtualClock with
/// AutoAdvance moves only while all registered threads wait on it. The library registers its own
/// threads.
class KnownThread {
 public:
  explicit KnownThread(Clock& clock) noexcept;
  KnownThread(const KnownThread&) = delete;
  KnownThread& operator=(const KnownThread&) = delete;
  /// REQUIRES: runs on the thread that made it, in reverse order of construction.
  ~KnownThread();

  [[nodiscard]] static bool is_here(const Clock& clock) noexcept;

 private:
  Clock& clock_;
  const KnownThread* outer_;
};

/// The system clock: Unix time when this object was made, advanced by the monotonic clock. It never
/// jumps, also when the wall clock is set; two processes agree as far as their wall clocks did when
/// they started. now() costs one clock read, coarse_now() about a quarter of that where the system
/// has a coarse clock.
class SystemClock final : public Clock {
 public:
  SystemClock() noexcept;
  [[nodiscard]] Time now() const noexcept override;
  [[nodiscard]] Time coarse_now() const noexcept override;
  bool wait_until(Time when, ManualResetEvent& waker) override;

 private:
  Word offset_;  // Unix time minus monotonic time, in microseconds
};

}  // namespace sluice
