// ManualResetEvent: wakes a thread that is blocked on a clock.
#pragma once

#include <condition_variable>
#include <mutex>

#include "sluice/detail/cxx20.hpp"

namespace sluice {

class Clock;

/// An event that wakes the thread that is, or will be, blocked in Clock::wait_until() with this
/// object. Once set by wake(), it stays set until reset(). One thread at a time waits on it; any
/// thread may set it.
class ManualResetEvent {
 public:
  ManualResetEvent() = default;
  ManualResetEvent(const ManualResetEvent&) = delete;
  ManualResetEvent& operator=(const ManualResetEvent&) = delete;

  void wake() noexcept;
  /// Blocks until the event is set, for waits that do not depend on time: for a clock, the thread
  /// counts as running.
  void wait() noexcept;
  /// Clears the event. The waiting thread calls it before it checks its condition, so that no
  /// change is missed.
  void reset() noexcept;
  [[nodiscard]] bool is_awake() const noexcept;

 private:
  friend class Clock;
  friend class VirtualClock;

  /// Called when a blocked thread is woken, before it runs.
  using Leave = void (*)(Clock& clock) noexcept;

  void raise(bool ManualResetEvent::*flag) noexcept;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool awake_ = false;
  bool due_ = false;             // the time of the wait has come
  Clock* counted_by_ = nullptr;  // counts the thread as waiting until it calls `leave_`
  Leave leave_ = nullptr;
};

}  // namespace sluice
