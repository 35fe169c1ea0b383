// Cell: 16 bytes that are changed atomically, and the layout of a key's state in them. This is the
// only file with the 16-byte compare-and-swap. Any thread may use any member.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "backends/memory/atoms.hpp"
#include "sluice/extend/operation.hpp"

namespace sluice::memory {

/// The value of a cell.
struct Pair {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const Pair&, const Pair&) = default;
};

#if defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16)
inline constexpr bool cells_are_lock_free = true;
__extension__ typedef unsigned __int128 Wide __attribute__((may_alias));
#else
inline constexpr bool cells_are_lock_free = false;
/// The lock of one compare-and-swap on machines without one of 16 bytes.
std::atomic<bool>& spin_of(const void* cell) noexcept;
#endif

/// Two words, read separately and swapped together.
class alignas(16) Cell {
 public:
  [[nodiscard]] std::uint64_t low() const noexcept {
    return low_.load(std::memory_order_acquire);  // sees what the cell publishes; keeps the order
  }
  [[nodiscard]] std::uint64_t high() const noexcept {
    return high_.load(std::memory_order_acquire);  // as low()
  }

  /// Replaces `expected` by `desired` and returns true, or stores the current value in `expected`
  /// and returns false. A full barrier.
  bool exchange(Pair& expected, const Pair& desired) noexcept;

  /// The same without the current value. Without a comparison after the instruction.
  bool try_exchange(const Pair& expected, const Pair& desired) noexcept;

  /// Swaps the high word alone.
  bool exchange_high(std::uint64_t& expected, std::uint64_t desired) noexcept {
    return high_.compare_exchange_weak(expected, desired,
                                       std::memory_order_release,   // before the state it announces
                                       std::memory_order_relaxed);  // the caller retries
  }

  /// For a cell that no other thread exchanges now: the high word is published last, so that a
  /// thread that sees it sees the low one.
  void publish(const Pair& value) noexcept {
    low_.store(value.low, std::memory_order_relaxed);    // ordered by the next line
    high_.store(value.high, std::memory_order_release);  // readers load high, then low
  }

 private:
  Atomic<std::uint64_t> low_{0};
  Atomic<std::uint64_t> high_{0};
};
static_assert(sizeof(Cell) == 16 && alignof(Cell) == 16, "exchanged as one aligned operand");
static_assert(Atomic<std::uint64_t>::is_always_lock_free);

#if defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16)
[[nodiscard]] inline Wide wide(const Pair& pair) noexcept {
  return Wide{pair.high} << 64 | pair.low;
}
inline bool Cell::try_exchange(const Pair& expected, const Pair& desired) noexcept {
  interleave();
  if (!__sync_bool_compare_and_swap(reinterpret_cast<Wide*>(this), wide(expected), wide(desired))) {
    return false;
  }
  changed();
  return true;
}
inline bool Cell::exchange(Pair& expected, const Pair& desired) noexcept {
  interleave();
  const Wide want = wide(expected);
  // The __sync builtin compiles to the instruction; std::atomic of 16 bytes calls a library, which
  // may lock. It is sequentially consistent.
  const Wide seen = __sync_val_compare_and_swap(reinterpret_cast<Wide*>(this), want, wide(desired));
  if (seen == want) {
    changed();
    return true;
  }
  expected = {static_cast<std::uint64_t>(seen), static_cast<std::uint64_t>(seen >> 64)};
  return false;
}
static_assert(std::endian::native == std::endian::little, "low_ is the low half of a Wide");
#else
inline bool Cell::exchange(Pair& expected, const Pair& desired) noexcept {
  auto& spin = spin_of(this);
  while (spin.exchange(true, std::memory_order_acquire)) {  // sees the last holder's stores
  }
  const Pair seen{low_.load(std::memory_order_relaxed),    // under the lock; cells that use
                  high_.load(std::memory_order_relaxed)};  // exchange_high() do not use it
  const bool same = seen == expected;
  if (same) publish(desired);
  spin.store(false, std::memory_order_release);  // hands the stores on
  expected = seen;
  return same;
}
inline bool Cell::try_exchange(const Pair& expected, const Pair& desired) noexcept {
  Pair seen = expected;
  return exchange(seen, desired);
}
#endif

/// The state of a key in a cell: level and stamp of 53 bits (a Word has 52 bits and word_limit),
/// and a generation of 22 bits that changes with the owner of the cell, so that a delayed thread
/// cannot change the state of the next owner.
namespace state {

inline constexpr int generation_bits = 11;  // in each word
inline constexpr std::uint64_t generation_mask = (std::uint64_t{1} << generation_bits) - 1;

/// Levels that no rule can write: the cell is locked by a plan, or is between two owners.
inline constexpr Word locked = word_limit + 1;
inline constexpr Word dead = word_limit + 2;

[[nodiscard]] constexpr Word level(const Pair& pair) noexcept {
  return static_cast<Word>(pair.low >> generation_bits);
}
[[nodiscard]] constexpr Word stamp(const Pair& pair) noexcept {
  return static_cast<Word>(pair.high >> generation_bits);
}
[[nodiscard]] constexpr bool is_special(const Pair& pair) noexcept {
  return level(pair) > word_limit;
}
[[nodiscard]] constexpr std::uint64_t generation(const Pair& pair) noexcept {
  return (pair.high & generation_mask) << generation_bits | (pair.low & generation_mask);
}

[[nodiscard]] constexpr Pair make(Word level, Word stamp, std::uint64_t generation) noexcept {
  return {static_cast<std::uint64_t>(level) << generation_bits | (generation & generation_mask),
          static_cast<std::uint64_t>(stamp) << generation_bits |
              (generation >> generation_bits & generation_mask)};
}
/// Written as one vector, because a kernel reads both words at once: a load across two stores
/// stalls until both have left the processor's store buffer.
[[nodiscard]] inline StateWords words(const Pair& pair) noexcept {
#if defined(__GNUC__)
  using Vector = std::uint64_t __attribute__((vector_size(16)));
  const Vector both = Vector{pair.low, pair.high} >> generation_bits;
  StateWords result;
  std::memcpy(result.data(), &both, sizeof(both));
  return result;
#else
  return {level(pair), stamp(pair)};
#endif
}
[[nodiscard]] inline Pair make(const StateWords& words, std::uint64_t generation) noexcept {
  return make(words[0], words[1], generation);
}
/// True if the owner was the same between two readings of one cell.
[[nodiscard]] constexpr bool same_owner(const Pair& a, const Pair& b) noexcept {
  return (((a.low ^ b.low) | (a.high ^ b.high)) & generation_mask) == 0;
}
/// The state after `before`, with the same owner.
[[nodiscard]] inline Pair next(const StateWords& words, const Pair& before) noexcept {
  return {
      static_cast<std::uint64_t>(words[0]) << generation_bits | (before.low & generation_mask),
      static_cast<std::uint64_t>(words[1]) << generation_bits | (before.high & generation_mask)};
}
static_assert(cell_words == 2, "a state fills one cell");
static_assert(word_limit + 2 < Word{1} << 53, "special levels fit their field");

}  // namespace state

}  // namespace sluice::memory
