// Calendars over zones of the tz database. Threading: single-threaded.
#include "sluice/timezone/time_zone.hpp"

#include <chrono>
#include <stdexcept>

#include "sluice/fixed_window.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"

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

}  // namespace

TEST_CASE("days of Berlin and New York have 23 and 25 hours when clocks change", "[timezone]") {
  const Calendar berlin = Calendar::daily(load_time_zone("Europe/Berlin"));
  check_window(berlin, utc(2024, 3, 30, 23h), utc(2024, 3, 31, 22h));
  check_window(berlin, utc(2024, 10, 26, 22h), utc(2024, 10, 27, 23h));
  check_window(berlin, utc(2024, 12, 30, 23h), utc(2024, 12, 31, 23h));
  const Calendar new_york = Calendar::daily(load_time_zone("America/New_York"));
  check_window(new_york, utc(2024, 3, 10, 5h), utc(2024, 3, 11, 4h));
  check_window(new_york, utc(2024, 11, 3, 4h), utc(2024, 11, 4, 5h));
  check_window(new_york, utc(2036, 3, 9, 5h), utc(2036, 3, 10, 4h));
}

TEST_CASE("days begin at the end of the gap where midnight is skipped", "[timezone]") {
  const Calendar sao_paulo = Calendar::daily(load_time_zone("America/Sao_Paulo"));
  check_window(sao_paulo, utc(2017, 10, 14, 3h), utc(2017, 10, 15, 3h));
  check_window(sao_paulo, utc(2017, 10, 15, 3h), utc(2017, 10, 16, 2h));  // 23 hours
  check_window(sao_paulo, utc(2018, 2, 17, 2h), utc(2018, 2, 18, 3h));    // 25 hours
  const Calendar cairo = Calendar::daily(load_time_zone("Africa/Cairo"));
  check_window(cairo, utc(2014, 5, 14, 22h), utc(2014, 5, 15, 22h));
  check_window(cairo, utc(2014, 5, 15, 22h), utc(2014, 5, 16, 21h));
}

TEST_CASE("a date that Samoa skipped has no window", "[timezone]") {
  const Calendar days = Calendar::daily(load_time_zone("Pacific/Apia"));
  check_window(days, utc(2011, 12, 29, 10h), utc(2011, 12, 30, 10h));
  check_window(days, utc(2011, 12, 30, 10h), utc(2011, 12, 31, 10h));
}

TEST_CASE("months of a zone begin at its midnights", "[timezone]") {
  const Calendar months = Calendar::monthly(load_time_zone("America/New_York"));
  check_window(months, utc(2024, 2, 1, 5h), utc(2024, 3, 1, 5h));
  check_window(months, utc(2024, 3, 1, 5h), utc(2024, 4, 1, 4h));
  check_window(months, utc(2024, 12, 1, 5h), utc(2025, 1, 1, 5h));
}

TEST_CASE("a zone without changes has one offset", "[timezone]") {
  CHECK(load_time_zone("UTC").changes().size() == 1);
  const TimeZone kolkata = load_time_zone("Asia/Kolkata");
  CHECK(kolkata.changes().size() == 1);
  CHECK(kolkata.offset_at(utc(2024, 1, 1)) == 5h + 30min);
  CHECK(load_time_zone("Europe/Berlin").changes().size() > 50);
}

TEST_CASE("an unknown time zone is refused by name", "[timezone]") {
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
