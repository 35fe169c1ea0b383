// Shared token bucket, the other verbs: grants ahead of time, giving back, and changes by hand. The
// same state as the other rows.
//
// What is promised or closed lies in a stamp ahead of the clock: the time of the last grant, or the
// last instant of a block. No whole token is left at it, and a new quota begins there:
//
//     at      = max(now, stamp)                             level' as of it
//     over    = level' + cost * period - capacity * period
//     wait    = 0 if over <= 0, else at - now + ceil(over / refill)
//               a cost of 0 waits for `at`, if no whole token is left at it
//     allowed  iff  wait <= max_wait
//
// A reward takes units off as of the clock, up to all that is spent, and brings the stamp nearer. A
// debt beyond the capacity, which a smaller quota has left, keeps it:
//
//     rewarded = min(units, level' + (at - now) * refill)
//     stamp''  = at, level'' = level' - rewarded                  if that is at least the limit
//     else the level at `now` is level' + (at - now) * refill - rewarded, and what of it is more
//     than the limit lies in a stamp ahead again
//
// So no stamp lies farther ahead than `longest`, and none is taken for one of a clock set back.
//
// Counted by their times, grants keep the bound of SharedTokenBucketRule by the quotas in force
// from when the first of them was decided, but for what is given back. (Times are whole: a grant
// ahead may be up to 1 us late.)
#pragma once

#include "sluice/rules/shared_token_bucket.hpp"
#include "sluice/rules/token_bucket_reserve.hpp"

namespace sluice {

struct SharedTokenBucketReserve {
  /// How far ahead of the clock a bucket may be taken, in microseconds: the longest reservation,
  /// debt or block.
  static constexpr Word longest = SharedTokenBucketRule::max_ahead;

  /// What adjust does.
  using Change = TokenBucketReserve::Change;
};

/// Rows of the table of operations. Arguments: the limit to report, then those named, with
/// keep_alive as in shared_token_bucket_configure. Errc::not_configured without a quota.
/// cost, keep_alive, max_wait: 0 to longest. Output: what was granted; the bucket before it: its
/// level, the instant of that, the version of the quota, and what was truly spent; then the
/// capacity, also of a refusal.
extern const Operation shared_token_bucket_reserve;
/// The cost of a grant, keep_alive, how much of it to give back, and what its output words told:
/// level, instant, version, truly spent. Output: tokens given back (rounded down); 1 if nothing was
/// charged since; the instant at which what is left of the grant is covered. How much is given
/// back:
/// - if the quota was changed since: nothing, because nobody knows how much of it has drained;
/// - else if nothing was charged since, or all that was has been given back, the last first:
///   `amount`, as far as it has not drained; what the grant found is put back, and things are as if
///   no more than what is left of it had ever been asked for. If the clock was set back since, time
///   stands still at the instant of the grant;
/// - else, if nothing is promised ahead: `amount`, as far as `cost` would not have drained if it
/// had
///   begun to at its own time;
/// - else nothing: those who wait behind it keep their times.
extern const Operation shared_token_bucket_refund;
/// change, keep_alive, amount: as in token_bucket_adjust; a block is at most `longest`. Output: the
/// version and the capacity.
extern const Operation shared_token_bucket_adjust;

}  // namespace sluice
