// Atomics that the explorer stands in for std::atomic: before each operation another thread may
// come in between. The threads are fibers of one thread, so that the values are plain.
#pragma once

#include <atomic>

namespace sluice::memory {

/// Where the explorer may go on with another thread.
void interleave() noexcept;
/// Notes that a value has changed: who waits may look again.
void changed() noexcept;
/// Goes on with another thread until a value has changed.
void pause_briefly() noexcept;
inline void pause_long() noexcept { pause_briefly(); }
inline void step_back() noexcept {}

template <class T>
class Atomic {
 public:
  static constexpr bool is_always_lock_free = true;

  constexpr Atomic(T value) noexcept : value_(value) {}  // NOLINT(google-explicit-constructor)
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  [[nodiscard]] T load(std::memory_order) const noexcept {
    interleave();
    return value_;
  }
  void store(T value, std::memory_order) noexcept {
    interleave();
    set(value);
  }
  T exchange(T value, std::memory_order) noexcept {
    interleave();
    const T before = value_;
    set(value);
    return before;
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order,
                             std::memory_order) noexcept {
    interleave();
    if (value_ != expected) {
      expected = value_;
      return false;
    }
    set(desired);
    return true;
  }

 private:
  void set(T value) noexcept {
    if (value_ != value) changed();
    value_ = value;
  }

  T value_;
};

}  // namespace sluice::memory
