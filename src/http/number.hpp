// Decimal numbers of any length, as vendors write them: "60", "0.5", "1470173023.123".
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "sluice/time.hpp"

namespace sluice::http::detail {

struct Decimal {
  /// The largest number; larger ones are clamped to it.
  static constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t whole = 0;
  std::uint32_t micro = 0;  ///< millionths, 0 to 999,999, rounded down
  bool rounded = false;     ///< there was more behind them
  bool negative = false;    ///< and not zero

  /// whole.micro times `unit`, rounded up, at most `word_limit`.
  [[nodiscard]] Word times_rounded_up(Word unit) const noexcept;
};

/// Takes a number off the front of `text`: an optional sign, digits, and an optional fraction.
/// None, and nothing is taken, if there is none. O(digits).
[[nodiscard]] std::optional<Decimal> take_decimal(std::string_view& text) noexcept;

}  // namespace sluice::http::detail
