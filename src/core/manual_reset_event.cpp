#include "sluice/extend/manual_reset_event.hpp"

#include <utility>

namespace sluice {

void ManualResetEvent::wake() noexcept { raise(&ManualResetEvent::awake_); }

void ManualResetEvent::raise(bool ManualResetEvent::*flag) noexcept {
  const std::lock_guard lock(mutex_);
  this->*flag = true;
  // Now, not when the thread runs: until then the clock must count it as running.
  if (Clock* const clock = std::exchange(counted_by_, nullptr)) leave_(*clock);
  // With the lock held: the thread may destroy this object as soon as the lock is released.
  changed_.notify_all();
}

void ManualResetEvent::wait() noexcept {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return awake_; });
}

void ManualResetEvent::reset() noexcept {
  const std::lock_guard lock(mutex_);
  awake_ = false;
}

bool ManualResetEvent::is_awake() const noexcept {
  const std::lock_guard lock(mutex_);
  return awake_;
}

}  // namespace sluice
