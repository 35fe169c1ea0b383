// Table: a hash table of slots, of fixed size. A key is searched in a short fixed sequence of cache
// lines.
//
// A slot is empty, then owned, and never empty again: when the table is full, slots get new owners.
// So "not in any slot before the first empty one" means "not in the table", and two threads with
// the same new key both try to claim that first empty slot: one gets it, the other sees the key.
// Threading: find() and find_or_claim() from any thread, lock-free; see take_over().
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

  /// The bytes that a table for this many keys allocates.
  [[nodiscard]] static std::size_t bytes_for(std::size_t keys) noexcept {
    return slots_for(keys) * sizeof(Slot);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return slots_ * sizeof(Slot); }

  /// The number of slots that have had an owner.
  [[nodiscard]] std::size_t used() const noexcept {
    return used_.load(std::memory_order_relaxed);  // statistics, without an order
  }

  /// Prefetches the first two lines of the sequence of `hash`, where most look-ups end, and returns
  /// the first slot there.
  Slot* prefetch(const std::array<std::uint64_t, 2>& hash) const noexcept {
    Slot* const first = slots() + home(hash, 0);
    __builtin_prefetch(first, 1);
    __builtin_prefetch(first + 2, 1);
    return first;
  }
  /// The slot in the line at `first` that may belong to `id`; the caller checks. Selected without a
  /// branch, because it is unpredictable, and a misprediction would discard the speculative start
  /// of the next decisions.
  [[nodiscard]] static Slot& guess(Slot* first, const SlotId& id) noexcept {
    return first[std::size_t{first[1].identity.low() == id.low()}];
  }
  [[nodiscard]] Slot& guess(const SlotId& id) const noexcept {
    return guess(slots() + home(id.hash, 0), id);
  }

  /// The result of a look-up: the key's slot, or none, and whether a slot was empty.
  struct Place {
    Slot* slot = nullptr;
    bool room = false;
  };
  [[nodiscard]] Place find(const SlotId& id) const noexcept;

  /// The key's slot, claimed with an absent state if the key had none. None if no slot is empty.
  [[nodiscard]] Slot* find_or_claim(const SlotId& id, IdleTick idle_at) noexcept;

  /// A slot with a new owner, and the block of the last owner's state, which must be freed.
  struct Taken {
    Slot* slot = nullptr;
    BlockId block = 0;
  };
  /// Assigns a slot with an expired state at `now` to a key without one, with the state `initial`.
  /// None if every slot is in use. REQUIRES: find() saw no room, and no other thread runs
  /// take_over() for this key.
  [[nodiscard]] Taken take_over(const SlotId& id, const StateWords& initial, IdleTick idle_at,
                                std::int64_t now) noexcept;

  /// Changes the kind of a key's own slot, with an absent state. None if its state is not expired
  /// at `now`, or is in use by another thread.
  [[nodiscard]] Taken change_kind(Slot& slot, const SlotId& id, IdleTick idle_at,
                                  std::int64_t now) noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return slots_; }
  [[nodiscard]] Slot& slot(std::size_t index) const noexcept { return slots()[index]; }
  [[nodiscard]] std::size_t index_of(const Slot& slot) const noexcept {
    return static_cast<std::size_t>(&slot - slots());
  }
  /// Takes the block of a slot's expired state at `now`; the state is absent then.
  [[nodiscard]] BlockId take_block(std::size_t slot, std::int64_t now) noexcept;

  /// True if take_over() would find a slot now.
  [[nodiscard]] bool has_idle(const SlotId& id, std::int64_t now) const noexcept;

  /// The lines of a look-up: `runs` runs of `run_lines` neighbouring lines.
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
      used_.fetch_add(1, std::memory_order_relaxed);  // statistics
      found = &slot;
      return true;
    }
    if (id.matches(seen.low, seen.high)) found = &slot;
    return found != nullptr;
  });
  return found;
}

}  // namespace sluice::memory
