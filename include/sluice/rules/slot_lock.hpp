// Slot lock: a minimum interval between calls, over the whole fleet.
//
// Slots lie at least `interval` apart. A request gets the earliest slot that is still free, now or
// ahead of now, and says how long it would wait for it. Asking reserves: nobody polls.
//
//     slot    = max(next, now)
//     wait    = slot - now
//     allowed iff wait <= max_wait;   then next = slot + interval     (a refusal writes nothing)
//
// This is the virtual scheduling form of GCRA (ITU-T I.371) without a burst: grants are in order
// of arrival at the store, and no slot is left idle while somebody waits.
#pragma once

#include "sluice/extend/operation.hpp"

namespace sluice {

/// The rule's shapes and bounds. Use the class SlotLock (sluice/limiters/slot_lock.hpp) to limit.
struct SlotLockRule {
  /// Absent means that a slot is free.
  struct State {
    Word next = 0;   ///< microseconds since the epoch: no slot may begin before it
    Word stamp = 0;  ///< when that was written; never after `next`
  };

  /// Of slot_lock.acquire, which reserves, and slot_lock.peek, which answers the same and changes
  /// nothing. Worked example, interval 1 s, max_wait 2 s, all asked at 0: granted with a wait of
  /// 0, 1 s and 2 s, then refused with retry_after 1 s; at 1 s granted with a wait of 2 s.
  struct Args {
    Word limit;     ///< always 1
    Word interval;  ///< microseconds, 1 to max_interval
    Word max_wait;  ///< microseconds, 0 to max_horizon: how far ahead the slot may lie
  };

  /// Of slot_lock.cancel: gives the slot back if it was the last one reserved and the next one has
  /// not begun, else refuses. As if it had never been reserved.
  struct CancelArgs {
    Word limit;     ///< always 1
    Word interval;  ///< of the reservation
    Word slot;      ///< when the slot begins: `at + retry_after` of the grant
  };

  /// Of slot_lock.block, which closes the key: no slot that is not granted yet begins before
  /// `now + span`; a later `next` stands. Always allowed; reset_after says how long until `next`.
  ///
  ///     next = now + span     if no slot is taken beyond it
  ///          = next + 1       else: what is reserved is the last no more, so that giving it back
  ///                           cannot open what was closed
  ///
  /// A `next` further off than a caller with this interval can have reserved is left as it is.
  struct BlockArgs {
    Word limit;     ///< always 1
    Word interval;  ///< as in Args
    Word span;      ///< microseconds, 0 to max_block; 0 changes nothing
  };

  static constexpr Word max_interval = 365 * Word{86'400'000'000};
  static constexpr Word max_block = max_interval;
  static constexpr Word max_horizon = 86'400'000'000;

  /// How far the stamp may lie ahead of the clock. Up to this far the clock was corrected, and the
  /// slots stay where they are: waits are longer by the step. Beyond it the clock was set back:
  /// what is reserved counts from `now` as it did from `stamp`, and the request is admitted even
  /// if its slot lies further off than max_wait, after max_wait. A rule that only refused could not
  /// note the new time, and would lock the key for the length of the step.
  static constexpr Word max_ahead = 60'000'000;
};

/// Rows of the table of operations.
extern const Operation slot_lock_acquire;
extern const Operation slot_lock_peek;
extern const Operation slot_lock_cancel;
extern const Operation slot_lock_reset;
extern const Operation slot_lock_block;

}  // namespace sluice
