// The meaning of a header's name: which number of which limit its value is.
#pragma once

#include <string_view>

#include "sluice/http/feedback.hpp"

namespace sluice::http::detail {

enum class Meaning : std::uint8_t {
  none,     ///< nothing about limits
  unknown,  ///< about a limit, but not known what
  date,
  age,
  retry_after,
  retry_after_ms,
  rate_limit,  ///< the draft's RateLimit
  policy,      ///< the draft's RateLimit-Policy
  limit,
  remaining,
  used,
  reset,
  reset_ms,
  length,
  length_ms,
  used_of_limit,  ///< "32/40"
  resource,
  scope,
  global,
  reason,
};

struct FieldName {
  Meaning meaning = Meaning::none;
  std::string_view source{};  ///< views of the name that was read
  std::string_view group{};
};

/// The name in lower case; empty if it is longer than any known name.
[[nodiscard]] Text lower_name(std::string_view name) noexcept;

/// REQUIRES: a name in lower case, which outlives the result. O(length).
[[nodiscard]] FieldName read_field_name(std::string_view lower) noexcept;

}  // namespace sluice::http::detail
