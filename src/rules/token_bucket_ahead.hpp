// Bounds of the words of a token bucket's state, for its kernels. Pure functions.
#pragma once

#include "sluice/time.hpp"

namespace sluice::token_bucket {

/// The highest level that word_of() can write.
inline constexpr Word most_level = word_limit / 2 - 1;

/// How far a stamp may be ahead of the clock, if the clock was set back by at most `longest`, and
/// by as much again if it is closed: reservations and blocks are at most `longest` ahead.
constexpr Word most_ahead(Word word, Word longest) noexcept { return longest * (1 + word % 2); }

}  // namespace sluice::token_bucket
