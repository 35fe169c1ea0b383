// Calendar: how a FixedWindow divides time into windows, of one width or of days, weeks and months.
#pragma once

#include <array>
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
///     Calendar::monthly(load_time_zone("America/New_York"))
class Calendar {
 public:
  static constexpr Span max_width{FixedWindowRule::max_width};

  /// Windows of one width, one of which begins at `origin`; by default a width that divides a day
  /// is aligned to UTC midnight. Throws std::invalid_argument if `width` is not in [1 us,
  /// max_width], or `origin` is before 1970.
  static Calendar every(Span width, Time origin = Time{});

  /// From midnight to midnight. A day begins when the local clock first shows its date: where a
  /// change of the clock skips midnight, at the end of the gap. A date that is skipped altogether
  /// has no window.
  static Calendar daily(TimeZone zone = TimeZone::utc());
  /// From midnight on Monday to midnight on the next Monday.
  static Calendar weekly(TimeZone zone = TimeZone::utc());
  /// From midnight on the first of a month to that of the next month.
  static Calendar monthly(TimeZone zone = TimeZone::utc());

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

  /// "1min", "1min+30s" with an origin, "daily@Europe/Berlin". Different calendars have different
  /// texts.
  [[nodiscard]] std::string to_string() const;

  /// True if all windows have one width; words() is then the same at any time.
  [[nodiscard]] bool is_even() const noexcept { return width_ > Span{0}; }

 private:
  enum class Unit { day, week, month };

  Calendar(Span width, Span origin) : width_(width), origin_(origin) {}
  Calendar(Unit unit, TimeZone zone);

  [[nodiscard]] Time begin_of(Word index) const noexcept;
  [[nodiscard]] Word index_at(Time time) const noexcept;

  Span width_{0};
  Span origin_{0};
  Unit unit_ = Unit::day;
  detail::CopyOnMovePtr<const TimeZone> zone_{};  // null: windows of one width
};

}  // namespace sluice
