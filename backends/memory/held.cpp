// Holding a slot and letting it go.
#include "backends/memory/held.hpp"

#include <algorithm>

namespace sluice::memory {

bool Held::hold(Meetings& meetings) noexcept {
  Pause pause;
  for (bool waited = false;;) {
    auto [identity, seen] = slot->snapshot();
    if (!mark.matches(identity.low, identity.high)) return false;
    if (state::level(seen) == state::dead) return false;
    if (state::level(seen) == state::locked) {
      if (!waited) ++meetings.waits;
      waited = true;
      pause();
      continue;
    }
    before = seen;
    if (slot->state.exchange(seen, state::make(state::locked, 0, state::generation(seen)))) {
      words = state::words(before);
      kind = Slot::kind(identity.high);
      until = Slot::idle_at(identity.high);
      larger = 0;
      return true;
    }
    ++meetings.conflicts;
  }
}

std::span<Word> Held::grow(const Blocks& blocks, std::size_t count) noexcept {
  Extent extent(words);
  if (larger != 0) {
    const std::span<Word> old = state(blocks);
    std::copy(old.begin(), old.end(), blocks.words(larger));
    std::swap(extent.block, larger);  // the old block is given back when the slot is let go
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

void Held::let_go_changed() noexcept {
  const std::uint64_t generation = state::generation(before);
  const Pair next = state::make(words, generation);
  if (next == before) return let_go();
  slot->keep_until(mark, until);
  Pair locked = state::make(state::locked, 0, generation);
  slot->state.exchange(locked, next);
}

void Held::let_go() noexcept {
  Pair locked = state::make(state::locked, 0, state::generation(before));
  slot->state.exchange(locked, before);
}

}  // namespace sluice::memory
