// Pool: recycled memory for the posted functions of a World. Threading: one thread.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <new>

#include "sluice/detail/cxx20.hpp"

namespace sluice::sim::detail {

/// Blocks in steps of 64 bytes up to 1 KiB; larger ones come from the heap. Freed blocks are kept,
/// so that a run in a steady state does not allocate.
class Pool {
 public:
  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    for (std::size_t size = 0; size < free_.size(); ++size) {
      while (Block* const block = free_[size]) {
        free_[size] = block->next;
        ::operator delete(block);
      }
    }
  }

  [[nodiscard]] void* allocate(std::size_t bytes) {
    const std::size_t size = (bytes - 1) / step;
    if (size >= free_.size()) return ::operator new(bytes);
    if (free_[size] == nullptr) return ::operator new((size + 1) * step);
    Block* const block = free_[size];
    free_[size] = block->next;
    return block;
  }

  void deallocate(void* memory, std::size_t bytes) noexcept {
    const std::size_t size = (bytes - 1) / step;
    if (size >= free_.size()) return ::operator delete(memory);
    free_[size] = ::new (memory) Block{free_[size]};
  }

 private:
  struct Block {
    Block* next;
  };
  static constexpr std::size_t step = 64;
  std::array<Block*, 16> free_{};
};

/// An allocator over a pool. Over-aligned types come from the heap.
template <class T>
class PoolAllocator {
 public:
  using value_type = T;
  explicit PoolAllocator(Pool& pool) noexcept : pool_(&pool) {}
  template <class U>
  PoolAllocator(const PoolAllocator<U>& other) noexcept : pool_(&other.pool()) {}

  [[nodiscard]] T* allocate(std::size_t count) {
    if constexpr (over_aligned) return std::allocator<T>().allocate(count);
    return static_cast<T*>(pool_->allocate(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    if constexpr (over_aligned) return std::allocator<T>().deallocate(memory, count);
    pool_->deallocate(memory, count * sizeof(T));
  }
  [[nodiscard]] Pool& pool() const noexcept { return *pool_; }
  friend bool operator==(const PoolAllocator&, const PoolAllocator&) = default;

 private:
  static constexpr bool over_aligned = alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__;
  Pool* pool_;
};

}  // namespace sluice::sim::detail
