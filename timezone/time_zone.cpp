// Reads the changes of a zone's offset from the database that the standard library or the date
// library opens. Threading: those are thread-safe.
#include "sluice/timezone/time_zone.hpp"

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>

#ifdef SLUICE_STD_TZDB
namespace tzdb = std::chrono;
#else
#include <date/tz.h>
namespace tzdb = date;
#endif

namespace sluice {
namespace {

/// As messages show a name that may come from anywhere.
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, 64)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (text.size() > 64 ? "...\"" : "\"");
}

/// A name is no path: what could leave the database's folder is none.
bool may_be_a_name(std::string_view name) noexcept {
  return !name.empty() && name.front() != '/' && name.find("..") == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

const tzdb::time_zone* find(std::string_view name) {
  (void)tzdb::get_tzdb();  // first: without a database, no name is unknown
  if (!may_be_a_name(name)) return nullptr;
  try {
    return tzdb::locate_zone(name);
  } catch (const std::runtime_error&) {
    return nullptr;
  }
}

}  // namespace

TimeZone load_time_zone(detail::TextArg text) {
  const std::string_view name = text;
  const tzdb::time_zone* const zone = find(name);
  if (zone == nullptr) {
    throw std::invalid_argument("unknown time zone " + in_quotes(name) +
                                "; names are those of the tz database, such as \"Europe/Berlin\"");
  }
  constexpr std::chrono::sys_seconds end{
      std::chrono::duration_cast<std::chrono::seconds>(Span{word_limit})};
  std::vector<OffsetChange> changes;
  for (std::chrono::sys_seconds at{}; at < end;) {
    const auto info = zone->get_info(at);
    if (changes.empty() || changes.back().offset != info.offset) {
      changes.push_back(
          {to_time(std::chrono::microseconds{at.time_since_epoch()}.count()), info.offset});
    }
    if (info.end <= at) break;
    at = info.end;
  }
  return TimeZone(name, std::move(changes));
}

}  // namespace sluice
