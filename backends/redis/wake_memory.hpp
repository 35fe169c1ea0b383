// WakeMemory: memory for the one posted wake of the I/O thread, so that waking it cannot fail in
// execute() and in stop callbacks, which cannot report errors. Threading: any thread that wakes;
// the user ensures that there is at most one wake.
#pragma once

#include <array>
#include <cstddef>

namespace sluice::redis_detail {

struct WakeMemory {
  static constexpr std::size_t size = 256;
  alignas(std::max_align_t) std::array<std::byte, size> bytes;
};

/// An allocator of a WakeMemory. Asio frees it before it runs the handler.
template <class T>
class WakeAllocator {
 public:
  using value_type = T;

  explicit WakeAllocator(WakeMemory& memory) noexcept : memory_(&memory) {}
  template <class U>
  WakeAllocator(const WakeAllocator<U>& other) noexcept  // NOLINT(google-explicit-constructor)
      : memory_(other.memory()) {}

  /// REQUIRES: count == 1, and the memory is free.
  [[nodiscard]] T* allocate(std::size_t count) noexcept {
    static_assert(sizeof(T) <= WakeMemory::size && alignof(T) <= alignof(std::max_align_t));
    static_cast<void>(count);
    return reinterpret_cast<T*>(memory_->bytes.data());
  }
  void deallocate(T*, std::size_t) noexcept {}

  [[nodiscard]] WakeMemory* memory() const noexcept { return memory_; }
  friend bool operator==(const WakeAllocator&, const WakeAllocator&) = default;

 private:
  WakeMemory* memory_;
};

}  // namespace sluice::redis_detail
