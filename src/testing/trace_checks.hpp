// The checks of matchers that are not invariants of a history. Threading: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "sluice/testing/invariants.hpp"
#include "sluice/testing/trace.hpp"

namespace sluice::testing::detail {

/// "2.35": at most two digits, no trailing zeros.
[[nodiscard]] std::string rounded(double number);
[[nodiscard]] std::string percent(double share);

/// Throws std::invalid_argument for a value that cannot be compared with windows or shares.
void require_positive(const char* what, Span span);
void require_share(const char* what, double number);

[[nodiscard]] Checked find_unequal_share(const Trace& trace, double tolerance);
[[nodiscard]] Checked find_late_recovery(const Trace& trace, Span span, std::string_view about);
[[nodiscard]] Checked find_inexact_hint(const Trace& trace);
[[nodiscard]] Checked find_waste(const Trace& trace, double most);
[[nodiscard]] Checked find_failure(const Trace& trace);

}  // namespace sluice::testing::detail
