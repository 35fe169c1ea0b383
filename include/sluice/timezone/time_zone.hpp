// Time zones of the IANA database, for calendars. Target sluice::timezone: it needs Howard
// Hinnant's date library, or else a standard library that has the database.
#pragma once

#include "sluice/limiters/time_zone.hpp"

namespace sluice {

/// Loads a zone of the system's tz database by its name, "Europe/Berlin" or "UTC", with every
/// change of its offset from 1970 on that the database lists. Most systems list changes up to 2037;
/// the last offset stays in force after that. Takes about a millisecond and reads files: load a
/// zone once, when the limiter is made. A long-running process sees new rules when it loads the
/// zone again. Thread-safe.
///
/// Throws std::invalid_argument, naming the zone, if there is none of that name, and
/// std::runtime_error if the system has no database.
[[nodiscard]] TimeZone load_time_zone(detail::TextArg name);

}  // namespace sluice
