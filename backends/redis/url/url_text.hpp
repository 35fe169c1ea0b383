// The parts of the text of a URL. Pure functions.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "src/util/quoted.hpp"

namespace sluice::redis_detail {

/// Throws std::invalid_argument of parse_redis_url().
[[noreturn]] void refuse_url(const std::string& what);

/// Cuts off what stands before the first `mark`, and the mark; nothing if there is none.
std::optional<std::string_view> cut_front(std::string_view& rest, std::string_view mark);

/// Cuts off what stands behind the first `mark`, and the mark; nothing if there is none.
std::optional<std::string_view> cut_back(std::string_view& rest, char mark);

/// The bytes that %XX stand for. `part` is what an error calls the text, which may be secret.
[[nodiscard]] std::string decoded(std::string_view text, const std::string& part);

template <class Number>
[[nodiscard]] Number number(std::string_view text, const std::string& part, Number low,
                            Number high) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (!whole || value < low || value > high) {
    refuse_url(part + " must be " + std::to_string(low) + " to " + std::to_string(high) + ", got " +
               detail::quoted(text));
  }
  return value;
}

[[nodiscard]] inline unsigned database(std::string_view text) {
  return number<unsigned>(text, "the database", 0, 1'000'000);
}

}  // namespace sluice::redis_detail
