// The memory of a table, and new owners of slots in a full one.
#include "backends/memory/table.hpp"

#include <algorithm>

namespace sluice::memory {

#if !defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16)
std::atomic<bool>& spin_of(const void* cell) noexcept {
  static std::array<std::atomic<bool>, 256> spins;
  return spins[reinterpret_cast<std::uintptr_t>(cell) / sizeof(Cell) % spins.size()];
}
#endif

std::size_t Table::slots_for(std::size_t keys) noexcept {
  // Three quarters more slots than keys: most keys are in the first line of their sequence, and of
  // a million hardly one finds it full. A run may start in the last line, so that the lines after
  // it exist, too.
  const std::size_t even = (keys + keys / 4 * 3 + keys % 4 * 3 / 4 + 1) / 2 * 2;
  return std::max<std::size_t>(even, 2) + run_slots - 2;
}

Table::Table(std::size_t keys)
    : slots_(slots_for(keys)),
      homes_((slots_ - run_slots) / 2 + 1),
      pages_(slots_ * sizeof(Slot)) {}

namespace {

bool is_idle(const Slot::Snapshot& seen, std::int64_t now) noexcept {
  const IdleTick until = Slot::idle_at(seen.identity.high);
  return !state::is_special(seen.state) && until != never && until <= now;
}

BlockId block_of(const Slot::Snapshot& seen) noexcept {
  return is_cell(Slot::kind(seen.identity.high)) ? 0 : Extent(state::words(seen.state)).block;
}

bool is_absent(const Slot::Snapshot& seen) noexcept {
  const StateWords words = state::words(seen.state);
  return is_cell(Slot::kind(seen.identity.high)) ? words == StateWords{} : words[0] == 0;
}

/// Assigns the slot that was `seen` to `id`. None if another thread was first.
Table::Taken hand_over(Slot& slot, Slot::Snapshot seen, const SlotId& id, const StateWords& initial,
                       IdleTick idle_at) noexcept {
  const BlockId block = block_of(seen);
  const std::uint64_t next = state::generation(seen.state) + 1;
  Pair dead = state::make(state::dead, 0, next);
  if (!slot.state.exchange(seen.state, dead)) return {};
  // The cell is dead: this thread owns the slot. Others see a state without an owner, or the new
  // owner's.
  slot.identity.publish({id.low(), id.high(idle_at)});
  slot.state.exchange(dead, state::make(initial, next + 1));
  return {&slot, block};
}

}  // namespace

bool Table::has_idle(const SlotId& id, std::int64_t now) const noexcept {
  bool idle = false;
  walk(id, [&](const Slot& slot) noexcept {
    idle = is_idle(slot.snapshot(), now);
    return idle;
  });
  return idle;
}

Table::Taken Table::take_over(const SlotId& id, const StateWords& initial, IdleTick idle_at,
                              std::int64_t now) noexcept {
  Taken taken;
  walk(id, [&](Slot& slot) noexcept {
    // The state is read before idle-at, which is raised before a state that needs it is written: so
    // that idle-at was valid if the exchange still finds this state.
    const Slot::Snapshot seen = slot.snapshot();
    if (is_idle(seen, now)) taken = hand_over(slot, seen, id, initial, idle_at);
    return taken.slot != nullptr;
  });
  return taken;
}

Table::Taken Table::change_kind(Slot& slot, const SlotId& id, IdleTick idle_at,
                                std::int64_t now) noexcept {
  const Slot::Snapshot seen = slot.snapshot();
  if (!id.matches(seen.identity.low, seen.identity.high) || state::is_special(seen.state)) {
    return {};
  }
  if (!is_idle(seen, now) && !is_absent(seen)) return {};
  return hand_over(slot, seen, id, {}, idle_at);
}

BlockId Table::take_block(std::size_t index, std::int64_t now) noexcept {
  Slot& slot = slots()[index];
  if (slot.identity.high() == 0) return 0;
  // As in take_over(), but with the same owner.
  Slot::Snapshot seen = slot.snapshot();
  const BlockId block = is_idle(seen, now) ? block_of(seen) : 0;
  if (block == 0) return 0;
  Extent none;
  none.changes = Extent(state::words(seen.state)).changes + 1;
  const Pair absent = state::next(none.cell(), seen.state);
  return slot.state.exchange(seen.state, absent) ? block : 0;
}

}  // namespace sluice::memory
