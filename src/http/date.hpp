// The forms of dates in headers: the three forms of an HTTP-date (RFC 9110, section 5.6.7) and RFC
// 3339.
#pragma once

#include <optional>
#include <string_view>

#include "sluice/time.hpp"

namespace sluice::http::detail {

/// `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` or `Sun Nov 6 08:49:37 1994`.
/// A year of two digits that would be more than 50 years after `now` is of the century before. The
/// name of the day must be valid, but need not match the date. Second 60 is the first second of the
/// next minute. The result is clamped to [1970, word_limit]. None if it is not such a date.
[[nodiscard]] std::optional<Time> parse_http_date(std::string_view text, Time now) noexcept;

/// `2024-02-29T12:34:56.789Z`, `2024-02-29 12:34:56+02:00`. Fractions of a microsecond are rounded
/// up. The same bounds.
[[nodiscard]] std::optional<Time> parse_rfc3339(std::string_view text) noexcept;

}  // namespace sluice::http::detail
