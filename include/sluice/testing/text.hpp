// Formats values for messages: short, with units, and exact. Threading: pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <system_error>

#include "sluice/detail/text.hpp"
#include "sluice/store.hpp"
#include "sluice/testing/detail/error_names.hpp"

namespace sluice::testing {

namespace detail {

inline std::string two_digits(std::int64_t number) {
  return (number < 10 ? "0" : "") + std::to_string(number);
}

}  // namespace detail

/// "0 s", "250 us", "99.999 ms", "1.5 s", "2 min", "24 h": nothing is rounded.
[[nodiscard]] inline std::string to_text(Span span) { return sluice::detail::text_of(span); }

/// "2000-01-01 00:00:02.5 UTC". A time in 1970 is a time since the start of a test, "+2.5 s":
/// histories are shifted there to be readable, and no store's clock shows it.
[[nodiscard]] inline std::string to_text(Time time) {
  using namespace std::chrono;
  if (time < Time{hours{24 * 365}}) {
    const Span since = time.time_since_epoch();
    return (since < Span{0} ? "" : "+") + to_text(since);
  }
  const sys_days day{floor<days>(time.time_since_epoch())};
  const year_month_day date{day};
  const Word us = to_word(time) % Word{86'400'000'000};
  const Word seconds = us / 1'000'000;
  std::string fraction = sluice::detail::decimal(us % 1'000'000, 1'000'000).substr(1);
  return std::to_string(int{date.year()}) + '-' + detail::two_digits(unsigned{date.month()}) + '-' +
         detail::two_digits(unsigned{date.day()}) + ' ' + detail::two_digits(seconds / 3600) + ':' +
         detail::two_digits(seconds / 60 % 60) + ':' + detail::two_digits(seconds % 60) + fraction +
         " UTC";
}

/// The name of an Errc, "timed_out"; of other categories "system:110".
[[nodiscard]] inline std::string to_text(const std::error_code& error) {
  if (error.category() == error_category()) {
    const auto name = detail::find_name(static_cast<Errc>(error.value()));
    if (!name.empty()) return std::string(name);
  }
  return std::string(error.category().name()) + ':' + std::to_string(error.value());
}

/// The decision, or "the error timed_out".
[[nodiscard]] inline std::string to_text(const Outcome& outcome) {
  if (!outcome.error) return to_string(outcome.decision);
  const auto step = outcome.decision.step;
  return "the error " + to_text(outcome.error) +
         (step == 0 ? "" : " of step " + std::to_string(step));
}

}  // namespace sluice::testing
