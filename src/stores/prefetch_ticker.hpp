// Ticker: runs a function some time after it was armed, by a timer of the clock or, where that has
// none, on a thread of its own. Threading: any member from any thread.
#pragma once

#include <memory>
#include <mutex>

#include "sluice/clock.hpp"
#include "sluice/detail/clock_thread.hpp"
#include "sluice/extend/timer_callback.hpp"

namespace sluice::prefetch {

class Ticker {
 public:
  using Function = void (*)(void* context) noexcept;

  Ticker(Clock& clock, Span period, Function function, void* context) noexcept;
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;
  /// The function does not run any more. REQUIRES: not called by it.
  ~Ticker();

  /// The function runs once, a period from now or, if it was armed before, earlier. Without memory
  /// or threads it does not.
  void arm() noexcept;

 private:
  static void ring(void* self) noexcept;
  [[nodiscard]] Time ring_when_due() noexcept;

  Clock& clock_;
  detail::Life::View clock_life_;
  Span period_;
  Function function_;
  void* context_;
  detail::HomeProcess home_;
  std::mutex mutex_;  // guards what follows
  bool armed_ = false;
  bool stopping_ = false;
  Time due_{};
  TimerCallback timer_;
  detail::ClockThread thread_;
};

/// A reference to an object that others may use until it ends.
template <class T>
struct Gate {
  std::mutex mutex;
  T* object = nullptr;
};

}  // namespace sluice::prefetch
