// Token bucket, the full form: interval refill, initial tokens, reservations, partial grants and
// refunds. It uses the state of the plain form, so that both may share a key.
//
// The position of a bucket is P = level + refill * stamp: draining leaves it unchanged, a charge
// raises it. A request that must wait is a reservation, in order of arrival. It is written as a
// stamp ahead of the clock, the instant at which it is covered, so that a stamp is the time of the
// last grant. A debt (Change::charge) is a level beyond the limit:
//
//     at      = floor(now to a multiple of interval)          interval 1: continuous refill
//               the stamp, if that is later; requests wait for a reserved one, also with cost 0
//     level'  = max(0, level - (at - stamp) * refill)
//     over    = level' + cost * period - limit
//     wait    = 0 if over <= 0, else ceil(at + over / refill, to a multiple of interval) - now
//     allowed  iff  wait <= max_wait
//
// So every request after a reservation or a block, of the same or another limiter, is scheduled
// behind it. In any interval of t microseconds at most capacity + (t + interval) * refill / period
// units have their time, not counting refunded units. (Times are whole: a reservation may be up to
// 1 us late, so that two may be that much closer.)
#pragma once

#include "sluice/rules/token_bucket.hpp"

namespace sluice {

/// The rule, as pure functions. Users call the class TokenBucket
/// (sluice/limiters/token_bucket.hpp).
struct TokenBucketReserve {
  using State = TokenBucketRule::State;

  /// The arguments that all calls of one limiter share.
  struct Shape {
    Word capacity;  ///< tokens
    Word refill;    ///< units that drain a microsecond
    Word period;    ///< units a token
    Word interval;  ///< microseconds, 1 to max_interval: refills are at its multiples
    /// The instant at which a bucket without state is full: it determines the initial tokens.
    Word full_at;
    /// Microseconds, 0 to max_longest: the longest reservation, debt or block, and how far the
    /// clock may be set back. A stamp further ahead than both, or than the latter if it is not
    /// closed, is given up: one request is admitted whatever the level, and time restarts at it.
    Word longest;
  };

  /// The arguments of one call. REQUIRES for a call that can be admitted: 0 <= min_cost <= cost <=
  /// capacity, 0 <= max_wait <= longest.
  struct Ask {
    Word max_wait;  ///< microseconds
    Word min_cost;  ///< tokens: with less available, the call is refused
    Word cost;      ///< tokens: the most to take
  };

  /// The changes of token_bucket.adjust.
  enum class Change : Word {
    reset = 0,   ///< fills the bucket
    reward = 1,  ///< adds `amount` tokens, up to a full bucket
    charge = 2,  ///< removes `amount` tokens, whatever is available, up to the longest debt
    block = 3,   ///< the next token is available in `amount` microseconds or later
  };

  static constexpr Word max_interval = Word{1} << 45;  ///< 407 days
  static constexpr Word max_longest = 3'600'000'000;   ///< an hour; use a gate for a longer block
};

/// Rows of the table of operations. The first six arguments are a Shape.
///
/// Further arguments: max_wait, cost. Output: the tokens granted, and the bucket before the grant:
/// the word State::spent, and its time.
extern const Operation token_bucket_reserve;
/// Further arguments: min_cost, cost. Output as above.
extern const Operation token_bucket_reserve_some;
/// Further arguments: max_wait, cost. The verdict of reserve, with what remains now; changes
/// nothing. Output as above.
extern const Operation token_bucket_peek_reserve;
/// Further arguments: change, amount. Output: the tokens charged, if the change is a charge.
extern const Operation token_bucket_adjust;
/// Arguments: capacity, refill, period, interval, the tokens granted, the tokens to refund, and the
/// grant's output words about the bucket before it. Output: tokens refunded (rounded down); 1 if
/// the grant was the last one ahead; the time at which the rest of it is covered. The refund is
/// - if the grant is ahead and its state is the present one (nothing was charged since, or all
///   later grants were refunded, the last first): `amount`. The state before the grant is restored
///   and charged with the rest, as if no more had ever been requested. A rest that is covered by
///   now is spent now;
/// - else, if no grant is ahead: `amount`, as far as `cost` had not drained at the stamp, the time
///   of the last charge, had it begun to at its own time; or as far as the level at its own time
///   had not, if that is less, because this time was rounded up to an interval. That is less than
///   what is left only if others were charged later;
/// - else nothing: later reservations keep their times. Nothing either if the stamp is before the
///   grant's time, because a reward, a reset or a clock set far back has moved it.
///
/// Why the second keeps the bound: with the grants of times in [s, T], less what was refunded,
/// C(s), the level at the stamp T is at least C(s) - (T - s) * refill for every s, except that for
/// the time s of a grant ahead it may be less by d < interval * refill: by how much `cost` is more
/// than the level at s. With x units less at the time g, this falls by x for s <= g. For s > g the
/// level was at least cost - d - (s - g) * refill above that, and so it can fall by
/// cost - d - (T - g) * refill. Not by d more: the bound has one interval to spare, and a grant at
/// once needs it, which may be made almost an interval after the refill that is its s.
///
/// An earlier reservation stays, with the tokens at its stamp.
extern const Operation token_bucket_refund;
/// The same arguments and output, but in the second case all of `amount` is refunded, at most what
/// is spent. In any interval at most capacity + (t + interval) * refill / period units have their
/// time, and what is refunded later of grants from before the interval: a refund of a grant at s,
/// made at r, lowers the level at r, so that of an interval which begins between s and r the level
/// falls by units that were not charged in it. Refunds of its own grants cancel their charges.
extern const Operation token_bucket_refund_in_full;

}  // namespace sluice
