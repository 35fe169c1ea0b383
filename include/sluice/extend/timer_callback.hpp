// TimerCallback: a callback that a clock runs when a time has come. See Clock::set_timer().
#pragma once

#include <cstdint>

#include "sluice/detail/cxx20.hpp"

namespace sluice {

/// A callback and its place in a clock. It is a member of the waiting object, so that setting a
/// timer needs no memory. Set on one clock at a time. `ended` is called instead if the clock of a
/// simulated world ends first; null: nothing is called. REQUIRES: not set when it is destroyed.
class TimerCallback {
 public:
  using Function = void (*)(void* context) noexcept;

  TimerCallback(Function function, void* context, Function ended = nullptr) noexcept
      : function_(function), ended_(ended), context_(context) {}
  TimerCallback(const TimerCallback&) = delete;
  TimerCallback& operator=(const TimerCallback&) = delete;

  /// For implementations of clocks. The object may be destroyed when this returns.
  void ring() noexcept { function_(context_); }
  /// Called instead by a clock that ends while the timer is set.
  void end() noexcept {
    place = 0;
    if (ended_ != nullptr) ended_(context_);
  }

  /// Used by the clock: its index of the timer. Zero: not set.
  std::uint64_t place = 0;

 private:
  Function function_;
  Function ended_;
  void* context_;
};

}  // namespace sluice
