// TimeZone: the offsets from UTC of a place, for calendars in local time.
#pragma once

#include <string>
#include <vector>

#include "sluice/detail/arguments.hpp"
#include "sluice/time.hpp"

namespace sluice {

/// From `from` on, local time is UTC plus `offset`.
struct OffsetChange {
  Time from;
  Span offset;
};

/// The local time of a place. Immutable; copies share nothing, and a move copies. The core contains
/// UTC only; load_time_zone() (sluice/timezone/time_zone.hpp, target sluice::timezone) reads a zone
/// of the tz database, or the program passes its own offset changes.
class TimeZone {
 public:
  static constexpr Span max_offset = std::chrono::hours{26};

  static TimeZone utc() { return TimeZone("UTC", {{Time{}, Span{0}}}); }

  /// The first change also applies to all time before it; `changes` are in ascending order. Throws
  /// std::invalid_argument, naming the zone, if there is no change, they do not ascend, or an
  /// offset exceeds max_offset in either direction.
  TimeZone(detail::TextArg name, std::vector<OffsetChange> changes);
  TimeZone(const TimeZone&) = default;  // no move: it would leave a zone without changes
  TimeZone& operator=(const TimeZone&) = default;
  ~TimeZone() = default;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::vector<OffsetChange>& changes() const noexcept { return changes_; }

  /// O(log changes).
  [[nodiscard]] Span offset_at(Time time) const noexcept;
  /// The first instant at which the local clock, in microseconds since 1970-01-01 00:00 local time,
  /// shows `local` or later. If that local time is skipped, it is the end of the gap; if it occurs
  /// twice, the first occurrence. O(log changes).
  [[nodiscard]] Time first_instant(Word local) const noexcept;

 private:
  /// The change in force at `time`.
  [[nodiscard]] std::vector<OffsetChange>::const_iterator change_at(Time time) const noexcept;

  std::string name_;
  std::vector<OffsetChange> changes_;
};

}  // namespace sluice
