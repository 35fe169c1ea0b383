// How the commands print: for a terminal of any width, a pipe, or a program that reads JSON.
// Threading: one thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tool/scan.hpp"

namespace sluice::tool {

/// Where the output goes.
struct Style {
  std::size_t width = 0;  ///< columns; 0: any number
  bool colour = false;
  bool json = false;
};

/// Colour on a terminal without NO_COLOR; the width of the terminal, or else COLUMNS.
[[nodiscard]] Style make_style(bool json);

enum class Colour { plain, bold, red, yellow, green };
[[nodiscard]] std::string painted(const Style& style, Colour colour, std::string_view text);

/// The text in lines of at most the width, all but the first after this indent. It breaks at ends
/// of lines and at spaces, or within a word that is longer than a line.
[[nodiscard]] std::string wrapped(const Style& style, std::string_view text, std::size_t indent);

/// The text behind `head`, or below it where the terminal is so narrow that `head` reaches further
/// than the indent.
[[nodiscard]] std::string behind(const Style& style, std::string_view head, std::string_view text,
                                 std::size_t indent);

/// All of a text that others wrote, without a byte that a terminal obeys.
[[nodiscard]] std::string shown(std::string_view text);

/// "3 of 5 used" as one line under or behind its key.
void print_line(const Style& style, std::string_view key, std::string_view text);
/// "name   value" within the width.
void print_field(const Style& style, std::string_view name, std::string_view text);

/// "12,345", "in 3.20 s", "17 Nov 2026 10:00:00 UTC".
[[nodiscard]] std::string text_of(const Value& value, Word now);
/// "id 00ff, weight 2, until in 3 s".
[[nodiscard]] std::string text_of(const Fields& fields, Word now);

/// Times and spans have names that end in `_us`.
[[nodiscard]] nlohmann::ordered_json to_json(const Fields& fields);
[[nodiscard]] nlohmann::ordered_json to_json(const Found& found);
[[nodiscard]] nlohmann::ordered_json to_json(const Totals& totals);
/// On one line; what is no UTF-8 is replaced.
void print_json(const nlohmann::ordered_json& value);

}  // namespace sluice::tool
