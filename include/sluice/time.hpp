// The values that time is made of: whole microseconds, so that a decision is the same integer on
// every store. Plain values; no threading rule.
#pragma once

#include <chrono>
#include <cstdint>

#include "sluice/detail/cxx20.hpp"

namespace sluice {

class Clock;

/// The one number type of every rule. A word in a state, an argument or a verdict lies in
/// [0, word_limit], so that it is exact as a Lua number (a double) as well.
using Word = std::int64_t;

/// 2^52: sums of two words stay below 2^53, and quotients of words floor alike in C++ and Lua.
inline constexpr Word word_limit = Word{1} << 52;

/// A length of time in microseconds.
using Span = std::chrono::duration<std::int64_t, std::micro>;

/// An instant of a store's clock: microseconds since 1970-01-01 00:00 UTC.
/// Range: [0, word_limit], which ends in the year 2112.
using Time = std::chrono::time_point<Clock, Span>;

/// Microseconds since the epoch, as rules see it.
[[nodiscard]] constexpr Word to_word(Time time) noexcept { return time.time_since_epoch().count(); }

/// The instant `microseconds` after the epoch.
[[nodiscard]] constexpr Time to_time(Word microseconds) noexcept {
  return Time{Span{microseconds}};
}

}  // namespace sluice
