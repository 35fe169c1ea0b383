// Lengths of time in texts, and what is wrong with a text.
#include "src/testing/cursor.hpp"

#include <cstdint>
#include <stdexcept>

namespace sluice::testing::detail {

void expected(std::string_view what, std::string_view got) {
  constexpr std::size_t shown = 60;
  std::string text("expected ");
  text += what;
  text += ", got ";
  if (got.empty()) {
    text += "nothing more";
  } else {
    text += '"' + std::string(got.substr(0, shown)) + (got.size() > shown ? "...\"" : "\"");
  }
  throw std::invalid_argument(text);
}

std::optional<Span> parse_span(std::string_view text) {
  struct Unit {
    std::string_view name;
    std::int64_t us;
  };
  // Longer names first, because one may end with another.
  constexpr Unit units[] = {
      {"us", 1}, {"ms", 1'000}, {"min", 60'000'000}, {"s", 1'000'000}, {"h", 3'600'000'000}};
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    text.remove_suffix(unit.name.size());
    const auto point = text.find('.');
    const auto whole = parse_number<std::int64_t>(text.substr(0, point));
    if (!whole || *whole < 0 || *whole > word_limit / unit.us) return {};
    std::int64_t us = *whole * unit.us;
    if (point == std::string_view::npos) return Span{us};
    const std::string_view digits = text.substr(point + 1);
    if (digits.empty() || digits.size() > 10) return {};
    std::int64_t scale = unit.us;
    for (const char digit : digits) {
      if (digit < '0' || digit > '9' || scale % 10 != 0) return {};
      scale /= 10;
      us += (digit - '0') * scale;
    }
    return Span{us};
  }
  return {};
}

}  // namespace sluice::testing::detail
