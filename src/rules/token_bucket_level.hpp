// How a token bucket's kernel reads a level that may stand in another quota's units. Pure functions
// of whole numbers within 2^53; the twin is backends/redis/lua/token_bucket_level.lua.
#pragma once

#include <array>

#include "sluice/rules/token_bucket_unit.hpp"

namespace sluice::token_bucket {

struct Factor {
  Word prime;
  Word powers;  // 0 to powers - 1 have a code
};
/// The first is the highest digit of a code.
inline constexpr std::array<Factor, 4> factors{{{2, 15}, {3, 5}, {5, 10}, {7, 2}}};
inline constexpr Word exact_codes = 15 * 5 * 10 * 2;
/// Codes for each doubling of the other periods.
inline constexpr Word steps = 13;

/// The shortest period that has this unit. REQUIRES: it is odd.
inline Word period_of(Word unit) noexcept {
  Word code = unit / 2;
  if (code >= exact_codes) {
    const Word whole = Word{1} << (code - exact_codes) / steps;
    return whole + whole * ((code - exact_codes) % steps) / steps;
  }
  Word period = 1;
  for (auto factor = factors.rbegin(); factor != factors.rend(); ++factor) {
    for (Word power = code % factor->powers; power > 0; --power) period *= factor->prime;
    code /= factor->powers;
  }
  return period;
}

/// A level that stands in another unit, in units of `period`: rounded up to a 4096th of a token.
/// A level whose unit cannot be known counts as all of `limit`. At most word_limit.
inline Word foreign_level(Word word, Word period, Word limit) noexcept {
  if (word % 2 == 0) return word == 0 ? 0 : limit;
  const Word level = level_in(word);
  const Word from = period_of(unit_in(word));
  if (from == period) return level;
  const Word tokens = level / from;
  if (tokens > (word_limit - period) / period) return word_limit;
  // In parts of a 4096th of a token, so that no product leaves the whole numbers.
  const Word rest = level % from * 4096;
  const Word parts = rest / from + (rest % from != 0 ? 1 : 0);
  return tokens * period + parts * (period / 4096) + (parts * (period % 4096) + 4095) / 4096;
}

/// The highest level that a word of this unit has room for.
constexpr Word most_level(Word unit) noexcept { return word_limit / (unit == 0 ? 2 : 8192) - 1; }

/// What a word tells, in the units of a quota of this unit.
inline Word level_of(Word word, Word unit, Word period, Word limit) noexcept {
  if (unit_in(word) != unit) [[unlikely]] {
    return foreign_level(word, period, limit);
  }
  return word >> (unit != 0 ? 13 : 1);
}

}  // namespace sluice::token_bucket
