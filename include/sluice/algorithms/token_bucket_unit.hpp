// In what a token bucket's state counts what is spent, so that limiters of several quotas may share
// a key: each reads in its own units what the others have spent.
//
// The first word of the state is the level with the unit of the quota that wrote it:
//
//     word = level * 4096 + unit     unit = 2 * code + 1, if capacity * period < 2^40
//     word = level * 2               unit = 0, else: a unit that others cannot know
//
// Each period that divides 2^14 * 3^4 * 5^9 * 7 microseconds has a code of its own. 30 days and a
// week divide that, and so does the period of every quota of so many per second, minute, hour or
// day. Other periods share codes, 13 to a doubling.
#pragma once

#include "sluice/time.hpp"

namespace sluice::token_bucket {

/// Limits (capacity * period) below this leave room for a code beside the level.
inline constexpr Word coded_limit = Word{1} << 40;
inline constexpr Word max_unit = 4095;

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
  return word >> (word % 2 == 0 ? 1 : 12);
}

/// The word of a level that is at most a limit with this unit.
[[nodiscard]] constexpr Word word_of(Word level, Word unit) noexcept {
  return unit != 0 ? level << 12 | unit : level << 1;
}

}  // namespace sluice::token_bucket
