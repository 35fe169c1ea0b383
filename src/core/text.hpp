// Formats numbers with a unit for messages. Threading: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/time.hpp"

namespace sluice::detail {

/// `count / unit` as a decimal without trailing zeros. REQUIRES: count >= 0, unit a power of ten.
[[nodiscard]] std::string decimal(std::int64_t count, std::int64_t unit);

/// "0 s", "250 us", "99.999 ms", "1.5 s", "2 min", "24 h": nothing is rounded.
[[nodiscard]] std::string text_of(Span span);

}  // namespace sluice::detail
