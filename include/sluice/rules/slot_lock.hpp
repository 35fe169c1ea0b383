// Slot lock: a minimum interval between calls, across the whole fleet.
//
// Slots are at least `interval` apart. A request reserves the earliest free slot, now or later, and
// returns the wait for it, so that callers need not poll.
//
//     slot    = max(next, now)
//     wait    = slot - now
//     allowed iff wait <= max_wait;   then next = slot + interval     (a refusal writes nothing)
//
// This is the virtual scheduling form of GCRA (ITU-T I.371) without a burst: grants are in order of
// arrival at the store, and no slot stays unused while a caller waits.
#pragma once

#include "sluice/extend/operation.hpp"

namespace sluice {

/// The shapes and bounds of the rule. Users call the class SlotLock
/// (sluice/limiters/slot_lock.hpp).
struct SlotLockRule {
  /// Absent: the slot that begins now is free.
  struct State {
    Word next = 0;   ///< microseconds since the epoch: the earliest start of the next slot
    Word stamp = 0;  ///< when that was written; never after `next`
  };

  /// Arguments of slot_lock.acquire, which reserves, and of slot_lock.peek, which decides the same
  /// and changes nothing. Worked example, interval 1 s, max_wait 2 s, all requests at 0: granted
  /// with a wait of 0, 1 s and 2 s, then refused with retry_after 1 s; at 1 s granted with a wait
  /// of 2 s.
  struct Args {
    Word limit;     ///< always 1
    Word interval;  ///< microseconds, 1 to max_interval
    Word max_wait;  ///< microseconds, 0 to max_horizon: how far ahead the slot may be
  };

  /// Arguments of slot_lock.cancel, which removes the slot as if it had never been reserved, if it
  /// was the last one reserved and the next one has not begun, and refuses otherwise.
  struct CancelArgs {
    Word limit;     ///< always 1
    Word interval;  ///< of the reservation
    Word slot;      ///< when the slot begins: `at + retry_after` of the grant
  };

  /// Arguments of slot_lock.block: no slot that is not reserved yet begins before `now + span`; a
  /// later `next` stays. Always allowed; reset_after is the time until `next`.
  ///
  ///     next = now + span     if no slot is reserved beyond it
  ///          = next + 1       else: the reserved slot is no longer the last, so that cancelling it
  ///                           cannot undo the block
  ///
  /// A `next` further ahead than a caller with this interval can have reserved is not changed.
  struct BlockArgs {
    Word limit;     ///< always 1
    Word interval;  ///< as in Args
    Word span;      ///< microseconds, 0 to max_block; 0 changes nothing
  };

  static constexpr Word max_interval = 365 * Word{86'400'000'000};
  static constexpr Word max_block = max_interval;
  static constexpr Word max_horizon = 86'400'000'000;

  /// How far the stamp may be ahead of the clock. Up to this, the clock was corrected, and the
  /// slots keep their times: waits are longer by the correction. Beyond it, the clock was set back:
  /// reservations then count from `now` as they did from `stamp`, and the request is admitted even
  /// if its slot is further ahead than max_wait, with a wait of max_wait. A refusal could not
  /// record the new time, and would lock the key for the length of the step.
  static constexpr Word max_ahead = 60'000'000;
};

/// Rows of the table of operations.
extern const Operation slot_lock_acquire;
extern const Operation slot_lock_peek;
extern const Operation slot_lock_cancel;
extern const Operation slot_lock_reset;
extern const Operation slot_lock_block;

}  // namespace sluice
