// What a store may remember for a key that is asked again and again. For those who write stores.
// Threading: as each type says.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace sluice {

class Store;

/// What a store remembers for a key that is used again and again, so that it need not look the key
/// up. Filled by Store::bind(); belongs to that store. May be used by many threads at once.
struct Binding {
  const Store* owner = nullptr;
  std::array<std::uint64_t, 2> hash{};
  std::atomic<void*> slot{nullptr};
  std::atomic<bool> fine{false};  ///< the cheap clock did not serve the last time

  Binding() = default;
  /// REQUIRES, here and below: neither is in use meanwhile.
  Binding(const Binding& other) noexcept { *this = other; }
  Binding& operator=(const Binding& other) noexcept {
    owner = other.owner;
    hash = other.hash;
    slot.store(other.slot.load(std::memory_order_relaxed), std::memory_order_relaxed);  // see above
    fine.store(other.fine.load(std::memory_order_relaxed), std::memory_order_relaxed);  // see above
    return *this;
  }
  ~Binding() = default;
};

}  // namespace sluice
