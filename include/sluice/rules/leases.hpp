// Leases: at most so much at once, and what a dead holder held comes back by itself.
//
// A lease is an id of 128 bits, a weight, an instant at which it expires and a fencing number.
// Those that have not expired are live. A request gets a lease if the weights of all live leases
// and its own fit the limit:
//
//     live     =  the leases with expiry > now
//     granted  iff  sum of weight over live + weight <= limit
//     then     expiry = now + ttl,  fence = max(last fence + 1, now)
//
// The leases stand in a list in order of expiry, so that what has lapsed is taken off its head, and
// the instant at which enough will have lapsed is found by walking on from there. With one ttl for
// a key every call is O(1), amortised; a lease that expires before others is sorted in from the
// tail. A block is a lease that nobody holds, as heavy as all limits. Places are counted from 1 and
// used again; a place and the id find a lease without a search.
#pragma once

#include "sluice/extend/operation.hpp"

namespace sluice {

/// The rules. Pure functions; use ConcurrencyLimiter or FleetShedder to limit.
struct LeasesRule {
  /// Words 0 to 10 of the state. Absent means that nothing is held.
  struct Head {
    Word used = 0;      ///< weight of all leases in the list, also of those that have lapsed
    Word stamp = 0;     ///< the latest instant of a change, in the state's time
    Word ahead = 0;     ///< what the state's time is ahead of the clock since that was set far back
    Word fence = 0;     ///< the last fencing number
    Word slots = 0;     ///< how many places were ever in use since none was
    Word first = 0;     ///< the place that expires first; 0: none is in use
    Word tail = 0;      ///< the place that expires last
    Word free = 0;      ///< a place that is free for use; 0: none but the next new one
    Word under = 0;     ///< the free place after it, 0 if none, `unread` if its own link must tell
    Word earliest = 0;  ///< no lease expires before it
    Word latest = 0;    ///< no lease expires after it
  };

  /// The words of a place, from slot_at() on. `next` is the next lease in order of expiry, and of a
  /// free place the next free one; the tail's `next` and the first's `prev` mean nothing.
  enum Field : Word { weight, next, expiry, prev, id, fence = id + 3, record_words };

  static constexpr Word head_words = 11;
  [[nodiscard]] static constexpr Word slot_at(Word slot) noexcept {
    return head_words + (slot - 1) * record_words;
  }

  struct AcquireArgs {
    Word limit;
    Word weight;  ///< 1 to limit
    Word ttl;     ///< us, min_ttl to max_ttl
    Word tier;    ///< what Decision::part shall say, 0 to max_tier
    Word seek;    ///< 1: a live lease with this id is the answer; 0: the id was drawn just now
    Word id[3];   ///< 52, 52 and 24 bits
  };
  struct ReleaseArgs {
    Word limit;
    Word slot;  ///< the place that the grant told; 0: search
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
  /// Of the lease that a block is. Beside it no limit up to this has room; and as much is left for
  /// a block that has lapsed and is in the list yet.
  static constexpr Word block_weight = word_limit / 4;
  /// What no holder's id can be.
  static constexpr Word block_id[3] = {0, 0, Word{1} << 24};
  /// The most leases of one key, and so the longest search and the longest state: 256 KiB. Larger
  /// fleets give weights, or spread over keys.
  static constexpr Word max_holders = 4096;
  static constexpr Word max_tier = 15;
  static constexpr Word min_ttl = 1'000;
  static constexpr Word max_ttl = Word{1} << 40;
  static constexpr Word unread = max_holders + 1;
  /// Lapsed leases that one grant takes off the list; all are counted as free at once.
  static constexpr Word max_reclaimed = 16;

  /// Up to this far the clock may be set back, and leases live on until it has caught up. Beyond it
  /// their time goes on from where it stood, and the first request is granted whatever is held:
  /// how many have lapsed meanwhile cannot be known, and a refusal could not be remembered. That
  /// admits at most this request beyond the limit, and locks nobody out.
  static constexpr Word max_ahead = 60'000'000;

  /// Grants a lease. With `seek`, if the id is live already, answers with that lease as it is, and
  /// changes nothing. Tells tier, slot, fence, and the expiry by the clock; zeros for the last
  /// three when it refuses. Worked example, limit 2 and ttl 60 s, granted at 0 s and 10 s: at 20 s
  /// refused with retry_after 40 s, at 60 s granted with remaining 0.
  static Verdict acquire(const StateView& state, const RuleRequest& request, Word now,
                         Effects& effects) noexcept;
  /// Gives a live lease back. Tells 1 if it was live, else 0; then nothing changes. Always allows.
  /// reset_after is an upper bound.
  static Verdict release(const StateView& state, const RuleRequest& request, Word now,
                         Effects& effects) noexcept;
  /// Lets a live lease expire at now + ttl, never earlier than before. Tells its fence and expiry.
  /// Refuses, with no time to wait for, if it is not live.
  static Verdict renew(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept;
  /// What acquire() would answer to a new id. Tells the tier.
  static Verdict peek(const StateView& state, const RuleRequest& request, Word now,
                      Effects& effects) noexcept;
  /// Grants nothing until `span` from now; a later block stands, and so do all leases. Refuses,
  /// with no time to wait for, while max_holders leases leave no place for it.
  static Verdict block(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept;
  /// Forgets all leases; their holders lose them. Fences go on rising.
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
