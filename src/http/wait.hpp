// The wait in a header's value in any form: a number, a duration, a date.
#pragma once

#include <string_view>

#include "sluice/http/feedback.hpp"

namespace sluice::http::detail {

/// The origin of instants, and the bound of waits.
struct Frame {
  Time now;      ///< in [0, word_limit], as all times here
  Time server;   ///< what the server calls now: instants are measured from it
  Span longest;  ///< in [0, word_limit]
};

enum class TimeUnit : std::uint8_t { seconds, milliseconds, unknown };

struct Wait {
  Fate fate;             ///< used, clamped or past; else there is no wait
  Span span{0};          ///< in [0, longest], rounded up
  bool relative = true;  ///< a length of time, which needs no clock

  [[nodiscard]] bool known() const noexcept {
    return fate == Fate::used || fate == Fate::clamped || fate == Fate::past;
  }
};

/// Parses a number (a duration or an instant, by its size: see docs/http.md), a duration such as
/// `6m0s`, an HTTP-date or an RFC 3339 date. A number that would be a duration is refused if its
/// unit is unknown.
[[nodiscard]] Wait parse_wait(std::string_view value, TimeUnit unit, const Frame& frame) noexcept;

/// A duration in whole seconds, as in the draft's integers.
[[nodiscard]] Wait seconds_to_wait(Word seconds, const Frame& frame) noexcept;

}  // namespace sluice::http::detail
