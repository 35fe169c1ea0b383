// Reads the words of one line of text. Threading: one thread.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/time.hpp"

namespace sluice::testing::detail {

/// Throws std::invalid_argument with the expected and the actual text.
[[noreturn]] void expected(std::string_view what, std::string_view got);

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
[[nodiscard]] std::optional<Span> parse_span(std::string_view text);

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
