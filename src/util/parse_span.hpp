// Times as people write them: "250us", "1.5s", "2 min".
#pragma once

#include <optional>
#include <string_view>

#include "sluice/time.hpp"

namespace sluice::detail {

/// A decimal number, of up to 16 digits on either side of the point, and us, ms, s, m or min, h or
/// d; rounded to a microsecond. None: the text is no time, or one longer than word_limit.
[[nodiscard]] std::optional<Span> span_of(std::string_view text) noexcept;

/// The same. Throws std::invalid_argument that says what is allowed and what was given.
[[nodiscard]] Span parse_span(std::string_view text);

}  // namespace sluice::detail
