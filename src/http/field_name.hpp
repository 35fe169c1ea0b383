// The meaning of a header's name: which number of which limit its value is.
#pragma once

#include <string_view>

#include "sluice/http/feedback.hpp"
#include "src/http/wait.hpp"

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
  usage,             ///< Strava's used counts of two windows
  used_in_interval,  ///< Binance's, whose group is the interval
  rate,              ///< Amazon's units a second
  reset,
  reset_ms,
  length,
  length_ms,
  used_of_limit,  ///< "32/40"
  resource,
  scope,
  global,
  reason,
  sentry,       ///< X-Sentry-Rate-Limits
  rules,        ///< the groups of Path of Exile's rules
  rule_policy,  ///< their policy
};

struct FieldName {
  Meaning meaning = Meaning::none;
  std::string_view source{};  ///< views of the name that was read
  std::string_view group{};
};

/// The name in lower case; empty if it is longer than any known name.
[[nodiscard]] Text lower_name(std::string_view name) noexcept;

/// The unit of plain numbers in the headers of a source. Vendors differ, and a size does not tell.
[[nodiscard]] TimeUnit unit_of(std::string_view source) noexcept;

/// REQUIRES: a name in lower case, which outlives the result. O(length).
[[nodiscard]] FieldName read_field_name(std::string_view lower) noexcept;

}  // namespace sluice::http::detail
