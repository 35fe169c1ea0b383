// Binding: what a store caches for a frequently used key. For implementations of stores.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace sluice {

class Store;

/// Data by which a store finds the state of a key without a look-up. Filled by Store::bind();
/// belongs to that store. Several threads may use it at once.
struct Binding {
  const Store* owner = nullptr;
  std::array<std::uint64_t, 2> hash{};
  std::atomic<void*> slot{nullptr};
  std::atomic<bool> fine{false};  ///< the coarse clock did not suffice last time

  Binding() = default;
  /// REQUIRES, here and below: no other thread uses either object.
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
