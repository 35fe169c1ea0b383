// Atomics that give way to another thread now and then, at any place of the store's protocol: so
// threads meet there on one processor as well, where else they are interrupted once in
// milliseconds, and on several they meet at more places. Threading: as std::atomic.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>

namespace sluice::memory {

/// Lets other threads run. It sleeps, and so is soon back, where a thread that yields beside other
/// load waits until that has used its time.
inline void give_way() noexcept { std::this_thread::sleep_for(std::chrono::nanoseconds{1}); }

/// Gives way once in so many calls.
inline void interleave() noexcept {
  constexpr std::uint32_t calls = 128;
  thread_local auto draw =
      static_cast<std::uint32_t>(std::hash<std::thread::id>()(std::this_thread::get_id()) | 1);
  draw ^= draw << 13;  // xorshift32
  draw ^= draw >> 17;
  draw ^= draw << 5;
  if (draw % calls == 0) give_way();
}
inline void changed() noexcept {}
inline void pause_briefly() noexcept { give_way(); }
inline void pause_long() noexcept { give_way(); }
inline void step_back() noexcept {}

template <class T>
class Atomic {
 public:
  static constexpr bool is_always_lock_free = std::atomic<T>::is_always_lock_free;

  constexpr Atomic(T value) noexcept : value_(value) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] T load(std::memory_order order) const noexcept {
    interleave();
    return value_.load(order);
  }
  void store(T value, std::memory_order order) noexcept {
    interleave();
    value_.store(value, order);
  }
  T exchange(T value, std::memory_order order) noexcept {
    interleave();
    return value_.exchange(value, order);
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order success,
                             std::memory_order failure) noexcept {
    interleave();
    return value_.compare_exchange_weak(expected, desired, success, failure);
  }

 private:
  std::atomic<T> value_;
};

}  // namespace sluice::memory
