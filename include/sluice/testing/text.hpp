// How the test kit writes values for people: short, in units, and exact.
// Threading: pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <system_error>

#include "sluice/store.hpp"
#include "sluice/testing/detail/error_names.hpp"

namespace sluice::testing {

namespace detail {

/// `count / unit` as a decimal without trailing zeros. REQUIRES: count >= 0, unit a power of ten.
inline std::string decimal(std::int64_t count, std::int64_t unit) {
  std::string out = std::to_string(count / unit);
  std::string digits = std::to_string(unit + count % unit).substr(1);
  digits.erase(digits.find_last_not_of('0') + 1);
  return digits.empty() ? out : out + '.' + digits;
}

inline std::string two_digits(std::int64_t number) {
  return (number < 10 ? "0" : "") + std::to_string(number);
}

}  // namespace detail

/// "0 s", "250 us", "99.999 ms", "1.5 s", "2 min", "24 h": nothing is rounded.
[[nodiscard]] inline std::string to_text(Span span) {
  constexpr std::int64_t ms = 1'000;
  constexpr std::int64_t s = 1'000 * ms;
  constexpr std::int64_t min = 60 * s;
  constexpr std::int64_t h = 60 * min;
  const std::int64_t us = span.count();
  if (us == INT64_MIN || us == INT64_MAX) return us < 0 ? "-for ever" : "for ever";
  if (us < 0) return '-' + to_text(Span{-us});
  if (us >= h && us % h == 0) return std::to_string(us / h) + " h";
  if (us >= min && us % min == 0) return std::to_string(us / min) + " min";
  if (us >= s || us == 0) return detail::decimal(us, s) + " s";
  if (us >= ms) return detail::decimal(us, ms) + " ms";
  return std::to_string(us) + " us";
}

/// "2000-01-01 00:00:02.5 UTC". An instant of 1970 is the time since a test began, "+2.5 s": no
/// store's clock stands there, and histories are shifted there to be read.
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
  std::string fraction = detail::decimal(us % 1'000'000, 1'000'000).substr(1);
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

/// "refused, 0 of 5 left, retry after 100 ms, reset after 500 ms".
[[nodiscard]] inline std::string to_text(const Decision& d) {
  std::string out = d.allowed ? "allowed" : "refused";
  out += ", " + std::to_string(d.remaining) + " of " + std::to_string(d.limit) + " left";
  if (d.retry_after != Span{0}) {
    out += (d.allowed ? ", in " : ", retry after ") + to_text(d.retry_after);
  }
  if (d.reset_after != Span{0}) out += ", reset after " + to_text(d.reset_after);
  if (d.step != 0) out += ", step " + std::to_string(d.step);
  if (d.part != 0) out += ", part " + std::to_string(d.part);
  return out;
}

/// The decision, or "the error timed_out".
[[nodiscard]] inline std::string to_text(const Outcome& outcome) {
  if (!outcome.error) return to_text(outcome.decision);
  const auto step = outcome.decision.step;
  return "the error " + to_text(outcome.error) +
         (step == 0 ? "" : " of step " + std::to_string(step));
}

}  // namespace sluice::testing
