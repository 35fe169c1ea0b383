// Blocks: the memory of states of more than two words, in one reserved range, with sizes that
// double.
//
// A buddy allocator: a block that is too large is split, and two free halves are merged, so that
// memory freed in one size serves another. Any thread may call any member; allocating and freeing a
// block are short (at most one step for each size) and under one spin lock.
#pragma once

#include <array>

#include "backends/memory/pages.hpp"
#include "backends/memory/spin.hpp"
#include "sluice/extend/operation.hpp"

namespace sluice::memory {

/// A block: its start and size, in less than 52 bits. 0: none.
using BlockId = std::uint64_t;

class Blocks {
 public:
  /// Reserves up to `bytes`. Throws std::bad_alloc.
  explicit Blocks(std::size_t bytes);

  /// Allocates a block of `words` words or more, uninitialised; none if there is none, or if that
  /// is more than max_state_words.
  [[nodiscard]] BlockId take(std::size_t words) noexcept;
  /// Frees a block; no effect for none.
  void refund(BlockId block) noexcept;

  [[nodiscard]] Word* words(BlockId block) const noexcept {
    return reinterpret_cast<Word*>(pages_.data() + unit(block) * unit_bytes);
  }
  /// The capacity of a block in words.
  [[nodiscard]] static std::size_t room(BlockId block) noexcept {
    return block == 0 ? 0 : unit_words << order(block);
  }

  /// Bytes of the blocks in use.
  [[nodiscard]] std::size_t bytes_used() const noexcept {
    return used_.load(std::memory_order_relaxed) * unit_bytes;  // statistics
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return units_ * unit_bytes; }

  static constexpr std::size_t unit_words = 4;  // words of the smallest block
  static constexpr std::size_t unit_bytes = unit_words * sizeof(Word);
  static constexpr unsigned orders = 17;  // block sizes: unit_words << 0 to unit_words << 16
  static_assert(unit_words << (orders - 1) == max_state_words);

 private:
  /// The contents of a free block: its neighbours in the list of its size, as units; `none` at the
  /// ends.
  struct Links {
    std::size_t next;
    std::size_t before;
  };
  static constexpr std::size_t none = ~std::size_t{0};

  [[nodiscard]] static std::size_t unit(BlockId block) noexcept { return (block >> 5) - 1; }
  [[nodiscard]] static unsigned order(BlockId block) noexcept { return block & 31; }
  [[nodiscard]] Links& links(std::size_t unit) const noexcept {
    return *reinterpret_cast<Links*>(pages_.data() + unit * unit_bytes);
  }
  /// For each unit: 1 + the size of the free block that starts there, else 0.
  [[nodiscard]] std::uint8_t& free_at(std::size_t unit) const noexcept {
    return reinterpret_cast<std::uint8_t*>(pages_.data() + units_ * unit_bytes)[unit];
  }
  void push(std::size_t unit, unsigned order) noexcept;
  void remove(std::size_t unit, unsigned order) noexcept;
  [[nodiscard]] std::size_t find(unsigned order) noexcept;
  [[nodiscard]] std::size_t carve(unsigned order) noexcept;

  std::size_t units_;
  Pages pages_;
  SpinLock lock_;
  std::size_t fresh_ = 0;     // the first unit that was never part of a block
  std::uint32_t filled_ = 0;  // a bit for each non-empty list
  std::array<std::size_t, orders> lists_;
  std::atomic<std::size_t> used_{0};
};

}  // namespace sluice::memory
