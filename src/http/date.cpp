// Parses dates: fixed forms, field by field, with strict punctuation.
#include "src/http/date.hpp"

#include <algorithm>
#include <array>

#include "src/http/ascii.hpp"
#include "src/http/number.hpp"

namespace sluice::http::detail {
namespace {

using std::chrono::day;
using std::chrono::month;
using std::chrono::year;
using std::chrono::year_month_day;

constexpr std::array<std::string_view, 12> month_names{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::array<std::string_view, 7> day_names{"Monday", "Tuesday",  "Wednesday", "Thursday",
                                                    "Friday", "Saturday", "Sunday"};

struct Stamp {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  unsigned hour = 0;
  unsigned minute = 0;
  unsigned second = 0;
};

/// Exactly this many digits.
template <class T>
bool take_digits(std::string_view& text, std::size_t count, T& value) noexcept {
  if (text.size() < count) return false;
  value = 0;
  for (const char c : text.substr(0, count)) {
    if (!is_digit(c)) return false;
    value = static_cast<T>(value * 10 + static_cast<T>(c - '0'));
  }
  text.remove_prefix(count);
  return true;
}

bool take_month(std::string_view& text, Stamp& stamp) noexcept {
  const auto* const found = std::find(month_names.begin(), month_names.end(), text.substr(0, 3));
  if (found == month_names.end()) return false;
  stamp.month = static_cast<unsigned>(found - month_names.begin()) + 1;
  text.remove_prefix(3);
  return true;
}

bool take_clock(std::string_view& text, Stamp& stamp) noexcept {
  return take_digits(text, 2, stamp.hour) && take(text, ":") &&
         take_digits(text, 2, stamp.minute) && take(text, ":") &&
         take_digits(text, 2, stamp.second);
}

bool take_short_day(std::string_view& text) noexcept {
  return std::any_of(day_names.begin(), day_names.end(),
                     [&](auto name) { return take(text, name.substr(0, 3)); });
}

bool take_long_day(std::string_view& text) noexcept {
  return std::any_of(day_names.begin(), day_names.end(),
                     [&](auto name) { return take(text, name); });
}

bool read_imf(std::string_view text, Stamp& stamp) noexcept {
  return take_short_day(text) && take(text, ", ") && take_digits(text, 2, stamp.day) &&
         take(text, " ") && take_month(text, stamp) && take(text, " ") &&
         take_digits(text, 4, stamp.year) && take(text, " ") && take_clock(text, stamp) &&
         text == " GMT";
}

bool read_rfc850(std::string_view text, Stamp& stamp) noexcept {
  return take_long_day(text) && take(text, ", ") && take_digits(text, 2, stamp.day) &&
         take(text, "-") && take_month(text, stamp) && take(text, "-") &&
         take_digits(text, 2, stamp.year) && take(text, " ") && take_clock(text, stamp) &&
         text == " GMT";
}

bool read_asctime(std::string_view text, Stamp& stamp) noexcept {
  return take_short_day(text) && take(text, " ") && take_month(text, stamp) && take(text, " ") &&
         (take(text, " ") ? take_digits(text, 1, stamp.day) : take_digits(text, 2, stamp.day)) &&
         take(text, " ") && take_clock(text, stamp) && take(text, " ") &&
         take_digits(text, 4, stamp.year) && text.empty();
}

/// Microseconds since the epoch, or none if there is no such day or hour.
std::optional<std::int64_t> count(const Stamp& stamp) noexcept {
  const year_month_day date(year{stamp.year}, month{stamp.month}, day{stamp.day});
  if (!date.ok() || stamp.hour > 23 || stamp.minute > 59 || stamp.second > 60) return std::nullopt;
  const Span days = std::chrono::sys_days(date).time_since_epoch();
  return (days + std::chrono::hours{stamp.hour} + std::chrono::minutes{stamp.minute} +
          std::chrono::seconds{stamp.second})
      .count();
}

Time bounded(std::int64_t microseconds) noexcept {
  return to_time(std::clamp(microseconds, Word{0}, word_limit));
}

/// The century of a year of two digits: at most 50 years ahead.
std::optional<std::int64_t> count_in_century(Stamp stamp, Time now) noexcept {
  const auto today =
      std::chrono::sys_days(std::chrono::floor<std::chrono::days>(now.time_since_epoch()));
  const year_month_day present(today);
  const year_month_day farthest(present.year() + std::chrono::years{50}, present.month(),
                                present.day());
  const int century = static_cast<int>(farthest.year()) / 100 * 100;
  stamp.year += century;
  const auto later = [&] {
    if (year{stamp.year} != farthest.year()) return year{stamp.year} > farthest.year();
    if (month{stamp.month} != farthest.month()) return month{stamp.month} > farthest.month();
    return day{stamp.day} > farthest.day();
  };
  if (later()) stamp.year -= 100;
  return count(stamp);
}

/// "Z", "+02:00": minutes east of Greenwich.
bool take_offset(std::string_view& text, int& minutes) noexcept {
  if (take(text, "Z") || take(text, "z")) return true;
  const int sign = take(text, "-") ? -1 : take(text, "+") ? 1 : 0;
  int hour = 0;
  int minute = 0;
  if (sign == 0 || !take_digits(text, 2, hour) || !take(text, ":") ||
      !take_digits(text, 2, minute) || hour > 23 || minute > 59) {
    return false;
  }
  minutes = sign * (hour * 60 + minute);
  return true;
}

/// ".789": microseconds, rounded up.
bool take_fraction(std::string_view& text, std::int64_t& microseconds) noexcept {
  if (!text.starts_with('.')) return true;
  std::string_view digits = text.substr(1);
  std::size_t length = 0;
  while (length < digits.size() && is_digit(digits[length])) ++length;
  if (length == 0) return false;
  text.remove_prefix(length + 1);
  std::int64_t place = 100'000;
  bool more = false;
  for (const char c : digits.substr(0, length)) {
    microseconds += (c - '0') * place;
    more = more || (place == 0 && c != '0');
    place /= 10;
  }
  microseconds += more ? 1 : 0;
  return true;
}

}  // namespace

std::optional<Time> parse_http_date(std::string_view text, Time now) noexcept {
  Stamp stamp;
  std::optional<std::int64_t> us;
  if (read_imf(text, stamp) || read_asctime(text, stamp = {})) {
    us = count(stamp);
  } else if (read_rfc850(text, stamp = {})) {
    us = count_in_century(stamp, now);
  }
  if (!us) return std::nullopt;
  return bounded(*us);
}

std::optional<Time> parse_rfc3339(std::string_view text) noexcept {
  Stamp stamp;
  std::int64_t fraction = 0;
  int offset = 0;
  const bool sound =
      take_digits(text, 4, stamp.year) && take(text, "-") && take_digits(text, 2, stamp.month) &&
      take(text, "-") && take_digits(text, 2, stamp.day) &&
      (take(text, "T") || take(text, "t") || take(text, " ")) && take_clock(text, stamp) &&
      take_fraction(text, fraction) && take_offset(text, offset) && text.empty();
  const auto us = sound ? count(stamp) : std::nullopt;
  if (!us) return std::nullopt;
  return bounded(*us + fraction - Span(std::chrono::minutes{offset}).count());
}

}  // namespace sluice::http::detail
