// Rates and spans as short texts: for the units of keys, and for quotas.
#pragma once

#include <string>

#include "sluice/quota.hpp"

namespace sluice::detail {

/// "5s", "1min": in the longest unit of which the span is a multiple. REQUIRES: the span is
/// positive.
[[nodiscard]] std::string span_text(Span span);

/// "10/s": the units in the shortest of a second, a minute, an hour and a day in which they are a
/// whole number, or else in its period. Two rates have the same text if and only if they are equal.
[[nodiscard]] std::string rate_text(const Quota& quota);

}  // namespace sluice::detail
