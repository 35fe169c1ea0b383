// Token bucket: a rate limit with a burst.
//
// Spent tokens drain at the rate of the quota; a request fits if the tokens spent, including its
// own, are within the capacity. One token is `period` units, and `refill` units drain each
// microsecond, so that all numbers are whole:
//
//     level' = max(0, level - (now - stamp) * refill)        what is still spent
//     allowed  iff  level' + cost * period <= capacity * period
//
// A stamp that is ahead and closed (a reservation, or a block) refuses all costs until its time. A
// stamp that is ahead and not closed was written before the clock was set back. If both are true of
// a stamp, it is ahead by the sum.
//
// This is the virtual scheduling form of GCRA (ITU-T I.371) with an exact fraction for its rate: in
// any interval of t microseconds at most capacity + t * refill / period units are admitted.
//
// Limiters of one rate and several capacities may share a state: what is spent stays spent, and the
// largest capacity is the bound. A state is never read with another rate, because the rate is part
// of the key (Key::unit()).
#pragma once

#include <span>

#include "sluice/extend/verdict.hpp"
#include "sluice/quota.hpp"

namespace sluice {

struct Operation;

namespace token_bucket {

/// The first word of a state: twice the level, plus 1 if nothing is granted before the stamp.
[[nodiscard]] constexpr Word word_of(Word level, bool closed = false) noexcept {
  return 2 * level + (closed ? 1 : 0);
}
[[nodiscard]] constexpr Word level_in(Word word) noexcept { return word >> 1; }
[[nodiscard]] constexpr bool is_closed(Word word) noexcept { return word % 2 != 0; }

}  // namespace token_bucket

/// The rule, as pure functions. Users call the class TokenBucket
/// (sluice/limiters/token_bucket.hpp).
struct TokenBucketRule {
  /// Absent: a full bucket.
  struct State {
    Word spent = 0;  ///< the level at `stamp`, as token_bucket::word_of() writes it
    Word stamp = 0;  ///< microseconds since the epoch
  };

  struct Args {
    Word capacity;    ///< tokens
    Word refill;      ///< units that drain a microsecond
    Word period;      ///< units a token
    Word full_after;  ///< microseconds in which a full level drains: ceil(capacity * period /
                      ///< refill)
    Word cost;        ///< tokens; 0 is decided like any other cost, and writes nothing
  };

  /// How far a stamp may be ahead of the clock after the clock was set back, and as much again if
  /// it is closed. Up to this, time stands still for the key until the clock has caught up, and no
  /// token is added. Beyond it, waiting would lock the key out for the length of the step, so that
  /// time restarts: one request is admitted whatever the level, which costs at most its own tokens.
  static constexpr Word max_ahead = 60'000'000;

  /// Spends `cost` tokens if they are available. Worked example, 10/s with burst 5, all spent at 0:
  /// at 99 ms refused with retry_after 1 ms, at 100 ms allowed with remaining 0.
  [[nodiscard]] static Verdict acquire(State& state, const Args& args, Word now) noexcept;

  /// The verdict of acquire(), with the tokens that remain now; changes nothing.
  [[nodiscard]] static Verdict peek(const State& state, const Args& args, Word now) noexcept;

  /// allowed (1), or the negative code of a cost that can never be admitted.
  [[nodiscard]] static Word check(const Args& args) noexcept;

  /// acquire() with a clock that is up to `lag` microseconds behind. It decides as acquire() does
  /// if the lag cannot be observed: at every instant up to `now + lag` the verdict is the same, and
  /// if allowed, the state written at any of them is equivalent from `now + lag` on. Otherwise it
  /// returns Verdict::unsettled and changes nothing. A refusal is final if retry_after is beyond
  /// the lag. A grant is final if the level before it does not drain to zero within the lag: then a
  /// charge at any instant of the lag gives the same state.
  [[nodiscard]] static Verdict acquire_lagging(State& state, const Args& args, Word now,
                                               Word lag) noexcept;

  /// The arguments for this quota.
  [[nodiscard]] static Args args(const Quota& quota, Cost cost) noexcept {
    return {quota.capacity(), quota.refill(), quota.period(), quota.full_after().count(),
            cost.value()};
  }
};

/// Rows of the table of operations.
extern const Operation token_bucket_acquire;
extern const Operation token_bucket_peek;

}  // namespace sluice
