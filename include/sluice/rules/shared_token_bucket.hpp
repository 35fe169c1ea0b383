// Shared token bucket: a token bucket whose quota is part of its state.
//
// It decides as the token bucket does, by the stored quota. A new quota takes over the free tokens
// of the old one, and their fractions, rounded down to 1 / period' of a token:
//
//     free = capacity - level / period
//
//     as_is          free' = free
//     proportional   free' = free * capacity' / capacity
//     additive       free' = free + capacity' - capacity
//     reset          free' = capacity'
//     in any case    free'' = min(free', capacity', max(capacity, capacity') - truly spent)
//
// A constant quota, never or unlimited, has no rate: the level stays, and drains by the one before.
// What is spent under it stays spent under the next quota, unless that resets:
//
//     spent' = spent,  free' = capacity' - spent'
//
// The quota that is in force already is no new one, unless it resets.
//
// "Truly spent" are the units that were granted and have not drained, also after adjustments of the
// level. So no interval of t microseconds admits more than C + t * r, with C the largest capacity
// and r the largest rate in force in it.
#pragma once

#include "sluice/extend/operation.hpp"

namespace sluice {

/// How many free tokens a new quota takes over from the old one. See the formulas above.
enum class Inheritance : Word {
  as_is = 0,         ///< the same number of tokens is free, up to the new capacity
  proportional = 1,  ///< the same share of the capacity is free
  additive = 2,      ///< the same number of tokens is spent: additional capacity is free at once
  reset = 3,         ///< the bucket is as full as the bound permits
};

struct SharedTokenBucketRule {
  /// Absent: no quota was configured.
  struct State {
    Word version;   ///< 1 for the first quota, and one more for each further one
    Word capacity;  ///< tokens; 0 or unlimited: a constant quota, as below
    Word refill;    ///< units that drain a microsecond
    Word period;    ///< units a token
    Word level;     ///< units spent, at `stamp`
    Word spent;     ///< units truly spent, at `stamp`; saturates at word_limit
    Word stamp;     ///< of the last grant or quota, microseconds since the epoch
  };
  static constexpr std::size_t state_words = 7;

  /// How far a stamp may be ahead after the clock was set back, and as much again if no whole token
  /// is left at it: a reservation, a debt or a block may be ahead as well.
  static constexpr Word max_ahead = 60'000'000;
  /// The longest time that a quota may be kept without a grant.
  static constexpr Word max_keep_alive = word_limit / 2;
};

/// Arguments: the new quota's capacity, refill and period; for how many microseconds after the last
/// grant it is kept, longer than the bucket takes to fill; the Inheritance; 1 to keep an existing
/// quota. Output: the version in force, and 1 if it is new.
extern const Operation shared_token_bucket_configure;
/// Arguments: the limit to report, the cost, keep_alive as above. Output: version, capacity,
/// refill, period. Errc::not_configured without a quota.
extern const Operation shared_token_bucket_acquire;
/// The verdict of acquire, with what remains now; changes nothing. Arguments and output words as
/// above.
extern const Operation shared_token_bucket_peek;

}  // namespace sluice
