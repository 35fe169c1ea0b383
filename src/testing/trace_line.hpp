// The lines of a trace's text, written and read. Threading: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sluice/testing/trace.hpp"

namespace sluice::testing::detail {

class Cursor;

inline constexpr std::string_view trace_title = "sluice-trace 1 from ";

/// Letters, digits and `-._~@+=/` are written as they are, every other byte as %XX, so that no
/// blank is left.
[[nodiscard]] std::string escaped(std::string_view bytes);
/// "{alice}:api:10/s", or "{alice}:api" for a key without a unit.
[[nodiscard]] std::string key_text(const TracedStep& step);
/// "+1.500000": seconds since the start of the trace, in fixed width.
[[nodiscard]] std::string offset_text(Span since);
[[nodiscard]] std::string step_text(const TracedStep& step);
/// The call as text, for a call of a trace or for one that is compared with it.
[[nodiscard]] std::string question_text(std::span<const TracedStep> steps,
                                        const std::optional<RequestId>& id);
[[nodiscard]] std::string answer_text(const TracedCall& call);
[[nodiscard]] std::string call_text(const TracedCall& call, Time start);

/// These throw std::invalid_argument with the expected and the actual text.
[[nodiscard]] Span read_offset(Cursor& line);
[[nodiscard]] TracedCall read_call(Cursor& line, Time asked);

/// The step at `index` of a call, with the decision of the whole plan.
[[nodiscard]] TracedCall part_of(const TracedCall& call, std::size_t index);

}  // namespace sluice::testing::detail
