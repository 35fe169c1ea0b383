// Locking and unlocking a slot.
#include "backends/memory/locked_slot.hpp"

#include <algorithm>

namespace sluice::memory {
namespace {

/// The words of a locked cell. The high word stays: a reader that saw it as zero in two locks, and
/// the low word between them, would take both for a state (see Slot::snapshot()).
Pair locked(const Pair& before) noexcept {
  return {state::make(state::locked, 0, state::generation(before)).low, before.high};
}

}  // namespace

bool LockedSlot::hold(ContentionStats& contention) noexcept {
  Pause pause;
  for (bool waited = false;;) {
    auto [identity, seen] = slot->snapshot();
    if (!id.matches(identity.low, identity.high)) return false;
    if (state::level(seen) == state::dead) return false;
    if (state::level(seen) == state::locked) {
      if (!waited) ++contention.waits;
      waited = true;
      pause();
      continue;
    }
    before = seen;
    if (slot->state.exchange(seen, locked(before))) {
      words = state::words(before);
      kind = Slot::kind(identity.high);
      until = Slot::idle_at(identity.high);
      larger = 0;
      return true;
    }
    ++contention.conflicts;
  }
}

std::span<Word> LockedSlot::grow(const Blocks& blocks, std::size_t count) noexcept {
  Extent extent(words);
  if (larger != 0) {
    const std::span<Word> old = state(blocks);
    std::copy(old.begin(), old.end(), blocks.words(larger));
    std::swap(extent.block, larger);  // the old block is freed when the slot is unlocked
  }
  Word* const first = blocks.words(extent.block);
  if (count > extent.words) {
    std::fill(first + extent.words, first + count, Word{0});
    extent.words = count;
  }
  ++extent.changes;
  words = extent.cell();
  return {first, extent.words};
}

void LockedSlot::let_go_changed() noexcept {
  const std::uint64_t generation = state::generation(before);
  const Pair next = state::make(words, generation);
  if (next == before) return let_go();
  slot->keep_until(id, until);
  Pair expected = locked(before);
  slot->state.exchange(expected, next);
}

void LockedSlot::let_go() noexcept {
  Pair expected = locked(before);
  slot->state.exchange(expected, before);
}

}  // namespace sluice::memory
