// What wakes a thread that is blocked on a clock.
#pragma once

#include <condition_variable>
#include <mutex>

#include "sluice/detail/cxx20.hpp"

namespace sluice {

class Clock;

/// Wakes the thread that is, or will be, blocked in Clock::wait_until() with this object: once
/// woken it stays awake until reset(). One thread waits on it at a time; any thread may wake it.
class ManualResetEvent {
 public:
  ManualResetEvent() = default;
  ManualResetEvent(const ManualResetEvent&) = delete;
  ManualResetEvent& operator=(const ManualResetEvent&) = delete;

  void wake() noexcept;
  /// Blocks until it is woken, for what does not depend on time: to a clock, the thread runs.
  void wait() noexcept;
  /// From now on wait_until() waits again. Called by the thread that waits, before it looks at what
  /// it waits for: then no change is missed.
  void reset() noexcept;
  [[nodiscard]] bool is_awake() const noexcept;

 private:
  friend class Clock;
  friend class VirtualClock;

  /// Told when a blocked thread is woken, before it runs.
  using Leave = void (*)(Clock& clock) noexcept;

  void raise(bool ManualResetEvent::*flag) noexcept;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool awake_ = false;
  bool due_ = false;             // the time that is waited for has come
  Clock* counted_by_ = nullptr;  // counts the thread as waiting, until `leave_` is called
  Leave leave_ = nullptr;
};

}  // namespace sluice
