// How time is cut into windows: of one width, or as a calendar has them.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "sluice/detail/copy_on_move_ptr.hpp"
#include "sluice/limiters/time_zone.hpp"
#include "sluice/rules/fixed_window.hpp"

namespace sluice {

/// Windows that follow each other without a gap. An immutable value, cheap to copy.
///
///     Calendar::every(1min)                             // from full minute to full minute
///     Calendar::daily()                                 // UTC
///     Calendar::daily(load_time_zone("Europe/Berlin"))  // 23, 24 or 25 hours
///     Calendar::monthly(load_time_zone("America/New_York"))
class Calendar {
 public:
  static constexpr Span max_width{FixedWindowRule::max_width};

  /// Windows of one width, one of which begins at `origin`: by default aligned to UTC for whole
  /// fractions of a day. Throws std::invalid_argument if `width` is not in [1 us, max_width], or
  /// `origin` lies before 1970.
  static Calendar every(Span width, Time origin = Time{});

  /// From midnight to midnight. A day begins when the local clock first shows its date: where
  /// midnight is skipped, at the end of the gap. A date that is skipped altogether has no window.
  static Calendar daily(TimeZone zone = TimeZone::utc());
  /// From Monday's midnight to Monday's midnight.
  static Calendar weekly(TimeZone zone = TimeZone::utc());
  /// From the first midnight of a month to that of the next.
  static Calendar monthly(TimeZone zone = TimeZone::utc());

  struct Window {
    Time begin;
    Time end;
    friend bool operator==(const Window&, const Window&) = default;
  };

  /// The window that holds `time`: begin <= time < end. Both are cut to the range of Time, and so
  /// is `time`: what lies before it or beyond is its first instant or its last.
  [[nodiscard]] Window window(Time time) const noexcept;

  /// Words 1 to 6 of FixedWindowRule::Args: the width and origin, or the boundaries of the window
  /// before that of `time`, its own, and the two after.
  [[nodiscard]] std::array<Word, 1 + FixedWindowRule::boundaries> words(Time time) const noexcept;

  /// "1min", "1min+30s" with an origin, "daily@Europe/Berlin": another text, other windows.
  [[nodiscard]] std::string to_string() const;

  /// True if words() is the same at any time.
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
