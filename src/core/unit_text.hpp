// Rates and spans as short texts: in keys, whose units they are, and in the texts of quotas.
#pragma once

#include <string>

#include "sluice/quota.hpp"

namespace sluice::detail {

/// "5s", "1min": by the longest unit of which the span, which is positive, is a multiple.
[[nodiscard]] std::string span_text(Span span);

/// "10/s": what a quota admits in the shortest of a second, a minute, an hour and a day in which
/// that is a whole number, or else in its period. Equal rates have equal texts, and no others have.
[[nodiscard]] std::string rate_text(const Quota& quota);

}  // namespace sluice::detail
