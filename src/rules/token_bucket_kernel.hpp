// The kernel of the token bucket, inline: its row calls it (token_bucket.cpp), and so does the
// memory store, which decides the most frequent operation without a call. Its twin is
// backends/redis/lua/rules/token_bucket.lua: same names, same order. lua/fast/token_bucket.lua
// decides plans of two or three calls. All values stay within 2^52 for a Quota's arguments, and
// sums within 2^53.
#pragma once

#include <algorithm>

#include "sluice/rules/token_bucket.hpp"
#include "src/rules/token_bucket_ahead.hpp"

namespace sluice::token_bucket {

using State = TokenBucketRule::State;
using Args = TokenBucketRule::Args;

/// floor(a / b) for a >= 0, b > 0, without a division in simple cases; 0 if a < 0.
inline Word floor_div(Word a, Word b) noexcept { return a < b ? 0 : b == 1 ? a : a / b; }

inline Word ceil_div(Word a, Word b) noexcept { return b == 1 ? a : (a + b - 1) / b; }

/// The tokens left at a level, which may be above the limit.
inline Word drained(Word level, Word elapsed, Word refill) noexcept {
  return elapsed > level / refill ? 0 : level - elapsed * refill;
}

/// The bucket at one instant, before a request.
struct BucketView {
  Word limit;
  Word charge;
  Word at;              // the time of the decision: never before the stamp
  Word level;           // spent at `at`: above the limit if another limiter has a larger one
  bool closed = false;  // nothing is granted before `at`
};

inline BucketView moment(const State& state, const Args& args, Word now) noexcept {
  const Word limit = args.capacity * args.period;
  const Word charge = args.cost * args.period;
  const Word level = level_in(state.spent);
  if (state.stamp > now) [[unlikely]] {
    if (state.stamp > now + most_ahead(state.spent, TokenBucketRule::max_ahead)) {
      return {limit, charge, now, std::min(level, limit - charge)};
    }
    return {limit, charge, state.stamp, level, is_closed(state.spent)};
  }
  const Word elapsed = now - state.stamp;
  if (elapsed >= args.full_after) {
    return {limit, charge, now, level <= limit ? 0 : drained(level, elapsed, args.refill)};
  }
  return {limit, charge, now, std::max(Word{0}, level - elapsed * args.refill)};
}

inline bool fits(const BucketView& m, Word want) noexcept { return want <= m.limit && !m.closed; }

inline Verdict refused(const BucketView& m, const Args& args, Word want, Word now) noexcept {
  return {Verdict::refused, m.closed ? 0 : floor_div(m.limit - m.level, args.period),
          m.at - now + ceil_div(std::max(Word{0}, want - m.limit), args.refill),
          m.at - now + ceil_div(m.level, args.refill)};
}

inline Verdict allowed(const BucketView& m, const Args& args, Word level, Word now) noexcept {
  return {Verdict::allowed, floor_div(m.limit - level, args.period), 0,
          m.at - now + ceil_div(level, args.refill)};
}

/// True if the verdict stays the same until `now + lag`; see TokenBucketRule::acquire_lagging().
inline bool settles(const State& state, const BucketView& m, const Args& args, Word want, Word now,
                    Word lag) noexcept {
  if (!fits(m, want)) {
    return m.at - now + ceil_div(std::max(Word{0}, want - m.limit), args.refill) > lag;
  }
  const Word drained = std::min(lag, args.full_after) * args.refill;
  // After the clock was set far back, the level is clamped at `now`, not later.
  return m.level > drained && state.stamp <= m.at;
}

inline Word check(const Args& args) noexcept {
  if (args.cost < 0) return -static_cast<Word>(Errc::invalid_cost);
  if (args.cost > args.capacity) return -static_cast<Word>(Errc::cost_exceeds_capacity);
  return Verdict::allowed;
}

/// TokenBucketRule::acquire(), or acquire_lagging() with a lag. Inlined wherever it is called:
/// passing a verdict through memory would cost as much as the rule.
[[gnu::always_inline]] inline Verdict taken(State& state, const Args& args, Word now,
                                            Word lag) noexcept {
  if (const Word status = check(args); status < 0) return {status, 0, 0, 0};
  const BucketView m = moment(state, args, now);
  const Word want = m.level + m.charge;
  if (lag > 0 && !settles(state, m, args, want, now, lag)) return {Verdict::unsettled, 0, 0, 0};
  if (!fits(m, want)) return refused(m, args, want, now);
  if (args.cost > 0) state = {word_of(want), m.at};
  return allowed(m, args, want, now);
}

/// TokenBucketRule::peek().
inline Verdict peeked(const State& state, const Args& args, Word now) noexcept {
  if (const Word status = check(args); status < 0) return {status, 0, 0, 0};
  const BucketView m = moment(state, args, now);
  const Word want = m.level + m.charge;
  if (!fits(m, want)) return refused(m, args, want, now);
  return allowed(m, args, m.level, now);
}

/// The arguments of a step. Word by word: a copy would move two words at once, and stall on the one
/// that the caller has just written.
inline Args args_of(const Arguments& a) noexcept { return {a[0], a[1], a[2], a[3], a[4]}; }

}  // namespace sluice::token_bucket
