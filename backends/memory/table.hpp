// A table of slots of fixed size. A key is looked for in a short fixed sequence of cache lines.
//
// A slot is empty, then owned, and never empty again: when the table is full, slots change hands.
// So "not in any slot before the first empty one" means "not in the table", and two threads that
// bring the same new key both try for that first empty slot: one gets it, the other sees the key.
// Threading: find() and find_or_claim() from any thread, lock-free; take_over() says.
#pragma once

#include <cstddef>

#include "backends/memory/locked_slot.hpp"
#include "backends/memory/pages.hpp"
#include "backends/memory/slot.hpp"

namespace sluice::memory {

class Table {
 public:
  /// Room for `keys` keys. Throws std::bad_alloc. REQUIRES: keys >= 1.
  explicit Table(std::size_t keys);

  /// What a table for so many keys allocates.
  [[nodiscard]] static std::size_t bytes_for(std::size_t keys) noexcept {
    return slots_for(keys) * sizeof(Slot);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return slots_ * sizeof(Slot); }

  /// Slots that ever had an owner.
  [[nodiscard]] std::size_t used() const noexcept {
    return used_.load(std::memory_order_relaxed);  // a figure, ordered with nothing
  }

  /// Asks the processor for the lines where most look-ups of `hash` end, the first two, and returns
  /// the first slot there.
  Slot* prefetch(const std::array<std::uint64_t, 2>& hash) const noexcept {
    Slot* const first = slots() + home(hash, 0);
    __builtin_prefetch(first, 1);
    __builtin_prefetch(first + 2, 1);
    return first;
  }
  /// The slot of the line at `first` that is the one of `id` if either is; the caller looks.
  /// Chosen without a branch: nobody can foretell which it is, and a processor that guesses wrong
  /// drops what it has begun of the next decisions.
  [[nodiscard]] static Slot& guess(Slot* first, const SlotId& id) noexcept {
    return first[std::size_t{first[1].identity.low() == id.low()}];
  }
  [[nodiscard]] Slot& guess(const SlotId& id) const noexcept {
    return guess(slots() + home(id.hash, 0), id);
  }

  /// Where a look-up ended: in the key's slot, or at none, and whether a slot was still empty.
  struct Place {
    Slot* slot = nullptr;
    bool room = false;
  };
  [[nodiscard]] Place find(const SlotId& id) const noexcept;

  /// The key's slot, which is now the key's own with an absent state if it was in no slot. None if
  /// no slot is empty.
  [[nodiscard]] Slot* find_or_claim(const SlotId& id, IdleTick idle_at) noexcept;

  /// A slot that changed hands, and the block of its last owner's state, which is to be given back.
  struct Taken {
    Slot* slot = nullptr;
    BlockId block = 0;
  };
  /// A slot whose state means nothing any more at `now`, for a key that has none: it gets `initial`
  /// as its state. None if every slot is in use.
  /// REQUIRES: find() saw no room, and no other thread runs take_over() for this key.
  [[nodiscard]] Taken take_over(const SlotId& id, const StateWords& initial, IdleTick idle_at,
                                std::int64_t now) noexcept;

  /// Makes a key's own slot one of another kind, with an absent state. None if the state that is
  /// there means something at `now`, or is in use by another thread.
  [[nodiscard]] Taken change_kind(Slot& slot, const SlotId& id, IdleTick idle_at,
                                  std::int64_t now) noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return slots_; }
  /// The block of a slot's state that means nothing any more at `now`; the state is absent then.
  [[nodiscard]] BlockId take_block(std::size_t slot, std::int64_t now) noexcept;

  /// True if take_over() would find a slot now.
  [[nodiscard]] bool has_idle(const SlotId& id, std::int64_t now) const noexcept;

  /// Lines that a look-up may touch: so many runs of so many neighbours.
  static constexpr std::size_t runs = 4;
  static constexpr std::size_t run_slots = 8;

 private:
  static std::size_t slots_for(std::size_t keys) noexcept;

  /// An empty slot is all zeros.
  [[nodiscard]] Slot* slots() const noexcept { return reinterpret_cast<Slot*>(pages_.data()); }

  /// The first slot of a run, at the start of a cache line.
  [[nodiscard]] std::size_t home(const std::array<std::uint64_t, 2>& hash,
                                 std::size_t run) const noexcept {
    const std::uint64_t word = hash[run & 1];
    const std::uint64_t bits = run < 2 ? word : word << 32 | word >> 32;
    __extension__ typedef unsigned __int128 Product;
    return static_cast<std::size_t>(Product{bits} * homes_ >> 64) * 2;
  }

  /// Calls `visit(slot)` along the key's sequence until it returns true.
  template <class Visit>
  void walk(const SlotId& id, const Visit& visit) const noexcept {
    for (std::size_t run = 0; run < runs; ++run) {
      Slot* slot = slots() + home(id.hash, run);
      for (Slot* const end = slot + run_slots; slot != end; ++slot) {
        if (visit(*slot)) return;
      }
    }
  }

  std::size_t slots_;
  std::size_t homes_;  // lines where a run can start
  Pages pages_;
  alignas(64) std::atomic<std::size_t> used_{0};
};

inline Table::Place Table::find(const SlotId& id) const noexcept {
  Place place;
  walk(id, [&](Slot& slot) noexcept {
    const std::uint64_t high = slot.identity.high();
    place.room = high == 0;
    if (id.matches(slot.identity.low(), high)) place.slot = &slot;
    return place.room || place.slot != nullptr;
  });
  return place;
}

inline Slot* Table::find_or_claim(const SlotId& id, IdleTick idle_at) noexcept {
  Slot* found = nullptr;
  walk(id, [&](Slot& slot) noexcept {
    Pair seen;
    seen.high = slot.identity.high();
    if (seen.high != 0) {
      seen.low = slot.identity.low();
    } else if (slot.identity.exchange(seen, {id.low(), id.high(idle_at)})) {
      used_.fetch_add(1, std::memory_order_relaxed);  // a figure
      found = &slot;
      return true;
    }
    if (id.matches(seen.low, seen.high)) found = &slot;
    return found != nullptr;
  });
  return found;
}

}  // namespace sluice::memory
