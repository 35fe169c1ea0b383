// Tables of tests as text. Threading: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

/// The parts of a text between separators.
inline std::vector<std::string> parts_of(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  for (auto at = text.find(separator); at != text.npos; at = text.find(separator)) {
    parts.emplace_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  parts.emplace_back(text);
  return parts;
}

inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// The rows of a sheet, each of cells with ` => ` between them. A row goes on in the next line
/// behind two spaces; lines without cells are remarks.
inline std::vector<std::vector<std::string>> rows_of(const std::string& sheet) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : parts_of(replaced(sheet, "\n  ", " "), "\n")) {
    std::vector<std::string> cells = parts_of(line, " =>");
    if (cells.size() < 2) continue;
    for (std::size_t i = 1; i < cells.size(); ++i) {
      if (!cells[i].empty()) cells[i].erase(0, 1);
    }
    rows.push_back(std::move(cells));
  }
  return rows;
}

}  // namespace sluice::test
