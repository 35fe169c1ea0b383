// In what a token bucket's state counts what is spent, so that limiters of several quotas may share
// a key: each reads in its own units what the others have spent.
//
// The first word of the state is the level with the unit of the quota that wrote it:
//
//     word = level * 8192 + promise * 4096 + unit     unit = 2 * code + 1, if the limit,
//                                                     capacity * period, is below 2^39
//     word = level * 2                                unit = 0, else: others cannot know it
//
// A promise is a stamp ahead of which no more is granted: that of a grant ahead or of a block. A
// stamp ahead that is none was written before the clock was set back: time stands still at it.
// Words of unit 0 cannot tell which it is: they count as a promise with lumps, or if no whole token
// is left at the stamp.
//
// Each period that divides 2^14 * 3^4 * 5^9 * 7 microseconds has a code of its own. 30 days and a
// week divide that, and so does the period of every quota of so many per second, minute, hour or
// day. Other periods share codes, 13 to a doubling.
#pragma once

#include "sluice/time.hpp"

namespace sluice::token_bucket {

/// Limits (capacity * period) below this leave room for a code beside the level.
inline constexpr Word coded_limit = Word{1} << 39;
inline constexpr Word max_unit = 4095;
inline constexpr Word promise = 4096;

/// The unit of a quota of this period and limit. Some divisions.
[[nodiscard]] Word unit_of(Word period, Word limit) noexcept;

/// True if words of this unit have room for levels up to the limit.
[[nodiscard]] constexpr bool is_unit(Word unit, Word limit) noexcept {
  return unit == 0 ? limit <= word_limit / 2
                   : unit > 0 && unit <= max_unit && unit % 2 == 1 && limit < coded_limit;
}

/// The unit that a word tells.
[[nodiscard]] constexpr Word unit_in(Word word) noexcept {
  return word % 2 == 0 ? 0 : word & max_unit;
}

/// The level that a word tells, in that unit.
[[nodiscard]] constexpr Word level_in(Word word) noexcept {
  return word >> (word % 2 == 0 ? 1 : 13);
}

/// True if it tells a promise. Words of unit 0 cannot.
[[nodiscard]] constexpr bool is_promise(Word word) noexcept {
  return word % 2 != 0 && (word & promise) != 0;
}
/// The same word as a promise, if it can tell one.
[[nodiscard]] constexpr Word promised(Word word) noexcept {
  return word % 2 != 0 ? word | promise : word;
}

/// True if nothing is granted before this stamp, which lies ahead: a promise, of which words of
/// unit 0 show no more than that no whole token is left at it, and nothing with lumps.
[[nodiscard]] constexpr bool is_closed(Word word, Word level, Word limit, Word period,
                                       Word interval) noexcept {
  return word % 2 != 0 ? is_promise(word) : interval > 1 || level > limit - period;
}

/// The word of a level that is at most a limit with this unit.
[[nodiscard]] constexpr Word word_of(Word level, Word unit, bool promises = false) noexcept {
  return unit != 0 ? level << 13 | (promises ? promise : 0) | unit : level << 1;
}

}  // namespace sluice::token_bucket
