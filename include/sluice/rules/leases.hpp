// Leases: a concurrency limit whose leases expire, so that what a dead holder held is freed.
//
// A lease is an id of 128 bits, a weight, an expiry and a fencing token. Leases that have not
// expired are live. A request gets a lease if the weights of all live leases and its own fit the
// limit:
//
//     live     =  the leases with expiry > now
//     granted  iff  sum of weight over live + weight <= limit
//     then     expiry = now + ttl,  fence = max(last fence + 1, now)
//
// The leases are a list in order of expiry: expired leases are removed from its head, and a walk
// from there finds the instant at which enough will have expired. With one ttl a key every call is
// O(1), amortised; a lease that expires before others is inserted from the tail. A block is a lease
// without a holder, as heavy as all limits. Slots are numbered from 1 and reused; a slot number and
// the id find a lease without a search.
#pragma once

#include "sluice/extend/operation.hpp"

namespace sluice {

/// The rules, as pure functions. Users call ConcurrencyLimiter or FleetShedder.
struct LeasesRule {
  /// Words 0 to 10 of the state. An absent state has no leases.
  struct Head {
    Word used = 0;      ///< weight of all leases in the list, also of expired ones
    Word stamp = 0;     ///< the time of the latest change, in the state's time
    Word ahead = 0;     ///< the state's time minus the clock, since that was set far back
    Word fence = 0;     ///< the last fencing token
    Word slots = 0;     ///< the highest slot in use since the list was last empty
    Word first = 0;     ///< the slot that expires first; 0: the list is empty
    Word tail = 0;      ///< the slot that expires last
    Word free = 0;      ///< the first free slot; 0: only a new one
    Word under = 0;     ///< the free slot after it; 0: none; `unread`: read its own link
    Word earliest = 0;  ///< no lease expires before it
    Word latest = 0;    ///< no lease expires after it
  };

  /// The words of a slot, from slot_at() on. `next` is the next lease in order of expiry, or in a
  /// free slot the next free one; the tail's `next` and the head's `prev` are undefined.
  enum Field : Word { weight, next, expiry, prev, id, fence = id + 3, record_words };

  static constexpr Word head_words = 11;
  [[nodiscard]] static constexpr Word slot_at(Word slot) noexcept {
    return head_words + (slot - 1) * record_words;
  }

  struct AcquireArgs {
    Word limit;
    Word weight;  ///< 1 to limit
    Word ttl;     ///< us, min_ttl to max_ttl
    Word tier;    ///< becomes Decision::part, 0 to max_tier
    Word seek;    ///< 1: a live lease with this id is returned; 0: the id is new
    Word id[3];   ///< 52, 52 and 24 bits
  };
  struct ReleaseArgs {
    Word limit;
    Word slot;  ///< the slot in the grant's output; 0: search for the id
    Word id[3];
  };
  struct RenewArgs {
    Word limit;
    Word ttl;
    Word slot;
    Word id[3];
  };
  struct PeekArgs {
    Word limit;
    Word weight;
    Word tier;
  };

  struct BlockArgs {
    Word limit;  ///< 1 to block_weight
    Word span;   ///< microseconds, 0 to max_block; 0 changes nothing
  };

  static constexpr Word max_block = 365 * Word{86'400'000'000};
  /// The weight of a block's lease. No limit up to this has room beside it, and an expired block
  /// that is still in the list leaves room for another.
  static constexpr Word block_weight = word_limit / 4;
  /// The id of a block's lease, which no holder can have.
  static constexpr Word block_id[3] = {0, 0, Word{1} << 24};
  /// The most leases of one key, which bounds the search and the state: 256 KiB. Larger fleets use
  /// weights, or several keys.
  static constexpr Word max_holders = 4096;
  static constexpr Word max_tier = 15;
  static constexpr Word min_ttl = 1'000;
  static constexpr Word max_ttl = Word{1} << 40;
  static constexpr Word unread = max_holders + 1;
  /// The most expired leases that one grant removes from the list; all of them count as free at
  /// once.
  static constexpr Word max_reclaimed = 16;

  /// If the clock is set back by up to this, leases live on until it has caught up. Beyond it,
  /// their time continues from where it was, and the first request is granted whatever is held: how
  /// many leases have expired is unknown, and a refusal cannot change the state. That admits at
  /// most this request beyond the limit, and no key is locked out.
  static constexpr Word max_ahead = 60'000'000;

  /// Grants a lease. With `seek`, if the id is live, returns its lease and changes nothing. Output:
  /// tier, slot, fence, and the expiry by the clock; the last three are zero when it refuses.
  /// Worked example, limit 2 and ttl 60 s, granted at 0 s and 10 s: at 20 s refused with
  /// retry_after 40 s, at 60 s granted with remaining 0.
  static Verdict acquire(const StateView& state, const RuleRequest& request, Word now,
                         Effects& effects) noexcept;
  /// Releases a live lease; changes nothing if it is not live. Always allowed. Output: 1 if it was
  /// live, else 0. reset_after is an upper bound.
  static Verdict release(const StateView& state, const RuleRequest& request, Word now,
                         Effects& effects) noexcept;
  /// Extends a live lease to now + ttl, never to an earlier time than before. Refuses, without a
  /// time to wait for, if it is not live. Output: its fence and expiry.
  static Verdict renew(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept;
  /// The verdict of acquire() for a new id; changes nothing. Output: the tier.
  static Verdict peek(const StateView& state, const RuleRequest& request, Word now,
                      Effects& effects) noexcept;
  /// Grants nothing until `span` from now, unless an earlier block ends later; held leases stay.
  /// Refuses, without a time to wait for, while max_holders leases leave no room for it.
  static Verdict block(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept;
  /// Removes all leases; their holders lose them. Fencing tokens continue to rise.
  static Verdict reset(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept;
};

/// Rows of the table of operations.
extern const Operation leases_acquire;
extern const Operation leases_release;
extern const Operation leases_renew;
extern const Operation leases_peek;
extern const Operation leases_reset;
extern const Operation leases_block;

}  // namespace sluice
