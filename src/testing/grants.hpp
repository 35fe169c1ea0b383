// What the checkers of invariants share: the grants of a history, and exact numbers. Threading:
// pure.
#pragma once

#include <span>
#include <string>

#include "sluice/testing/invariants.hpp"
#include "sluice/testing/text.hpp"

namespace sluice::testing::detail {

__extension__ typedef __int128 Exact;  // products of units and microseconds

inline std::string text(Word number) { return std::to_string(number); }
inline std::string text(Exact number) { return std::to_string(static_cast<Word>(number)); }
inline std::string text(Time time) { return to_text(time); }
inline std::string text(Span span) { return to_text(span); }

/// The grants that cost something, in the order in which they take effect.
[[nodiscard]] History grants_of(std::span<const Event> history);

/// The units that the quotas in force from `first` to `last` admit in `length`.
[[nodiscard]] Word most_within(std::span<const WindowFrom> quotas, Time first, Time last,
                               Span length);

}  // namespace sluice::testing::detail
