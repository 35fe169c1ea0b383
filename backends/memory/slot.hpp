// Slot: the owner of a state, its expiry, and the state. 32 bytes, two to a cache line. Any thread
// may use any member, except where noted.
#pragma once

#include "backends/memory/cell.hpp"

namespace sluice::memory {

/// Quarters of a second since the store was made; the last value means "never".
using IdleTick = std::uint32_t;
inline constexpr Word tick_us = 250'000;
inline constexpr IdleTick never = 0xffff'ffff;

/// The identity of a key in the table: the hash of its name, of which 88 bits are compared, and the
/// kind of its state. The hash is keyed, so that collisions cannot be chosen.
struct SlotId {
  std::array<std::uint64_t, 2> hash{};
  StateKind kind{};

  [[nodiscard]] std::uint64_t low() const noexcept { return hash[0]; }
  /// The high word of the identity: 24 bits of hash, 8 of kind, 32 of idle-at. Never 0, which
  /// means an empty slot, since no kind is 0.
  [[nodiscard]] std::uint64_t high(IdleTick idle_at) const noexcept {
    return hash[1] >> 40 << 40 | std::uint64_t{static_cast<std::uint8_t>(kind)} << 32 | idle_at;
  }
  /// The same key and kind.
  [[nodiscard]] bool owns(const Pair& identity) const noexcept {
    return ((identity.low ^ low()) | (identity.high ^ high(0)) >> 32) == 0;
  }
  /// The same key; its kind may differ.
  [[nodiscard]] bool matches(std::uint64_t low_word, std::uint64_t high_word) const noexcept {
    return low_word == hash[0] && high_word != 0 && (high_word ^ hash[1]) >> 40 == 0;
  }
};

/// The slot of one key in the table.
struct alignas(32) Slot {
  Cell identity;
  Cell state;

  [[nodiscard]] static IdleTick idle_at(std::uint64_t identity_high) noexcept {
    return static_cast<IdleTick>(identity_high);
  }
  [[nodiscard]] static StateKind kind(std::uint64_t identity_high) noexcept {
    return static_cast<StateKind>(identity_high >> 32 & 0xff);
  }

  /// A consistent snapshot of the state and the identity of its owner.
  ///
  /// The loads are state high, state low, identity, and the state's high word and generation again.
  /// The generation is the same at both ends, so that the owner was the same all the time, and the
  /// identity in between is its own (22 bits of generation cannot wrap within three loads). The
  /// high word is the same at both ends. It contains the stamp, which within one generation only
  /// moves forward, or back to a time that the clock shows after it was set back, and stays while
  /// the state is locked. So it did not change in between, and together with the low word is a
  /// state that the cell has had.
  struct Snapshot {
    Pair identity;
    Pair state;
  };
  [[nodiscard]] bool try_snapshot(Snapshot& seen) const noexcept {
    seen = glance();
    return confirms(seen);
  }
  /// The first four loads of a snapshot, and whether the others agree.
  [[nodiscard]] Snapshot glance() const noexcept {
    Snapshot seen;
    seen.state.high = state.high();
    seen.state.low = state.low();
    seen.identity.high = identity.high();
    seen.identity.low = identity.low();
    return seen;
  }
  [[nodiscard]] bool confirms(const Snapshot& seen) const noexcept {
    const Pair again{state.low(), state.high()};
    return again.high == seen.state.high &&
           ((again.low ^ seen.state.low) & state::generation_mask) == 0;
  }
  [[nodiscard]] Snapshot snapshot() const noexcept {
    Snapshot seen;
    while (!try_snapshot(seen)) {
    }
    return seen;
  }

  /// Marks the slot of `id` as in use until `until`. Call it before the exchange of the state that
  /// requires it, so that a thread that sees that state sees this, too.
  void keep_until(const SlotId& id, IdleTick until) noexcept {
    if (idle_at(identity.high()) < until) [[unlikely]] {
      put_off(id.high(0), until);
    }
  }

 private:
  /// `owner` is SlotId::high(0).
  [[gnu::noinline, gnu::cold]] void put_off(std::uint64_t owner, IdleTick until) noexcept {
    std::uint64_t seen = identity.high();
    while (idle_at(seen) < until && (seen ^ owner) >> 32 == 0) {
      if (identity.exchange_high(seen, owner | until)) return;
    }
  }
};
static_assert(sizeof(Slot) == 32, "two slots to a cache line");

}  // namespace sluice::memory
