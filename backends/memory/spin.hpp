// Short locks for the paths that are not lock-free: who gets a slot when a table is full, and
// waiting for a plan that is being written.
#pragma once

#include "backends/memory/atoms.hpp"

namespace sluice::memory {

/// Waits a little longer each time it is called: first on the core, then by yielding it.
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
    while (held_.exchange(true, std::memory_order_acquire)) {  // sees what the last holder wrote
      pause();
    }
  }
  void unlock() noexcept {
    held_.store(false, std::memory_order_release);  // hands on what was written
  }

 private:
  Atomic<bool> held_{false};
};

}  // namespace sluice::memory
