// Local time as rules need it: which offset from UTC a place had and will have, and when.
#pragma once

#include <string>
#include <vector>

#include "sluice/detail/text_arg.hpp"
#include "sluice/time.hpp"

namespace sluice {

/// From `from` on, local time is UTC plus `offset`.
struct OffsetChange {
  Time from;
  Span offset;
};

/// A place's local time. Immutable; copies share nothing. The core knows UTC; a zone of the tz
/// database comes from load_time_zone() (sluice/timezone/time_zone.hpp, target sluice::timezone),
/// or from the changes that the user has.
class TimeZone {
 public:
  static constexpr Span max_offset = std::chrono::hours{26};

  static TimeZone utc() { return TimeZone("UTC", {{Time{}, Span{0}}}); }

  /// The first change counts from the beginning of time; `changes` rise. Throws
  /// std::invalid_argument, naming the zone, if there is none, they do not rise, or an offset
  /// exceeds max_offset in either direction.
  TimeZone(detail::TextArg name, std::vector<OffsetChange> changes);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::vector<OffsetChange>& changes() const noexcept { return changes_; }

  /// O(log changes).
  [[nodiscard]] Span offset_at(Time time) const noexcept;
  /// The first instant at which the local clock, microseconds since 1970-01-01 00:00 local time,
  /// shows `local` or later: where that time is skipped, the end of the gap; where it occurs twice,
  /// the first. O(log changes).
  [[nodiscard]] Time first_instant(Word local) const noexcept;

 private:
  /// The change in force at `time`.
  [[nodiscard]] std::vector<OffsetChange>::const_iterator change_at(Time time) const noexcept;

  std::string name_;
  std::vector<OffsetChange> changes_;
};

}  // namespace sluice
