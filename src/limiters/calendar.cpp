// The arithmetic of calendars. Windows of a unit are numbered: days since 1970, weeks since the
// Monday of 1970-01-05, months since the year 0.
#include "sluice/limiters/calendar.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "src/core/unit_text.hpp"

namespace sluice {
namespace {

constexpr Word day_us = 86'400'000'000;
constexpr Word first_monday = 4;

constexpr Word floor_div(Word a, Word b) noexcept { return a / b - (a % b < 0 ? 1 : 0); }

/// The number of the month that contains this day since 1970.
Word month_of(Word day) noexcept {
  const std::chrono::year_month_day date{
      std::chrono::sys_days{std::chrono::days{static_cast<int>(day)}}};
  return Word{int{date.year()}} * 12 + Word{unsigned{date.month()}} - 1;
}

/// The first day of a month, since 1970.
Word first_day_of(Word month) noexcept {
  const auto year = static_cast<int>(floor_div(month, 12));
  const auto rest = static_cast<unsigned>(month - Word{year} * 12);
  const std::chrono::sys_days day = std::chrono::year{year} / std::chrono::month{rest + 1} / 1;
  return day.time_since_epoch().count();
}

Time cut(Time time) noexcept { return std::clamp(time, Time{}, to_time(word_limit)); }

}  // namespace

Calendar::Calendar(Unit unit, TimeZone zone)
    : unit_(unit), zone_(std::make_shared<const TimeZone>(std::move(zone))) {}

Calendar Calendar::every(Span width, Time origin) {
  if (width < Span{1} || width > max_width) {
    throw std::invalid_argument("the width of a window must be 1 to " +
                                std::to_string(max_width.count()) + " us, got " +
                                std::to_string(width.count()) + " us");
  }
  if (origin < Time{}) {
    throw std::invalid_argument("the origin of windows must not lie before 1970, got " +
                                std::to_string(to_word(origin)) + " us");
  }
  return {width, origin.time_since_epoch() % width};
}

Calendar Calendar::daily(TimeZone zone) { return {Unit::day, std::move(zone)}; }
Calendar Calendar::weekly(TimeZone zone) { return {Unit::week, std::move(zone)}; }
Calendar Calendar::monthly(TimeZone zone) { return {Unit::month, std::move(zone)}; }

std::string Calendar::to_string() const {
  if (is_even()) {
    const std::string width = detail::span_text(width_);
    return origin_ == Span{0} ? width : width + '+' + detail::span_text(origin_);
  }
  const char* const unit = unit_ == Unit::month  ? "monthly@"
                           : unit_ == Unit::week ? "weekly@"
                                                 : "daily@";
  return unit + zone_->name();
}

Time Calendar::begin_of(Word index) const noexcept {
  const Word day = unit_ == Unit::month  ? first_day_of(index)
                   : unit_ == Unit::week ? first_monday + index * 7
                                         : index;
  return zone_->first_instant(day * day_us);
}

Word Calendar::index_at(Time time) const noexcept {
  const Word day = floor_div(to_word(time + zone_->offset_at(time)), day_us);
  Word index = unit_ == Unit::month  ? month_of(day)
               : unit_ == Unit::week ? floor_div(day - first_monday, 7)
                                     : day;
  // After a change of the offset, the local clock may repeat a date whose window has ended.
  while (begin_of(index + 1) <= time) ++index;
  while (begin_of(index) > time) --index;
  return index;
}

Calendar::Window Calendar::window(Time time) const noexcept {
  time = cut(time);
  if (is_even()) {
    if (time < Time{origin_}) return {Time{}, Time{origin_}};
    const Time begin = time - (time - Time{origin_}) % width_;
    return {begin, cut(begin + width_)};
  }
  const Word index = index_at(time);
  return {cut(begin_of(index)), cut(begin_of(index + 1))};
}

std::array<Word, 1 + FixedWindowRule::boundaries> Calendar::words(Time time) const noexcept {
  std::array<Word, 1 + FixedWindowRule::boundaries> words{width_.count(), origin_.count()};
  if (is_even()) return words;
  const Word index = index_at(cut(time));
  for (std::size_t i = 0; i < FixedWindowRule::boundaries; ++i) {
    words[1 + i] = to_word(cut(begin_of(index - 1 + static_cast<Word>(i))));
  }
  return words;
}

}  // namespace sluice
