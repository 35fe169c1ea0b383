// Calendar: how a FixedWindow divides time into windows, of one width or of days, weeks, months,
// quarters and years.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string>

#include "sluice/detail/copy_on_move_ptr.hpp"
#include "sluice/limiters/time_zone.hpp"
#include "sluice/rules/fixed_window.hpp"

namespace sluice {

/// A sequence of windows without gaps. An immutable value, cheap to copy.
///
///     Calendar::every(1min)                             // aligned to full minutes
///     Calendar::daily()                                 // UTC
///     Calendar::daily(load_time_zone("Europe/Berlin"))  // windows of 23, 24 or 25 hours
///     Calendar::daily(load_time_zone("America/New_York"), 17h)
///     Calendar::weekly(TimeZone::utc(), std::chrono::Sunday)
///     Calendar::monthly(load_time_zone("America/New_York"), 15)
///
/// A window begins when the local clock first shows its date and time of day: where a change of the
/// clock skips that time, at the end of the gap; where the time comes twice, at the first. A window
/// that is skipped altogether does not exist.
class Calendar {
 public:
  static constexpr Span max_width{FixedWindowRule::max_width};

  /// Windows of one width, one of which begins at `origin`; by default a width that divides a day
  /// is aligned to UTC midnight. Throws std::invalid_argument if `width` is not in [1 us,
  /// max_width], or `origin` is before 1970.
  static Calendar every(Span width, Time origin = Time{});

  /// From `at` of the local clock to `at` on the next day: by default from midnight. Throws
  /// std::invalid_argument, here and below, if `at` is not in [0, 24 h).
  static Calendar daily(TimeZone zone = TimeZone::utc(), Span at = Span{0});
  /// From this day of the week, at `at`. Throws std::invalid_argument if `first` is no weekday.
  static Calendar weekly(TimeZone zone = TimeZone::utc(),
                         std::chrono::weekday first = std::chrono::Monday, Span at = Span{0});
  /// From this day of each month, at `at`; in shorter months from their last day, so that 31 is the
  /// last day of every month. Throws std::invalid_argument if `day` is not in [1, 31].
  static Calendar monthly(TimeZone zone = TimeZone::utc(), int day = 1, Span at = Span{0});
  /// From the first of January, April, July and October.
  static Calendar quarterly(TimeZone zone = TimeZone::utc());
  /// From the first of January.
  static Calendar yearly(TimeZone zone = TimeZone::utc());

  struct Window {
    Time begin;
    Time end;
    friend bool operator==(const Window&, const Window&) = default;
  };

  /// The window that contains `time`: begin <= time < end. `time` and both ends are clamped to the
  /// range of Time.
  [[nodiscard]] Window window(Time time) const noexcept;

  /// Words 1 to 6 of FixedWindowRule::Args: the width and origin; or 0 and the boundaries of four
  /// windows, from the one before that of `time` to the second after it.
  [[nodiscard]] std::array<Word, 1 + FixedWindowRule::boundaries> words(Time time) const noexcept;

  /// "1min", "1min+30s" with an origin, "daily@Europe/Berlin", "monthly:15+17h@UTC". Different
  /// calendars have different texts.
  [[nodiscard]] std::string to_string() const;

  /// True if all windows have one width; words() is then the same at any time.
  [[nodiscard]] bool is_even() const noexcept { return width_ > Span{0}; }

 private:
  struct Unit;  // days, weeks, months: what a window holds

  Calendar(Span width, Span origin) : width_(width), origin_(origin) {}
  Calendar(const Unit& unit, TimeZone zone, Word first, Span at);

  [[nodiscard]] Word first_day_of(Word index) const noexcept;
  [[nodiscard]] Time begin_of(Word index) const noexcept;
  [[nodiscard]] Word index_at(Time time) const noexcept;

  Span width_{0};
  Span origin_{0};  ///< of windows of one width; else the time of day at which windows begin
  const Unit* unit_ = nullptr;
  Word first_ = 0;  ///< of days and weeks: the day since 1970 of number 0; of months: the day
  detail::CopyOnMovePtr<const TimeZone> zone_{};  // null: windows of one width
};

}  // namespace sluice
