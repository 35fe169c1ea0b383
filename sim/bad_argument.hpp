// Messages about arguments of models. Threading: pure functions.
#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>

#include "sluice/time.hpp"

namespace sluice::sim {

inline std::string us(Word value) { return std::to_string(value) + " us"; }

/// A number as a person writes it.
inline std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.12g", value);
  return text;
}

/// Throws std::invalid_argument: "`what` must be `allowed`, got `value`".
[[noreturn]] inline void refuse(const std::string& what, const std::string& allowed,
                                const std::string& value) {
  throw std::invalid_argument(what + " must be " + allowed + ", got " + value);
}

/// Throws std::invalid_argument unless low <= value <= high, which NaN is not.
inline void require_within(const char* what, double value, double low, double high) {
  if (value >= low && value <= high) return;
  refuse(what, text_of(low) + " to " + text_of(high), text_of(value));
}

}  // namespace sluice::sim
