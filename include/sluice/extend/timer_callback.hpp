// A call that a clock makes when a time has come. See Clock::set_timer().
#pragma once

#include <cstdint>

#include "sluice/detail/cxx20.hpp"

namespace sluice {

/// What is called. It belongs to whoever waits, so that setting it needs no memory of its own: a
/// part of an object on the stack or of an operation under way. Set on one clock at a time.
/// `ended`: what is called instead if the clock of a simulated world ends first; null: nothing.
/// REQUIRES: not set when it is destroyed.
class TimerCallback {
 public:
  using Function = void (*)(void* context) noexcept;

  TimerCallback(Function function, void* context, Function ended = nullptr) noexcept
      : function_(function), ended_(ended), context_(context) {}
  TimerCallback(const TimerCallback&) = delete;
  TimerCallback& operator=(const TimerCallback&) = delete;

  /// For those who write clocks. The timer may be gone when this returns.
  void ring() noexcept { function_(context_); }
  /// The same for a clock that ends with the timer set.
  void end() noexcept {
    place = 0;
    if (ended_ != nullptr) ended_(context_);
  }

  /// The clock's own: where it keeps the timer. Zero: not set.
  std::uint64_t place = 0;

 private:
  Function function_;
  Function ended_;
  void* context_;
};

}  // namespace sluice
