// Types for time: whole microseconds, so that every store decides with the same integers. Plain
// values; no threading rule.
#pragma once

#include <chrono>
#include <cstdint>

#include "sluice/detail/cxx20.hpp"

namespace sluice {

class Clock;

/// The integer type of all rules. A word in a state, an argument or a verdict is in [0,
/// word_limit], so that Lua numbers (doubles) represent it exactly.
using Word = std::int64_t;

/// 2^52: the sum of two words stays below 2^53, and the quotient of two words rounds down to the
/// same integer in C++ and in Lua.
inline constexpr Word word_limit = Word{1} << 52;

/// A length of time in microseconds.
using Span = std::chrono::duration<std::int64_t, std::micro>;

/// An instant of a store's clock: microseconds since 1970-01-01 00:00 UTC.
/// Range: [0, word_limit], which ends in the year 2112.
using Time = std::chrono::time_point<Clock, Span>;

/// Microseconds since the epoch.
[[nodiscard]] constexpr Word to_word(Time time) noexcept { return time.time_since_epoch().count(); }

/// The instant `microseconds` after the epoch.
[[nodiscard]] constexpr Time to_time(Word microseconds) noexcept {
  return Time{Span{microseconds}};
}

}  // namespace sluice
