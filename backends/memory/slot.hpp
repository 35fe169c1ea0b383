// A slot: who owns it, until when its state means something, and that state. 32 bytes, two to a
// cache line. Any thread may use any member, but for those that say otherwise.
#pragma once

#include "backends/memory/cell.hpp"

namespace sluice::memory {

/// Quarters of a second since the store was made; the last one means "never".
using IdleTick = std::uint32_t;
inline constexpr Word tick_us = 250'000;
inline constexpr IdleTick never = 0xffff'ffff;

/// What a key is to the table: the hash of its name, of which 88 bits are compared, and what kind
/// of state it holds. The hash is keyed, so that nobody can choose two keys that meet.
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

/// One key's place in the table.
struct alignas(32) Slot {
  Cell identity;
  Cell state;

  [[nodiscard]] static IdleTick idle_at(std::uint64_t identity_high) noexcept {
    return static_cast<IdleTick>(identity_high);
  }
  [[nodiscard]] static StateKind kind(std::uint64_t identity_high) noexcept {
    return static_cast<StateKind>(identity_high >> 32 & 0xff);
  }

  /// The state and the identity that it belongs to, as they were at one instant.
  ///
  /// The loads are state high, state low, identity, and the state's high word and generation
  /// again. The generation is the same at both ends, so the owner was one and the same all the
  /// time, and the identity in between is its own (22 bits of generation cannot come round within
  /// three loads). The high word is the same at both ends; it holds the stamp, which within one
  /// generation only moves on, or back to a time that the clock shows after it was set back, and
  /// stays while the state is locked; so it did not change in between, and together with the low
  /// word is a state that the cell really had.
  struct Snapshot {
    Pair identity;
    Pair state;
  };
  [[nodiscard]] bool try_snapshot(Snapshot& seen) const noexcept {
    seen.state.high = state.high();
    seen.state.low = state.low();
    seen.identity.high = identity.high();
    seen.identity.low = identity.low();
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

  /// Makes sure that the slot of `id` counts as in use until `until`. Call it before the exchange
  /// of the state that makes it necessary: whoever sees that state then sees this.
  void keep_until(const SlotId& id, IdleTick until) noexcept {
    if (idle_at(identity.high()) < until) [[unlikely]] {
      put_off(id, until);
    }
  }

 private:
  [[gnu::noinline, gnu::cold]] void put_off(SlotId id, IdleTick until) noexcept {
    std::uint64_t seen = identity.high();
    while (idle_at(seen) < until && (seen ^ id.high(0)) >> 32 == 0) {
      if (identity.exchange_high(seen, id.high(until))) return;
    }
  }
};
static_assert(sizeof(Slot) == 32, "two slots to a cache line");

}  // namespace sluice::memory
