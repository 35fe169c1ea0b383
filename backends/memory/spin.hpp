// SpinLock: short locks for the paths that are not lock-free: assigning slots of a full table, and
// waiting for a plan that writes.
#pragma once

#include "backends/memory/atoms.hpp"

namespace sluice::memory {

/// Waits longer with each call: first by spinning, then by yielding.
class Pause {
 public:
  void operator()() noexcept {
    if (++turns_ > 64) {
      pause_long();
    } else {
      pause_briefly();
    }
  }

 private:
  int turns_ = 0;
};

/// A lock of one byte, for a few hundred nanoseconds at a time. Works with std::lock_guard.
class SpinLock {
 public:
  void lock() noexcept {
    Pause pause;
    while (held_.exchange(true, std::memory_order_acquire)) {  // sees the last holder's writes
      pause();
    }
  }
  void unlock() noexcept {
    held_.store(false, std::memory_order_release);  // publishes the writes
  }

 private:
  Atomic<bool> held_{false};
};

}  // namespace sluice::memory
