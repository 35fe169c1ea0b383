// The arithmetic that the kernels of the token bucket's full form and of the shared token bucket
// share. Pure functions of whole numbers within 2^53.
#pragma once

#include <algorithm>

#include "sluice/time.hpp"

namespace sluice {

/// The units spent at a time.
struct Position {
  Word level;
  Word stamp;
};

/// floor(a / b) and ceil(a / b) for a >= 0, b > 0.
inline Word floor_div(Word a, Word b) noexcept { return a / b; }
inline Word ceil_div(Word a, Word b) noexcept { return a / b + (a % b != 0 ? 1 : 0); }

/// The last multiple of `interval` up to `time`, and the first from it on. Without a division for
/// an interval of a microsecond, which is the common case.
inline Word floor_to(Word time, Word interval) noexcept {
  return interval == 1 ? time : time - time % interval;
}
inline Word ceil_to(Word time, Word interval) noexcept {
  const Word late = interval == 1 ? 0 : time % interval;
  return late == 0 ? time : time - late + interval;
}

/// A level after `elapsed` microseconds.
inline Word drained(Word level, Word elapsed, Word refill) noexcept {
  return elapsed > floor_div(level, refill) ? 0 : level - elapsed * refill;
}

/// The time from `now` until a level at `at` has drained.
inline Word until_drained(Word level, Word refill, Word interval, Word at, Word now) noexcept {
  return level == 0 && at <= now ? 0 : ceil_to(at + ceil_div(level, refill), interval) - now;
}

/// The state of a bucket with this level at `at`. A level above the limit becomes a stamp ahead, so
/// far that no whole token is left at it, because the plain form of the rule grants at a stamp what
/// is left there.
inline Position place(Word level, Word limit, Word refill, Word period, Word interval,
                      Word at) noexcept {
  if (level <= limit) return {level, at};
  // At the end of time, a stamp cannot be as far ahead as it should.
  const Word stamp = std::min(word_limit, ceil_to(at + ceil_div(level - limit, refill), interval));
  const Word least = interval == 1 ? limit - period + 1 : 0;
  return {std::clamp(level - (stamp - at) * refill, least, limit), stamp};
}

}  // namespace sluice
