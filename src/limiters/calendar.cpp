// The arithmetic of calendars. Windows of a unit are numbered: days since 1970, weeks since the
// first that begins in 1970, months, quarters and years since the year 0.
#include "sluice/limiters/calendar.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "src/core/unit_text.hpp"

namespace sluice {
namespace {

constexpr Word day_us = 86'400'000'000;

constexpr Word floor_div(Word a, Word b) noexcept { return a / b - (a % b < 0 ? 1 : 0); }

/// The number of the month that contains this day since 1970.
Word month_of(Word day) noexcept {
  const std::chrono::year_month_day date{
      std::chrono::sys_days{std::chrono::days{static_cast<int>(day)}}};
  return Word{int{date.year()}} * 12 + Word{unsigned{date.month()}} - 1;
}

/// This day of a month, or its last one if it is shorter, since 1970.
Word day_of(Word month, Word day) noexcept {
  const auto year = static_cast<int>(floor_div(month, 12));
  const auto rest = static_cast<unsigned>(month - Word{year} * 12);
  const auto number = std::chrono::year{year} / std::chrono::month{rest + 1};
  const std::chrono::year_month_day_last last = number / std::chrono::last;
  const std::chrono::sys_days date =
      number / std::min(std::chrono::day{static_cast<unsigned>(day)}, last.day());
  return date.time_since_epoch().count();
}

Time cut(Time time) noexcept { return std::clamp(time, Time{}, to_time(word_limit)); }

}  // namespace

struct Calendar::Unit {
  const char* name;
  Word days;    ///< of a window, or 0
  Word months;  ///< of a window without days
  Word first;   ///< the usual `first_`
};

Calendar::Calendar(const Unit& unit, TimeZone zone, Word first, Span at)
    : origin_(at),
      unit_(&unit),
      first_(first),
      zone_(std::make_shared<const TimeZone>(std::move(zone))) {
  if (at < Span{0} || at >= Span{day_us}) {
    throw std::invalid_argument("the time of day must be 0 to " + std::to_string(day_us - 1) +
                                " us, got " + std::to_string(at.count()) + " us");
  }
}

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

Calendar Calendar::daily(TimeZone zone, Span at) {
  static constexpr Unit day{"daily", 1, 0, 0};
  return {day, std::move(zone), day.first, at};
}

Calendar Calendar::weekly(TimeZone zone, std::chrono::weekday first, Span at) {
  static constexpr Unit week{"weekly", 7, 0, 4};  // Monday is 1970-01-05
  if (!first.ok()) {
    throw std::invalid_argument("the first day of a week must be a weekday from 0 to 6, got " +
                                std::to_string(first.c_encoding()));
  }
  return {week, std::move(zone), (first - std::chrono::Thursday).count(), at};
}

Calendar Calendar::monthly(TimeZone zone, int day, Span at) {
  static constexpr Unit month{"monthly", 0, 1, 1};
  if (day < 1 || day > 31) {
    throw std::invalid_argument("the day of a month must be 1 to 31, got " + std::to_string(day));
  }
  return {month, std::move(zone), day, at};
}

Calendar Calendar::quarterly(TimeZone zone) {
  static constexpr Unit quarter{"quarterly", 0, 3, 1};
  return {quarter, std::move(zone), quarter.first, Span{0}};
}

Calendar Calendar::yearly(TimeZone zone) {
  static constexpr Unit year{"yearly", 0, 12, 1};
  return {year, std::move(zone), year.first, Span{0}};
}

std::string Calendar::to_string() const {
  const auto later = [](Span span) {
    return span == Span{0} ? std::string() : '+' + detail::span_text(span);
  };
  if (is_even()) return detail::span_text(width_) + later(origin_);
  constexpr std::array weekdays{"thu", "fri", "sat", "sun", "mon", "tue", "wed"};
  std::string text = unit_->name;
  if (first_ != unit_->first) {
    const bool is_week = unit_->days > 0;
    text += ':' + (is_week ? weekdays[static_cast<std::size_t>(first_)] : std::to_string(first_));
  }
  return text + later(origin_) + '@' + zone_->name();
}

Word Calendar::first_day_of(Word index) const noexcept {
  if (unit_->days > 0) return first_ + index * unit_->days;
  return day_of(index * unit_->months, first_);
}

Time Calendar::begin_of(Word index) const noexcept {
  return zone_->first_instant(first_day_of(index) * day_us + origin_.count());
}

Word Calendar::index_at(Time time) const noexcept {
  const Word day = floor_div(to_word(time + zone_->offset_at(time)), day_us);
  Word index = unit_->days > 0 ? floor_div(day - first_, unit_->days)
                               : floor_div(month_of(day), unit_->months);
  // The day of `time` may precede the first day or hour of its window; and after a change of the
  // offset, the local clock may repeat a date whose window has ended.
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
