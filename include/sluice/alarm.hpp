// A call that a clock makes when a time has come. See Clock::set_alarm().
#pragma once

#include <cstdint>

namespace sluice {

/// What is called. It belongs to whoever waits, so that setting it needs no memory of its own: a
/// part of an object on the stack or of an operation under way. Set on one clock at a time.
/// REQUIRES: not set when it is destroyed.
class Alarm {
 public:
  using Function = void (*)(void* context) noexcept;

  Alarm(Function function, void* context) noexcept : function_(function), context_(context) {}
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  /// For those who write clocks. The alarm may be gone when this returns.
  void ring() noexcept { function_(context_); }

  /// The clock's own: where it keeps the alarm. Zero: not set.
  std::uint64_t place = 0;

 private:
  Function function_;
  void* context_;
};

}  // namespace sluice
