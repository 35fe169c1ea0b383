// Shared bucket, the other verbs: grants ahead of time, giving back, and changes by hand. The same
// state as the other rows.
//
// What is promised or closed lies in a stamp ahead of the clock: the time of the last grant, or the
// last instant of a block. No whole token is left at it, and a new quota begins there:
//
//     at      = max(now, stamp)                             level' as of it
//     over    = level' + cost * period - capacity * period
//     wait    = 0 if over <= 0, else at - now + ceil(over / refill)
//     allowed  iff  wait <= max_wait
//
// Counted by their times, grants keep the bound of SharedBucketRule by the quotas in force from
// when the first of them was decided, but for what is given back. (Times are whole: a grant ahead
// may be up to 1 us late.)
#pragma once

#include "sluice/algorithms/shared_bucket.hpp"
#include "sluice/algorithms/token_bucket_spend.hpp"

namespace sluice {

struct SharedBucketSpend {
  /// How far ahead of the clock a bucket may be taken, in microseconds: the longest reservation,
  /// debt or block.
  static constexpr Word longest = SharedBucketRule::max_ahead;

  /// What adjust does.
  using Change = TokenBucketSpend::Change;
};

/// Rows of the table of operations. Arguments: the limit to report, then those named, with
/// keep_alive as in shared_bucket_set. Errc::not_configured without a quota.
/// cost, keep_alive, max_wait: 0 to longest. Details: what was granted, the state after it (level,
/// stamp), the version of the quota, and the instant as of which it was decided; then the capacity,
/// also of a refusal.
extern const Operation shared_bucket_spend;
/// The cost of a grant, keep_alive, how much of it to give back, and what its details told: level,
/// stamp, version, instant. Details: tokens given back (rounded down); 1 if nothing was charged
/// since; level and stamp of what is left of the grant. How much is given back:
/// - if the quota was changed since: nothing, because nobody knows how much of it has drained;
/// - else if nothing was charged since: `amount`, as far as it has not drained, and things are as
///   if it had never been asked for;
/// - else, if nothing lies ahead: `amount`, as far as `cost` would not have drained if it had begun
///   to at its own time;
/// - else nothing: those who wait behind it keep their times.
extern const Operation shared_bucket_give_back;
/// change, keep_alive, amount: as in token_bucket_set; a block is at most `longest`. Details: the
/// version and the capacity.
extern const Operation shared_bucket_adjust;

}  // namespace sluice
