// Token bucket, the full form: interval refill, initial tokens, reservations, partial grants and
// refunds. It uses the state of the plain form, so that both may share a key.
//
// The position of a bucket is P = level + refill * stamp: draining leaves it unchanged, a charge
// raises it. Units spent beyond the limit are written as a stamp ahead of the clock: the instant at
// which the last grant is covered. A request that must wait is a reservation, in order of arrival:
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
    /// How far ahead a stamp may be, in microseconds, 0 to max_longest: the longest reservation,
    /// debt or block. A stamp further ahead means that the clock was set back: one request is then
    /// admitted whatever the level, and time restarts at it.
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
/// Further arguments: change, amount.
extern const Operation token_bucket_adjust;
/// Arguments: capacity, refill, period, interval, the tokens granted, the tokens to refund, and the
/// grant's output words about the bucket before it. Output: tokens refunded (rounded down); 1 if
/// nothing was charged since; the time at which the rest of the grant is covered. The refund is
/// - if nothing was charged since, or all later charges were refunded, the last first: `amount`, as
///   far as it has not drained. The state before the grant is restored and charged with the rest,
///   as if no more had ever been requested, with continuous and with interval refill. If the clock
///   was set back since, time stays at the grant;
/// - else, if no grant is ahead: `amount`, as far as `cost` would not have drained if it had begun
///   to at its own time, which is never more than what is left of it;
/// - else nothing: later reservations keep their times. Nothing either if more is spent than this
///   capacity allows.
///
/// An earlier reservation stays, with the tokens at its stamp.
extern const Operation token_bucket_refund;

}  // namespace sluice
