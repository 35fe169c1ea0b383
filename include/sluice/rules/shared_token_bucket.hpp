// Shared token bucket: a token bucket whose quota lives in the store, beside its level.
//
// It decides as the token bucket does, by the quota that it finds. A new quota takes over what the
// old one leaves, in whole tokens, rounded against the caller:
//
//     spent   = ceil(level' / period)      free = capacity - spent
//
//     as_is          free' = free
//     proportional   free' = free * capacity' / capacity
//     additive       free' = free + capacity' - capacity
//     reset          free' = capacity'
//     in any case    free'' = min(free', capacity', max(capacity, capacity') - truly spent)
//
// "Truly spent" is what was granted and has not drained, whatever the level was made to say since.
// So no interval of t microseconds admits more than C + t * r, with C the largest capacity and r
// the largest rate that were in force in it.
#pragma once

#include "sluice/extend/operation.hpp"

namespace sluice {

/// What a new quota takes over from the old one. See the formulas above.
enum class Inheritance : Word {
  as_is = 0,         ///< as many tokens are free as before, up to the new capacity
  proportional = 1,  ///< the same share of the capacity is free
  additive = 2,      ///< as many tokens are spent as before: a larger capacity is there at once
  reset = 3,         ///< as full as the bound permits
};

struct SharedTokenBucketRule {
  /// Absent means that no quota was set.
  struct State {
    Word version;   ///< 1 for the first quota, and one more for each
    Word capacity;  ///< tokens
    Word refill;    ///< units that drain a microsecond
    Word period;    ///< units a token
    Word level;     ///< units spent, at `stamp`
    Word spent;     ///< units truly spent, at `stamp`; word_limit: more than can be counted
    Word stamp;     ///< of the last grant or quota, microseconds since the epoch
  };
  static constexpr std::size_t state_words = 7;

  /// How far a stamp may lie ahead after the clock was set back; as TokenBucketRule::max_ahead.
  static constexpr Word max_ahead = 60'000'000;
  /// The longest that a quota may be kept without a grant.
  static constexpr Word max_keep_alive = word_limit / 2;
};

/// Arguments: the new quota's capacity, refill and period; for how many microseconds after the last
/// grant it is kept, at least as long as the bucket takes to fill; the Inheritance; 1 to leave a
/// quota that is there alone. Output: the version in force, and 1 if it is new.
extern const Operation shared_token_bucket_configure;
/// Arguments: the limit to report, the cost, keep_alive as above. Output: version, capacity,
/// refill, period. Errc::not_configured without a quota.
extern const Operation shared_token_bucket_acquire;
/// What acquire would answer, with what remains now; arguments and output words as there.
extern const Operation shared_token_bucket_peek;

}  // namespace sluice
