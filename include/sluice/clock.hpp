// Clocks. A store owns the clock that its rules see; nothing else in the library reads the time,
// and nothing in it waits but on a clock. Every clock may be used from any thread.
#pragma once

#include "sluice/detail/life.hpp"
#include "sluice/extend/manual_reset_event.hpp"
#include "sluice/extend/timer_callback.hpp"
#include "sluice/rng.hpp"
#include "sluice/time.hpp"

namespace sluice {

class TimedLoop;

/// What became of Clock::set_timer().
enum class TimerState : std::uint8_t {
  set,    ///< it will ring
  due,    ///< not set: the time has come already
  never,  ///< not set: this clock moves by itself and rings nobody; wait for it in real time
};

/// What time it is, for one store, and how to wait for a time.
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

  /// How far coarse_now() may lie behind now(). A kernel tick is 1 to 10 ms; the rest is slack for
  /// a machine that is late to tick.
  static constexpr Span coarse_lag{100'000};

  /// Blocks this thread until the clock shows `when`, or until it is woken; at once if either is so
  /// already. True: it was woken. By default in real time, for clocks that move by themselves: it
  /// looks again at least every 10 ms, in case they are set.
  virtual bool wait_until(Time when, ManualResetEvent& waker);

  /// Has `timer` rung once, when the clock shows `when` or later. Clocks that are moved by the
  /// program ring, on the thread that moves them and in the order of the times, then of setting;
  /// the timer may set others, and move the clock. Throws std::bad_alloc.
  /// REQUIRES: the timer is not set, and nobody else sets or cancels it meanwhile.
  virtual TimerState set_timer(TimerCallback& timer, Time when);

  /// True: it was set, and will not ring. False: it was not, or it is ringing; then this returns
  /// when it has rung, unless it is called by what it rings.
  virtual bool cancel_timer(TimerCallback& timer) noexcept;

  /// The run loop whose events the waits on this clock are, if there is one; see
  /// asio/timed_loop.hpp.
  [[nodiscard]] virtual TimedLoop* loop() noexcept { return nullptr; }

  /// What is drawn for those who live by this clock and were given no generator. Null: by chance.
  /// The clock of a simulated world has all draws come from the seed of the world; see rng_of().
  [[nodiscard]] virtual Rng* rng(DrawFor) noexcept { return nullptr; }

  /// Over as soon as a simulated world begins to end: who waits or holds a lease by this clock asks
  /// no store then. By default never.
  [[nodiscard]] virtual detail::Life::View life() const noexcept { return {}; }

  /// Threads that this clock knows; see KnownThread.
  virtual void thread_begins() noexcept {}
  virtual void thread_ends() noexcept {}

 protected:
  /// wait_until() in real time, looking at the clock at least every `step`.
  bool wait_in_steps(Time when, ManualResetEvent& waker, Span step);
};

/// What to draw from without a generator of one's own: the clock's, else thread_rng().
[[nodiscard]] inline Rng& rng_of(Clock& clock, DrawFor purpose) noexcept {
  Rng* const own = clock.rng(purpose);
  return own != nullptr ? *own : thread_rng();
}

/// While it lives, the thread that made it is known to the clock: a VirtualClock that moves by
/// itself moves only while all such threads wait on it. The library's own threads are known.
class KnownThread {
 public:
  explicit KnownThread(Clock& clock) noexcept;
  KnownThread(const KnownThread&) = delete;
  KnownThread& operator=(const KnownThread&) = delete;
  /// REQUIRES: on the thread that made it, and after all that were made later there.
  ~KnownThread();

  [[nodiscard]] static bool is_here(const Clock& clock) noexcept;

 private:
  Clock& clock_;
  const KnownThread* outer_;
};

/// The machine's clock: Unix time as it was when this object was made, carried on by the
/// monotonic clock. It never steps, also when the machine's wall clock is set; two processes
/// agree as far as their wall clocks did when they started. now() costs one clock read,
/// coarse_now() about a quarter of that where the system has a coarse clock.
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
