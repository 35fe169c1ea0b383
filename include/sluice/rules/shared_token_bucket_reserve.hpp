// Shared token bucket: reservations, refunds and adjustments, on the state of
// sluice/rules/shared_token_bucket.hpp.
//
// A reservation or a block is a stamp ahead of the clock: the time of the last grant, or the end of
// the block. No whole token is left at it, and a new quota begins there:
//
//     at      = max(now, stamp)                             level' at that time
//     over    = level' + cost * period - capacity * period
//     wait    = 0 if over <= 0, else at - now + ceil(over / refill)
//               a cost of 0 waits for `at`, if no whole token is left at it
//     allowed  iff  wait <= max_wait
//
// A reward takes units off as of the clock, up to all that is spent, and brings the stamp nearer. A
// debt beyond the capacity, which a smaller quota has left, keeps its stamp, and so does a bucket
// that waits for a clock that was set back:
//
//     rewarded = min(units, level' + (at - now) * refill)
//     stamp''  = at, level'' = level' - rewarded                  if that is at least the limit
//     else the level at `now` is level' + (at - now) * refill - rewarded, and what exceeds the
//     limit puts the stamp ahead again
//
// So no stamp lies farther ahead than `longest`, and none is mistaken for one of a clock set back.
//
// Counted by their times, grants keep the bound of SharedTokenBucketRule with the quotas in force
// from the decision on the first of them, except for refunded units. (Times are whole: a
// reservation may be up to 1 us late.)
#pragma once

#include "sluice/rules/shared_token_bucket.hpp"
#include "sluice/rules/token_bucket_reserve.hpp"

namespace sluice {

struct SharedTokenBucketReserve {
  /// The longest reservation, debt or block, in microseconds.
  static constexpr Word longest = SharedTokenBucketRule::max_ahead;

  /// The changes of shared_token_bucket.adjust.
  using Change = TokenBucketReserve::Change;
};

/// Rows of the table of operations. The first argument is the limit to report, keep_alive is that
/// of shared_token_bucket_configure, and all fail with Errc::not_configured without a quota.
///
/// Further arguments: cost, keep_alive, max_wait (0 to longest). Output: the units granted; the
/// bucket before the grant: its level, the time of that, the version of the quota, and the units
/// truly spent; then the capacity, also for a refusal.
extern const Operation shared_token_bucket_reserve;
/// Further arguments: the units granted, keep_alive, the units to refund, and from the grant's
/// output: level, time, version, truly spent. Output: tokens refunded (rounded down); 1 if the
/// grant was the last one ahead; the time at which the rest of it is covered. The refund is
/// - nothing if the quota was changed since, because how much has drained is unknown;
/// - else as in token_bucket_refund. If the rest of a grant ahead is covered at once, its units are
///   truly spent now.
extern const Operation shared_token_bucket_refund;
/// Further arguments: change, keep_alive, amount, as in token_bucket_adjust; a block is at most
/// `longest`. Output: the version, the capacity, and the tokens charged, if the change is a charge.
extern const Operation shared_token_bucket_adjust;

}  // namespace sluice
