// One response as a line of a table, and other tables as text.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/http/parse.hpp"

namespace sluice::http {

/// 2024-02-29 12:34:56 UTC, a Thursday.
inline constexpr Time test_now = to_time(1'709'210'096'000'000);

/// The parts of a text between separators.
inline std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

using HeaderLines = std::vector<std::pair<std::string, std::string>>;

inline Feedback parse_lines(const HeaderLines& lines, const ParseOptions& options = {}) {
  return parse_feedback(lines, test_now, options);
}

}  // namespace sluice::http
