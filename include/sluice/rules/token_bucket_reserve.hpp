// Token bucket, the full form: refill in lumps, a first level, grants ahead of time, taking what is
// there, and giving back. The same state as the plain form, so that both may use one key.
//
// A bucket's position is P = level + refill * stamp: draining leaves it alone, a charge raises it.
// What is spent beyond the limit is written as a stamp that lies ahead: the instant at which the
// last grant is covered. A request that must wait is a reservation, in order of arrival:
//
//     at      = floor(now to a multiple of interval)          interval 1: tokens come steadily
//               the stamp, if that is later; a promised one is waited for, by a cost of 0 as well
//     level'  = max(0, level - (at - stamp) * refill)
//     over    = level' + cost * period - limit
//     wait    = 0 if over <= 0, else ceil(at + over / refill, to a multiple of interval) - now
//     allowed  iff  wait <= max_wait
//
// So whoever comes after a grant ahead or a block, of the same or another limiter, comes behind it.
// In any interval of t microseconds at most capacity + (t + interval) * refill / period units have
// their time, not counting what is given back. (Times are whole: a grant ahead may be up to 1 us
// late, so that two may be that much closer.)
#pragma once

#include "sluice/rules/token_bucket.hpp"

namespace sluice {

/// The rule. Pure functions; use the class TokenBucket (sluice/limiters/token_bucket.hpp) to limit.
struct TokenBucketReserve {
  using State = TokenBucketRule::State;

  /// What all calls of one limiter have in common.
  struct Shape {
    Word capacity;  ///< tokens
    Word refill;    ///< units that drain a microsecond
    Word period;    ///< units a token
    Word interval;  ///< microseconds, 1 to max_interval: tokens come at its multiples
    /// Until this instant a bucket of which nothing is known is still filling up: a first level.
    Word full_at;
    /// How far ahead a stamp may lie, in microseconds, 0 to max_longest: the longest reservation,
    /// debt or block. Beyond it (the clock was set back) the stamp is given up: one request is
    /// admitted whatever the level, and time restarts at it.
    Word longest;
  };

  /// What one call asks. REQUIRES of a call that can be admitted: 0 <= min_cost <= cost <=
  /// capacity, 0 <= max_wait <= longest.
  struct Ask {
    Word max_wait;  ///< microseconds
    Word min_cost;  ///< tokens: with less than this, nothing is taken
    Word cost;      ///< tokens: as many of them as there are
  };

  /// What set() does.
  enum class Change : Word {
    reset = 0,   ///< full again
    reward = 1,  ///< gives `amount` tokens, up to a full bucket
    charge = 2,  ///< takes `amount` tokens, whatever is there, up to the longest debt
    block = 3,   ///< the next token comes in `amount` microseconds, if not later already
  };

  static constexpr Word max_interval = Word{1} << 45;  ///< 407 days
  static constexpr Word max_longest = 3'600'000'000;   ///< an hour; to close for longer, use a gate
};

/// Rows of the table of operations. Arguments: a Shape in six words, then those named.
/// max_wait, cost. Output: what was granted, and the bucket before it: what was spent of it, as the
/// word of a state, and the instant of that.
extern const Operation token_bucket_reserve;
/// min_cost, cost. Details as above.
extern const Operation token_bucket_reserve_some;
/// max_wait, cost: what spend would answer, with what remains now. Details as above.
extern const Operation token_bucket_peek_reserve;
/// change, amount.
extern const Operation token_bucket_adjust;
/// capacity, refill, period, interval, then the cost of a grant, how much of it to give back, and
/// what the grant told of the bucket before it. Output: tokens given back (rounded down); 1 if
/// nothing was charged since; the instant at which what is left of the grant is covered. How much
/// is given back:
/// - if nothing was charged since, or all that was has been given back, the last first: `amount`,
///   as far as it has not drained. What the grant found is put back, and charged with what is left
///   of it: things are as if no more had ever been asked for, whether the tokens come steadily or
///   in lumps. If the clock was set back since, time stands still at the instant of the grant;
/// - else, if no grant's time lies ahead: `amount`, as far as `cost` would not have drained if it
///   had begun to at its own time, which is never more than what is left of it;
/// - else nothing: those who wait behind it keep their times. Nothing either if more is spent than
///   this capacity allows.
/// A promise that lay ahead of it stays, with the tokens at its stamp.
extern const Operation token_bucket_refund;

}  // namespace sluice
