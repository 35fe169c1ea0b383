// One response as a line of a table.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sluice/http/parse.hpp"

namespace sluice::http {

/// 2024-02-29 12:34:56 UTC, a Thursday.
inline constexpr Time test_now = to_time(1'709'210'096'000'000);

using HeaderLines = std::vector<std::pair<std::string, std::string>>;

inline Feedback parse_lines(const HeaderLines& lines, const ParseOptions& options = {}) {
  return parse_feedback(lines, test_now, options);
}

}  // namespace sluice::http
