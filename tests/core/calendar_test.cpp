// Calendars and time zones: where windows begin. Threading: single-threaded.
#include "sluice/limiters/calendar.hpp"

#include <chrono>
#include <functional>
#include <stdexcept>

#include "tests/catch.hpp"
#include "tests/support/refusals.hpp"

using namespace sluice;
using namespace sluice::test;
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
  CHECK(calendar.window(begin + (end - begin) / 2) == window);
  CHECK(calendar.window(end - 1us) == window);
  CHECK(calendar.window(end).begin == end);
  CHECK(calendar.window(begin - 1us).end == begin);
}

/// The rule of fixed windows takes the words of a calendar.
void check_words(const std::array<Word, 6>& words) {
  CHECK(fixed_window_acquire.check(
            {1, words[0], words[1], words[2], words[3], words[4], words[5]}) == Verdict::allowed);
}

/// The days around two changes of central European time.
const TimeZone berlin("Europe/Berlin", {{utc(2023, 10, 29, 1h), 1h},
                                        {utc(2024, 3, 31, 1h), 2h},
                                        {utc(2024, 10, 27, 1h), 1h},
                                        {utc(2025, 3, 30, 1h), 2h}});

}  // namespace

TEST_CASE("windows of a width are aligned to UTC, or to their origin", "[core][calendar]") {
  check_window(Calendar::every(1h), utc(2024, 2, 29, 23h), utc(2024, 3, 1));
  check_window(Calendar::every(24h), utc(2024, 12, 31), utc(2025, 1, 1));
  const Calendar shifted = Calendar::every(1min, utc(2024, 1, 1, 15s));
  check_window(shifted, utc(2024, 2, 29, 15s), utc(2024, 2, 29, 75s));
  CHECK(shifted.words(utc(2030, 1, 1)) == std::array<Word, 6>{60'000'000, 15'000'000});
  CHECK(Calendar::every(7us, Time{5us}).window(Time{4us}) == Calendar::Window{Time{}, Time{5us}});
}

TEST_CASE("months have 28 to 31 days, weeks begin on Monday, years on 1 January",
          "[core][calendar]") {
  const Calendar months = Calendar::monthly();
  check_window(months, utc(2023, 2, 1), utc(2023, 3, 1));
  check_window(months, utc(2024, 2, 1), utc(2024, 3, 1));
  CHECK(utc(2024, 3, 1) - utc(2024, 2, 1) == 29 * 24h);
  check_window(months, utc(2100, 2, 1), utc(2100, 3, 1));
  CHECK(utc(2100, 3, 1) - utc(2100, 2, 1) == 28 * 24h);  // no leap year
  check_window(months, utc(2024, 12, 1), utc(2025, 1, 1));
  const auto words = months.words(utc(2024, 12, 31, 23h));
  CHECK(words == std::array<Word, 6>{0, to_word(utc(2024, 11, 1)), to_word(utc(2024, 12, 1)),
                                     to_word(utc(2025, 1, 1)), to_word(utc(2025, 2, 1)),
                                     to_word(utc(2025, 3, 1))});
  check_window(Calendar::weekly(), utc(2024, 12, 30), utc(2025, 1, 6));
  CHECK(Calendar::weekly().window(Time{}) == Calendar::Window{Time{}, utc(1970, 1, 5)});
  const Calendar quarters = Calendar::quarterly();
  check_window(quarters, utc(2024, 1, 1), utc(2024, 4, 1));
  check_window(quarters, utc(2024, 4, 1), utc(2024, 7, 1));
  check_window(quarters, utc(2024, 7, 1), utc(2024, 10, 1));
  check_window(quarters, utc(2024, 10, 1), utc(2025, 1, 1));
  check_window(Calendar::yearly(), utc(2024, 1, 1), utc(2025, 1, 1));
}

TEST_CASE("a month from a day that it lacks begins on its last", "[core][calendar]") {
  const auto from = [](int day) { return Calendar::monthly(TimeZone::utc(), day); };
  check_window(from(31), utc(2023, 1, 31), utc(2023, 2, 28));
  check_window(from(31), utc(2023, 2, 28), utc(2023, 3, 31));
  check_window(from(31), utc(2024, 2, 29), utc(2024, 3, 31));
  check_window(from(31), utc(2024, 4, 30), utc(2024, 5, 31));
  check_window(from(30), utc(2024, 2, 29), utc(2024, 3, 30));
  check_window(from(29), utc(2023, 2, 28), utc(2023, 3, 29));
  check_window(from(28), utc(2024, 2, 28), utc(2024, 3, 28));
  check_window(from(15), utc(2024, 12, 15), utc(2025, 1, 15));
  CHECK(from(31).window(Time{}) == Calendar::Window{Time{}, utc(1970, 1, 31)});
}

TEST_CASE("windows begin on the day and at the time that are asked for", "[core][calendar]") {
  for (unsigned day = 0; day < 7; ++day) {
    const std::chrono::weekday first(day);
    const Time begin = utc(2024, 12, 29, day * 24h);  // the 29th is a Sunday
    check_window(Calendar::weekly(TimeZone::utc(), first), begin, begin + 7 * 24h);
    check_window(Calendar::weekly(TimeZone::utc(), first, 17h), begin + 17h, begin + 7 * 24h + 17h);
  }
  CHECK(Calendar::weekly(TimeZone::utc(), std::chrono::Sunday).window(Time{}).end ==
        utc(1970, 1, 4));
  const Calendar last_moment = Calendar::daily(TimeZone::utc(), 24h - 1us);
  check_window(last_moment, utc(2024, 3, 1) - 1us, utc(2024, 3, 2) - 1us);
  check_window(Calendar::monthly(TimeZone::utc(), 31, 17h), utc(2024, 2, 29, 17h),
               utc(2024, 3, 31, 17h));
  CHECK(Calendar::daily(TimeZone::utc(), 17h).window(Time{}) ==
        Calendar::Window{Time{}, utc(1970, 1, 1, 17h)});
}

TEST_CASE("different calendars have different texts", "[core][calendar]") {
  const TimeZone utc_zone = TimeZone::utc();
  CHECK(Calendar::daily(utc_zone, 17h).to_string() == "daily+17h@UTC");
  CHECK(Calendar::weekly(utc_zone, std::chrono::Monday).to_string() == "weekly@UTC");
  CHECK(Calendar::weekly(utc_zone, std::chrono::Sunday).to_string() == "weekly:sun@UTC");
  CHECK(Calendar::weekly(utc_zone, std::chrono::weekday(7)).to_string() == "weekly:sun@UTC");
  CHECK(Calendar::weekly(utc_zone, std::chrono::Wednesday, 90min).to_string() ==
        "weekly:wed+90min@UTC");
  CHECK(Calendar::monthly(utc_zone, 1).to_string() == "monthly@UTC");
  CHECK(Calendar::monthly(utc_zone, 15, 17h).to_string() == "monthly:15+17h@UTC");
  CHECK(Calendar::monthly(utc_zone, 4).to_string() == "monthly:4@UTC");
  CHECK(Calendar::quarterly().to_string() == "quarterly@UTC");
  CHECK(Calendar::yearly(berlin).to_string() == "yearly@Europe/Berlin");
}

TEST_CASE("a local day has 23 hours in spring and 25 in autumn", "[core][calendar]") {
  const Calendar days = Calendar::daily(berlin);
  check_window(days, utc(2024, 3, 30, 23h), utc(2024, 3, 31, 22h));    // 23 hours
  check_window(days, utc(2024, 10, 26, 22h), utc(2024, 10, 27, 23h));  // 25 hours
  check_window(Calendar::weekly(berlin), utc(2024, 3, 24, 23h), utc(2024, 3, 31, 22h));
  check_window(Calendar::monthly(berlin), utc(2024, 2, 29, 23h), utc(2024, 3, 31, 22h));
}

TEST_CASE("where midnight is skipped, the day begins at the end of the gap", "[core][calendar]") {
  // America/Sao_Paulo, 2017-10-15: from 00:00 to 01:00.
  const TimeZone zone("São Paulo", {{utc(2017, 2, 19, 2h), -3h}, {utc(2017, 10, 15, 3h), -2h}});
  check_window(Calendar::daily(zone), utc(2017, 10, 14, 3h), utc(2017, 10, 15, 3h));
  check_window(Calendar::daily(zone), utc(2017, 10, 15, 3h), utc(2017, 10, 16, 2h));
}

TEST_CASE("where midnight comes twice, the day begins at the first", "[core][calendar]") {
  // America/Havana, 2024-11-03: from 01:00 back to 00:00.
  const TimeZone once("Havana", {{utc(2024, 3, 10, 5h), -4h}, {utc(2024, 11, 3, 5h), -5h}});
  check_window(Calendar::daily(once), utc(2024, 11, 3, 4h), utc(2024, 11, 4, 5h));
  // America/St_Johns, 2010-11-07: from 00:01 back to 23:01 of the day before.
  const TimeZone again("St. John's", {{utc(2010, 3, 14, 3h + 31min), -2h - 30min},
                                      {utc(2010, 11, 7, 2h + 31min), -3h - 30min}});
  check_window(Calendar::daily(again), utc(2010, 11, 7, 2h + 30min), utc(2010, 11, 8, 3h + 30min));
}

TEST_CASE("a window holds its time also where dates come again", "[core][calendar]") {
  // Westwards over the date line: 30 and then 50 hours come again.
  for (const Span back : {Span{1h}, Span{24h}, Span{30h}, Span{50h}}) {
    const TimeZone zone("Back", {{Time{}, 25h}, {utc(2024, 6, 15, 12h), 25h - back}});
    for (const Calendar& calendar :
         {Calendar::daily(zone), Calendar::daily(zone, 17h), Calendar::weekly(zone),
          Calendar::monthly(zone), Calendar::monthly(zone, 15), Calendar::quarterly(zone)}) {
      for (Time time = utc(2024, 6, 10); time < utc(2024, 6, 22); time += 30min) {
        const Calendar::Window window = calendar.window(time);
        INFO(to_word(window.begin) << " to " << to_word(window.end) << ": " << to_word(time));
        REQUIRE(window.begin <= time);
        REQUIRE(time < window.end);
        REQUIRE(calendar.words(time)[2] == to_word(window.begin));
        REQUIRE(calendar.words(time)[3] == to_word(window.end));
      }
    }
  }
}

TEST_CASE("a date that is skipped has no window", "[core][calendar]") {
  // Pacific/Apia had no 2011-12-30.
  const TimeZone apia("Apia", {{utc(2011, 9, 24, 14h), -10h}, {utc(2011, 12, 30, 10h), 14h}});
  const Calendar days = Calendar::daily(apia);
  check_window(days, utc(2011, 12, 29, 10h), utc(2011, 12, 30, 10h));  // the 29th
  check_window(days, utc(2011, 12, 30, 10h), utc(2011, 12, 31, 10h));  // the 31st
  const auto words = days.words(utc(2011, 12, 30, 9h));
  CHECK(words[3] == words[4]);
  check_words(words);
}

TEST_CASE("windows follow each other without a gap, and words() hold the present one",
          "[core][calendar]") {
  for (const Calendar& calendar :
       {Calendar::daily(berlin), Calendar::weekly(berlin), Calendar::monthly(berlin),
        Calendar::monthly(), Calendar::daily(), Calendar::weekly(), Calendar::daily(berlin, 150min),
        Calendar::weekly(berlin, std::chrono::Sunday, 17h), Calendar::monthly(berlin, 31, 90min)}) {
    Time time = utc(2023, 10, 1);
    for (int i = 0; i < 600; ++i) {
      const Calendar::Window window = calendar.window(time);
      REQUIRE(window.begin <= time);
      REQUIRE(time < window.end);
      const auto words = calendar.words(time);
      REQUIRE(words[2] == to_word(window.begin));
      REQUIRE(words[3] == to_word(window.end));
      REQUIRE(words[1] == to_word(calendar.window(window.begin - 1us).begin));
      time = window.end;
    }
  }
}

TEST_CASE("a calendar is cut to the range of time, beyond which are its first and last window",
          "[core][calendar]") {
  const auto first = Calendar::monthly().words(Time{});
  CHECK(first[1] == 0);
  CHECK(first[2] == 0);
  CHECK(first[3] == to_word(utc(1970, 2, 1)));
  const auto last = Calendar::monthly().words(to_time(word_limit));
  CHECK(last[3] == word_limit);
  CHECK(last[5] == word_limit);
  const auto first_year = Calendar::yearly(berlin).words(Time{});
  CHECK(first_year[2] == 0);
  CHECK(first_year[3] == to_word(utc(1970, 12, 31, 23h)));
  for (const auto& words : {first, last, first_year}) check_words(words);
  for (const Calendar& calendar : {Calendar::every(1min), Calendar::daily(),
                                   Calendar::weekly(berlin), Calendar::monthly(berlin)}) {
    const auto same = [&](Time beyond, Time edge) {
      CHECK(calendar.window(beyond) == calendar.window(edge));
      CHECK(calendar.words(beyond) == calendar.words(edge));
    };
    for (const Time early : {Time{} - 1us, to_time(-word_limit), Time::min()}) same(early, Time{});
    for (const Time late : {to_time(word_limit + 1), Time::max()}) same(late, to_time(word_limit));
  }
}

TEST_CASE("a calendar or time zone that cannot be is refused with the value", "[core][calendar]") {
  const TimeZone zone = TimeZone::utc();
  const std::vector<std::pair<std::function<void()>, const char*>> table{
      {[] { Calendar::every(0us); }, "got 0 us"},
      {[] { Calendar::every(-1us); }, "got -1 us"},
      {[] { Calendar::every(Calendar::max_width + 1us); }, "must be 1 to"},
      {[] { Calendar::every(1s, Time{-1us}); }, "1970"},
      {[&] { Calendar::monthly(zone, 0); }, "must be 1 to 31, got 0"},
      {[&] { Calendar::monthly(zone, 32); }, "must be 1 to 31, got 32"},
      {[&] { Calendar::daily(zone, -1us); }, "got -1 us"},
      {[&] { Calendar::daily(zone, 24h); }, "0 to 86399999999 us, got 86400000000 us"},
      {[&] { Calendar::weekly(zone, std::chrono::weekday(9)); }, "0 to 6, got 9"},
      {[] { TimeZone("a\nb", {}); }, "time zone \"a\\x0ab\": "},
      {[] {
         TimeZone("Far", {{Time{}, 27h}});
       },
       "26 hours"},
      {[] {
         TimeZone("Twice", {{Time{1us}, 1h}, {Time{1us}, 2h}});
       },
       "changes must rise: number 1 is at 1 us, the one before it at 1 us"}};
  for (const auto& [make, said] : table) CHECK(names(refusal(make), said));
}

TEST_CASE("a time zone that was moved from is as it was", "[core][calendar]") {
  TimeZone from("Mine", {{Time{}, 5h}});
  const TimeZone to = std::move(from);
  // NOLINTBEGIN(bugprone-use-after-move): that is what is tested
  CHECK(from.name() == "Mine");
  CHECK(from.offset_at(utc(2024, 7, 1)) == 5h);
  CHECK(Calendar::daily(from).to_string() == Calendar::daily(to).to_string());
  // NOLINTEND(bugprone-use-after-move)
}

TEST_CASE("an offset is in force from its change on", "[core][calendar]") {
  CHECK(berlin.offset_at(utc(2024, 3, 31, 1h) - 1us) == 1h);
  CHECK(berlin.offset_at(utc(2024, 3, 31, 1h)) == 2h);
  CHECK(berlin.offset_at(Time{}) == 1h);  // the first counts from the beginning
  CHECK(TimeZone::utc().offset_at(utc(2024, 7, 1)) == 0h);
}
