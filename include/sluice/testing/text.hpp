// Formats values for messages: short, with units, and exact. Threading: pure functions.
#pragma once

#include <string>
#include <system_error>

#include "sluice/store.hpp"

namespace sluice::testing {

/// "0 s", "250 us", "99.999 ms", "1.5 s", "2 min", "24 h": nothing is rounded.
[[nodiscard]] std::string to_text(Span span);

/// "2000-01-01 00:00:02.5 UTC". A time in 1970 is a time since the start of a test, "+2.5 s":
/// histories are shifted there to be readable, and no store's clock shows it.
[[nodiscard]] std::string to_text(Time time);

/// The name of an Errc, "timed_out"; of other categories "system:110".
[[nodiscard]] std::string to_text(const std::error_code& error);

/// The decision, or "the error timed_out".
[[nodiscard]] std::string to_text(const Outcome& outcome);

}  // namespace sluice::testing
