// Reads the words of one line of text. Threading: one thread.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "sluice/time.hpp"

namespace sluice::testing::detail {

/// Throws std::invalid_argument with the expected and the actual text.
[[noreturn]] inline void expected(std::string_view what, std::string_view got) {
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

/// The whole of `text` as a number in decimal (or in hex), or nothing.
template <class Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, base);
  if (text.empty() || error != std::errc{} || rest != end) return {};
  return value;
}

/// "50ms", "1.5s": a decimal with up to the digits of a microsecond, and us, ms, s, min or h. Up to
/// word_limit.
inline std::optional<Span> parse_span(std::string_view text) {
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

class Cursor {
 public:
  explicit Cursor(std::string_view line) : left_(line) {}

  /// The next word without taking it; empty at the end.
  [[nodiscard]] std::string_view peek() const { return left_.substr(0, left_.find(' ')); }
  std::string_view take() {
    const std::string_view word = peek();
    left_.remove_prefix(std::min(left_.size(), word.size() + 1));
    return word;
  }
  /// Takes the next word if it is this one.
  bool take_if(std::string_view word) {
    if (peek() != word || left_.empty()) return false;
    take();
    return true;
  }
  void require(std::string_view word) {
    if (!take_if(word)) expected('"' + std::string(word) + '"', peek());
  }
  template <class Number>
  Number number(std::string_view what) {
    const auto value = parse_number<Number>(peek());
    if (!value) expected(what, peek());
    take();
    return *value;
  }
  [[nodiscard]] bool at_end() const { return left_.empty(); }
  [[nodiscard]] std::string_view rest() const { return left_; }

 private:
  std::string_view left_;
};

}  // namespace sluice::testing::detail
