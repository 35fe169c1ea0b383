// Counts in header values, and which of two counts for one thing is kept.
#pragma once

#include <algorithm>
#include <optional>

#include "sluice/http/feedback.hpp"
#include "src/http/ascii.hpp"
#include "src/http/number.hpp"

namespace sluice::http::detail {

/// One whole count, with fractions rounded down.
struct WholeCount {
  Fate fate = Fate::malformed;  ///< used or clamped; else there is no count
  Word value = 0;

  [[nodiscard]] bool known() const noexcept { return fate == Fate::used || fate == Fate::clamped; }
};

[[nodiscard]] inline WholeCount whole_count(const Decimal& number) noexcept {
  if (number.negative) return {Fate::negative};
  const auto most = static_cast<std::uint64_t>(word_limit);
  return {number.whole > most ? Fate::clamped : Fate::used,
          static_cast<Word>(std::min(number.whole, most))};
}

/// The count that is all of the text.
[[nodiscard]] inline WholeCount parse_whole_count(std::string_view text) noexcept {
  const auto number = take_decimal(text);
  return number && text.empty() ? whole_count(*number) : WholeCount{};
}

/// Takes the text before the next separator off the front, without the blanks around it.
[[nodiscard]] inline std::string_view take_item(std::string_view& text, char separator) noexcept {
  const std::size_t end = text.find(separator);
  const std::string_view item = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return trimmed(item);
}

/// Keeps the smaller of two counts of what is left: the more cautious one.
inline Fate set_least(std::optional<Word>& known, Word value, Fate fate) noexcept {
  if (known && *known < value) return Fate::superseded;
  known = value;
  return fate;
}

/// Keeps the larger of two counts of what is spent.
inline Fate set_most(std::optional<Word>& known, Word value, Fate fate) noexcept {
  if (known && *known > value) return Fate::superseded;
  known = value;
  return fate;
}

}  // namespace sluice::http::detail
