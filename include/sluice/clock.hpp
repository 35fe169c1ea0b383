// Clocks. A store owns the clock that its rules see; nothing else in the library reads the time.
// Every clock may be read from any thread.
#pragma once

#include <atomic>

#include "sluice/time.hpp"

namespace sluice {

/// What time it is, for one store.
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

 private:
  Word offset_;  // Unix time minus monotonic time, in microseconds
};

/// A clock that stands still until it is moved: for unit tests and simulation. Every member may
/// be called from any thread; a move is seen by the next reading.
class VirtualClock final : public Clock {
 public:
  /// 2000-01-01 00:00:00 UTC.
  static constexpr Time default_start = to_time(946'684'800'000'000);

  /// Throws std::invalid_argument if `start` lies outside [0, word_limit].
  explicit VirtualClock(Time start = default_start);

  [[nodiscard]] Time now() const noexcept override {
    return to_time(now_.load(std::memory_order_acquire));
  }

  /// Moves on by `span`, which may be negative to rehearse a clock that is set back. Returns the
  /// new time. Throws std::out_of_range, and does not move, if that lies outside [0, word_limit].
  Time advance(Span span);

  /// Moves to `time`, forwards or backwards. Throws as advance() does.
  void set(Time time);

 private:
  std::atomic<Word> now_;
};

}  // namespace sluice
