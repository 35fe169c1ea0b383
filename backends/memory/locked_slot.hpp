// LockedSlot: a slot that one thread has locked. From the exchange that marks its state as locked
// until the unlock, no other thread reads or changes the state, or its block.
//
// States of more than two words are in a block; the cell of their slot contains the block, the
// number of words in use, and a count of changes, so that no two states of a slot have the same two
// words. Threading: belongs to one call.
#pragma once

#include "backends/memory/blocks.hpp"
#include "backends/memory/slot.hpp"
#include "backends/memory/spin.hpp"

namespace sluice::memory {

/// The contents of a slot's cell for a state in a block.
struct Extent {
  BlockId block = 0;
  std::size_t words = 0;
  std::uint64_t changes = 0;

  Extent() = default;
  explicit Extent(const StateWords& cell) noexcept
      : block(static_cast<BlockId>(cell[0])),
        words(static_cast<std::uint64_t>(cell[1]) & words_mask),
        changes(static_cast<std::uint64_t>(cell[1]) >> words_bits) {}
  [[nodiscard]] StateWords cell() const noexcept {
    return {static_cast<Word>(block),
            static_cast<Word>((changes & changes_mask) << words_bits | words)};
  }

 private:
  static constexpr int words_bits = 19;
  static constexpr std::uint64_t words_mask = (std::uint64_t{1} << words_bits) - 1;
  static constexpr std::uint64_t changes_mask = (std::uint64_t{1} << (52 - words_bits)) - 1;
  static_assert(max_state_words <= words_mask);
};

/// Counters of contention.
struct ContentionStats {
  std::uint64_t conflicts = 0;  ///< exchanges that lost
  std::uint64_t waits = 0;      ///< slots that another thread locked
};

struct LockedSlot {
  Slot* slot = nullptr;
  SlotId id;
  Pair before{};
  StateKind kind{};
  IdleTick until = 0;  ///< the state that is written means something until then
  StateWords words{};  ///< of the cell: what it was, to become what it shall be
  BlockId larger = 0;  ///< secured for a state that outgrows its block

  /// Waits for the lock. False if the slot no longer belongs to `id`.
  [[nodiscard]] bool hold(ContentionStats& contention) noexcept;

  /// The words of a state in a block.
  [[nodiscard]] std::span<Word> state(const Blocks& blocks) const noexcept {
    const Extent extent(words);
    return extent.block == 0 ? std::span<Word>()
                             : std::span<Word>(blocks.words(extent.block), extent.words);
  }
  /// The words of a state in a block, grown to `count` for changes; new ones are zero. REQUIRES:
  /// the block, or the larger one, has room for them.
  [[nodiscard]] std::span<Word> grow(const Blocks& blocks, std::size_t count) noexcept;
  /// After grow(): the state is its first `count` words.
  void cut(std::size_t count) noexcept {
    Extent extent(words);
    extent.words = count;
    words = extent.cell();
  }

  /// Writes `words` if they have changed, and unlocks the slot.
  void let_go_changed() noexcept;
  /// Unlocks the slot with its old state.
  void let_go() noexcept;
};

}  // namespace sluice::memory
