// Calendars over zones of the tz database. Threading: single-threaded.
#include "sluice/timezone/time_zone.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <vector>

#include "sluice/limiters/fixed_window.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

/// An instant of UTC.
Time utc(int year, unsigned month, unsigned day, Span of_day = 0s) {
  const std::chrono::sys_days date =
      std::chrono::year{year} / std::chrono::month{month} / std::chrono::day{day};
  return to_time(std::chrono::microseconds{date.time_since_epoch()}.count()) + of_day;
}

void check_window(const Calendar& calendar, Time begin, Time end) {
  INFO(to_word(begin) << " to " << to_word(end));
  const Calendar::Window window{begin, end};
  CHECK(calendar.window(begin) == window);
  CHECK(calendar.window(end - 1us) == window);
  CHECK(calendar.window(end).begin == end);
  CHECK(calendar.window(begin - 1us).end == begin);
}

constexpr Word day_us = 86'400'000'000;

Word floor_div(Word a, Word b) { return a / b - (a % b < 0 ? 1 : 0); }

/// A calendar as its definition reads, for comparison: a window of a unit has begun when the local
/// clock has shown its first date, and a date that is shown again belongs to what has begun since.
struct Unit {
  const char* name;
  Calendar (*calendar)(TimeZone);
  Word (*number)(Word day);  ///< of the unit that holds this day since 1970
  Span at{0};                ///< the time at which its days begin

  /// The number of the window of `time`: that of the latest date that any clock showed until then.
  [[nodiscard]] Word window_at(const TimeZone& zone, Time time) const {
    const std::vector<OffsetChange>& changes = zone.changes();
    const auto shown = [this](Time when, Span offset) {
      return floor_div(to_word(when + offset - at), day_us);
    };
    Word latest = shown(time, zone.offset_at(time));
    const auto until =
        std::upper_bound(changes.begin(), changes.end(), time,
                         [](Time when, const OffsetChange& change) { return when < change.from; });
    // Three days before, every clock showed an earlier date.
    for (auto i = static_cast<std::size_t>(until - changes.begin()); i-- > 1;) {
      if (changes[i].from + 72h < time) break;
      latest = std::max(latest, shown(changes[i].from - 1us, changes[i - 1].offset));
    }
    return number(latest);
  }
};

Word day(Word number) { return number; }

/// The number of the week that begins on this day of 1970.
template <int first>
Word week(Word day) {
  return floor_div(day - first + 1, 7);
}

/// The number of the span of so many months that begins on the first.
template <Word months>
Word month(Word day) {
  const std::chrono::year_month_day date{
      std::chrono::sys_days{std::chrono::days{static_cast<int>(day)}}};
  return floor_div(Word{int{date.year()}} * 12 + Word{unsigned{date.month()}} - 1, months);
}

/// The number of the month that begins on the last day of the one before.
Word last_day(Word day) { return month<1>(day + 1); }

const Unit units[] = {
    {"day", [](TimeZone zone) { return Calendar::daily(std::move(zone)); }, day},
    {"day at 17:00", [](TimeZone zone) { return Calendar::daily(std::move(zone), 17h); }, day, 17h},
    {"day at 01:30", [](TimeZone zone) { return Calendar::daily(std::move(zone), 90min); }, day,
     90min},
    {"day at 02:30", [](TimeZone zone) { return Calendar::daily(std::move(zone), 150min); }, day,
     150min},
    {"week", [](TimeZone zone) { return Calendar::weekly(std::move(zone)); }, week<5>},
    {"Sunday",
     [](TimeZone zone) { return Calendar::weekly(std::move(zone), std::chrono::Sunday, 17h); },
     week<4>, 17h},
    {"month", [](TimeZone zone) { return Calendar::monthly(std::move(zone)); }, month<1>},
    {"last day", [](TimeZone zone) { return Calendar::monthly(std::move(zone), 31); }, last_day},
    {"quarter", [](TimeZone zone) { return Calendar::quarterly(std::move(zone)); }, month<3>},
    {"year", [](TimeZone zone) { return Calendar::yearly(std::move(zone)); }, month<12>},
};

/// Every zone of the system's database, those with the same changes once.
std::vector<TimeZone> all_zones() {
  namespace fs = std::filesystem;
  const fs::path root = "/usr/share/zoneinfo";
  std::vector<TimeZone> zones;
  std::set<std::vector<std::pair<Time, Span>>> known;
  if (!fs::exists(root)) return zones;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
    const std::string name = fs::relative(entry.path(), root).string();
    if (!entry.is_regular_file() || name.starts_with("right/") || name.starts_with("posix/")) {
      continue;
    }
    try {
      TimeZone zone = load_time_zone(name);
      std::vector<std::pair<Time, Span>> changes;
      for (const OffsetChange& change : zone.changes()) {
        changes.emplace_back(change.from, change.offset);
      }
      if (known.insert(std::move(changes)).second) zones.push_back(std::move(zone));
    } catch (const std::invalid_argument&) {  // a file of the folder that is no zone
    }
  }
  return zones;
}

/// Instants around a change: its own, the hour that is skipped or comes twice, the midnights.
std::vector<Time> around(const OffsetChange& before, const OffsetChange& change) {
  std::vector<Time> times;
  const Span step = std::chrono::abs(change.offset - before.offset);
  for (const Time middle :
       {change.from, change.from + step, change.from - step,
        to_time(floor_div(to_word(change.from + change.offset), day_us) * day_us) - change.offset,
        to_time(floor_div(to_word(change.from + before.offset), day_us) * day_us) -
            before.offset}) {
    for (const Span apart : {-24h + 0us, -30min + 0us, -1us, 0us, 1us, 30min + 0us, 24h + 0us}) {
      if (middle + apart >= Time{}) times.push_back(middle + apart);
    }
  }
  return times;
}

}  // namespace

/// Some windows by hand; the last test judges all others by their definition.
TEST_CASE("a window of a zone begins and ends where its clocks say", "[timezone]") {
  const TimeZone berlin = load_time_zone("Europe/Berlin");
  const TimeZone new_york = load_time_zone("America/New_York");
  const TimeZone sao_paulo = load_time_zone("America/Sao_Paulo");
  const TimeZone samoa = load_time_zone("Pacific/Apia");
  const struct {
    const char* why;
    Calendar calendar;
    Time begin, end;
  } rows[] = {
      {"23 hours", Calendar::daily(berlin), utc(2024, 3, 30, 23h), utc(2024, 3, 31, 22h)},
      {"25 hours", Calendar::daily(berlin), utc(2024, 10, 26, 22h), utc(2024, 10, 27, 23h)},
      {"23 hours", Calendar::daily(new_york), utc(2036, 3, 9, 5h), utc(2036, 3, 10, 4h)},
      {"no midnight", Calendar::daily(sao_paulo), utc(2017, 10, 15, 3h), utc(2017, 10, 16, 2h)},
      {"no such date", Calendar::daily(samoa), utc(2011, 12, 29, 10h), utc(2011, 12, 30, 10h)},
      {"behind it", Calendar::daily(samoa), utc(2011, 12, 30, 10h), utc(2011, 12, 31, 10h)},
      {"25 hours from 17:00", Calendar::daily(new_york, 17h), utc(2024, 11, 2, 21h),
       utc(2024, 11, 3, 22h)},
      {"02:30 is skipped", Calendar::daily(new_york, 150min), utc(2024, 3, 10, 7h),
       utc(2024, 3, 11, 6h + 30min)},
      {"01:30 comes twice", Calendar::daily(new_york, 90min), utc(2024, 11, 3, 5h + 30min),
       utc(2024, 11, 4, 6h + 30min)},
      {"a week", Calendar::weekly(berlin, std::chrono::Sunday), utc(2024, 10, 26, 22h),
       utc(2024, 11, 2, 23h)},
      {"a month", Calendar::monthly(berlin, 15, 17h), utc(2024, 10, 15, 15h),
       utc(2024, 11, 15, 16h)},
      {"from the last day", Calendar::monthly(new_york, 31), utc(2024, 2, 29, 5h),
       utc(2024, 3, 31, 4h)},
      {"a quarter", Calendar::quarterly(new_york), utc(2024, 1, 1, 5h), utc(2024, 4, 1, 4h)},
      {"a year", Calendar::yearly(berlin), utc(2023, 12, 31, 23h), utc(2024, 12, 31, 23h)},
  };
  for (const auto& row : rows) {
    INFO(row.why << ", " << row.calendar.to_string());
    check_window(row.calendar, row.begin, row.end);
  }
}

TEST_CASE("who waits across the end of a window gets one grant, when it ends",
          "[timezone][waiting]") {
  const TimeZone new_york = load_time_zone("America/New_York");
  for (const Calendar& calendar :
       {Calendar::daily(new_york), Calendar::daily(new_york, 17h),
        Calendar::daily(new_york, 2h + 30min), Calendar::weekly(new_york, std::chrono::Sunday),
        Calendar::monthly(new_york, 31), Calendar::quarterly(new_york),
        Calendar::yearly(new_york)}) {
    for (const Time night : {utc(2024, 3, 10, 6h + 59min), utc(2024, 11, 3, 5h + 59min)}) {
      INFO(calendar.to_string());
      const Time edge = calendar.window(night).end;
      VirtualClock clock(std::max(night, edge - 48h));
      const VirtualClock::AutoAdvance moving(clock);
      const auto store = make_virtual_store(clock);
      const FixedWindow window(*store, "w", 2, calendar);
      REQUIRE(window.try_acquire("k", 2));
      CHECK_FALSE(window.acquire("k", 1, edge - 1us));
      CHECK(window.acquire("k", 1, edge));
      CHECK(clock.now() == edge);
      CHECK(window.peek("k").remaining == 1);
      CHECK(window.peek("k").reset_after == calendar.window(edge).end - edge);
    }
  }
}

TEST_CASE("a zone without changes has one offset", "[timezone]") {
  CHECK(load_time_zone("UTC").changes().size() == 1);
  const TimeZone kolkata = load_time_zone("Asia/Kolkata");
  CHECK(kolkata.changes().size() == 1);
  CHECK(kolkata.offset_at(utc(2024, 1, 1)) == 5h + 30min);
  CHECK(load_time_zone("Europe/Berlin").changes().size() > 50);
}

TEST_CASE("an unknown time zone is refused by name", "[timezone]") {
  const char* const nothing = nullptr;
  CHECK_THROWS_AS(load_time_zone(nothing), std::invalid_argument);
  for (const std::string name :
       {"Europe/Atlantis", "", "../../etc/passwd", "/etc/passwd", "x\ny"}) {
    INFO(name);
    try {
      (void)load_time_zone(name);
      FAIL("it was loaded");
    } catch (const std::invalid_argument& e) {
      const std::string shown = name == "x\ny" ? "x?y" : name;
      CHECK(std::string(e.what()).find('"' + shown + '"') != std::string::npos);
    }
  }
}

TEST_CASE("10,000 operations a day are counted from midnight to midnight of New York",
          "[timezone][fixed_window]") {
  VirtualClock clock(utc(2024, 11, 3, 3h + 59min));  // 25 hours lie ahead, from 04:00 on
  const auto store = make_virtual_store(clock);
  const FixedWindow operations(*store, "operations", 10'000,
                               Calendar::daily(load_time_zone("America/New_York")));
  CHECK(operations.try_acquire("account", 10'000).allowed);
  CHECK(operations.try_acquire("account").retry_after == 1min);
  clock.advance(1min);
  CHECK(operations.try_acquire("account", 10'000).remaining == 0);
  CHECK(operations.try_acquire("account").retry_after == 25h);
  clock.advance(25h - 1us);
  CHECK(operations.try_acquire("account").retry_after == 1us);
  clock.advance(1us);
  CHECK(operations.try_acquire("account").remaining == 9'999);
}

TEST_CASE("around every change of every zone a window holds its time and is that of its date",
          "[timezone]") {
  const std::vector<TimeZone> zones = all_zones();
  CHECK(zones.size() > 200);
  const std::size_t step = std::max(std::size_t{1}, zones.size() / test::scaled(zones.size()));
  std::size_t repeated_hours = 0;
  for (std::size_t z = 0; z < zones.size(); z += step) {
    const TimeZone& zone = zones[z];
    for (const Unit& unit : units) {
      INFO(zone.name() << ", " << unit.name);
      const Calendar calendar = unit.calendar(zone);
      for (std::size_t i = 1; i < zone.changes().size(); ++i) {
        const OffsetChange& before = zone.changes()[i - 1];
        const OffsetChange& change = zone.changes()[i];
        if (change.offset < before.offset) ++repeated_hours;
        for (const Time time : around(before, change)) {
          const Calendar::Window window = calendar.window(time);
          const Word number = unit.window_at(zone, time);
          const bool holds_it = window.begin <= time && time < window.end;
          const bool ends_with_date = unit.window_at(zone, window.end - 1us) == number &&
                                      unit.window_at(zone, window.end) > number;
          const bool begins_with_date =
              window.begin == Time{} || (unit.window_at(zone, window.begin) == number &&
                                         unit.window_at(zone, window.begin - 1us) < number);
          if (holds_it && ends_with_date && begins_with_date) continue;
          INFO(to_word(time) << " in " << to_word(window.begin) << " to " << to_word(window.end));
          CHECK(holds_it);
          CHECK(ends_with_date);
          REQUIRE(begins_with_date);
        }
      }
    }
  }
  CHECK(repeated_hours > 4'000 / step);
}
