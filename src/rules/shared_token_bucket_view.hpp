// The state of a shared token bucket at one instant, for its kernels. Pure functions; the twin has
// them inlined.
#pragma once

#include <algorithm>

#include "sluice/detail/limit_of.hpp"
#include "sluice/rules/shared_token_bucket.hpp"
#include "src/rules/token_bucket_position.hpp"

namespace sluice {

using Bucket = SharedTokenBucketRule::State;

inline Word shared_error(Errc code) noexcept { return -static_cast<Word>(code); }

inline bool is_quota(Word capacity, Word refill, Word period) noexcept {
  return capacity >= 1 && refill >= 1 && refill < word_limit && period >= 1 &&
         capacity <= (word_limit - refill) / period;
}

/// True if the stored quota has a limit of 0, or none. Its level stays, and drains, until another
/// quota takes over what is spent.
inline bool is_constant(const Bucket& b) noexcept { return detail::is_constant(b.capacity); }

inline bool is_keep_alive(Word keep_alive) noexcept {
  return keep_alive >= 1 && keep_alive <= SharedTokenBucketRule::max_keep_alive;
}

/// The bucket at one instant; no quota if the version is 0.
struct SharedMoment {
  Bucket bucket;
  Word at;
  bool given_up = false;  // the stamp is too far ahead: the level is as stored
};

/// True if no whole token is left at a stamp. If it is ahead, nothing is granted before it.
/// So it may be under a constant quota, which does not know.
inline bool is_full(const Bucket& b) noexcept {
  return is_constant(b) || b.level > b.capacity * b.period - b.period;
}

inline SharedMoment shared_moment(const StateView& state, Word keep_alive, Word now) noexcept {
  Bucket b{state[0], state[1], state[2], state[3], state[4], state[5], state[6]};
  if (b.version == 0 || now >= b.stamp + keep_alive) return {{}, now};
  if (!is_quota(is_constant(b) ? 1 : b.capacity, b.refill, b.period)) {
    state.call_corrupt();
    return {{}, now};
  }
  // A reservation, a debt or a block, and the clock that was set back.
  const Word most_ahead = SharedTokenBucketRule::max_ahead * (is_full(b) ? 2 : 1);
  if (b.stamp > now + most_ahead) return {b, now, true};
  const Word at = std::max(now, b.stamp);
  b.level = drained(b.level, at - b.stamp, b.refill);
  if (b.spent < word_limit) b.spent = drained(b.spent, at - b.stamp, b.refill);
  return {b, at};
}

/// True if nothing is granted before `at`.
inline bool is_closed(const Bucket& b, Word at, Word now) noexcept {
  return at > now && is_full(b);
}

/// The wait of a request after which `spent` units are spent.
inline Word shared_wait(const Bucket& b, Word want, Word at, Word now) noexcept {
  const Word limit = b.capacity * b.period;
  if (want <= limit && !is_closed(b, at, now)) return 0;
  return at - now + ceil_div(std::max(Word{0}, want - limit), b.refill);
}

/// The answer of a constant quota.
inline Verdict constant_verdict(const Bucket& b, Word cost) noexcept {
  if (b.capacity == 0 && cost > 0) return {Verdict::refused, 0, Decision::never.count(), 0};
  return {Verdict::allowed, b.capacity, 0, 0};
}

inline void write_bucket(const Bucket& b, Word at, Effects& effects) noexcept {
  effects.put(0, b.version);
  effects.put(1, b.capacity);
  effects.put(2, b.refill);
  effects.put(3, b.period);
  effects.put(4, b.level);
  effects.put(5, b.spent);
  effects.put(6, at);
}

/// A grant by a constant quota keeps it, as any grant does.
inline void keep_constant(const Bucket& b, Word at, Word cost, Effects& effects) noexcept {
  if (cost > 0 && b.capacity != 0) write_bucket(b, at, effects);
}

/// check() of the rows whose arguments begin with the limit to report, a cost or a kind of change,
/// and keep_alive.
inline Word check_shared_cost(const Arguments& args) noexcept {
  if (args[1] < 0) return shared_error(Errc::invalid_cost);
  if (args[1] > word_limit) return shared_error(Errc::cost_exceeds_capacity);
  if (args[0] < 0 || args[0] > word_limit || !is_keep_alive(args[2])) {
    return shared_error(Errc::invalid_argument);
  }
  return Verdict::allowed;
}

/// The stamp may be ahead of the clock by twice max_ahead when it is written.
inline Word ttl_shared(const Arguments& args) noexcept {
  return args[2] + 2 * SharedTokenBucketRule::max_ahead + Operation::clock_slack;
}

}  // namespace sluice
