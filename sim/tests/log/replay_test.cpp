// A log under a quota: what is admitted must follow from the quota by hand; logs that cannot tell
// what live traffic would meet are recognised, and whole ones are not suspected. Threading:
// single-threaded.
#include "sim/log/replay.hpp"

#include <cmath>
#include <stdexcept>

#include "cli/text.hpp"
#include "sim/log/load.hpp"
#include "sim/log/log_coverage.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::tool;
using namespace std::chrono_literals;

namespace {

AccessLog log_of(std::vector<std::pair<std::int64_t, std::uint32_t>> requests) {
  AccessLog log;
  log.clients = {"a", "b", "c"};
  for (const auto& [second, client] : requests) log.requests.push_back({second, client});
  return log;
}

}  // namespace

TEST_CASE("each client has a bucket of its own, and refusals are counted for each") {
  // 1 a second, burst 2: a asks three times at 100 and again at 101; b asks once.
  const AccessLog log = log_of({{100, 0}, {100, 0}, {100, 1}, {100, 0}, {101, 0}, {101, 0}});
  const ReplayResult r = replay(log, Quota::per_second(1).burst(2));
  CHECK(r.admitted == 4);
  CHECK(r.refused == 2);
  CHECK(r.clients_refused == 1);
  CHECK(r.refused_of == std::vector<std::uint64_t>{2, 0, 0});
}

TEST_CASE("a refused request spends nothing") {
  // 1 a minute: the refused requests at 1 s to 59 s do not put off the one at 60 s.
  std::vector<std::pair<std::int64_t, std::uint32_t>> requests;
  for (std::int64_t second = 0; second <= 60; ++second) requests.emplace_back(second, 0U);
  const ReplayResult r = replay(log_of(requests), Quota::per_minute(1));
  CHECK(r.admitted == 2);
  CHECK(r.refused == 59);
}

TEST_CASE("an empty log replays to nothing") {
  const ReplayResult r = replay(log_of({}), Quota::per_minute(1));
  CHECK(r.admitted + r.refused == 0);
  CHECK(busiest_minute(log_of({})).requests == 0);
}

TEST_CASE("the busiest minute is one of the clock, and the first of equals") {
  const AccessLog log = log_of({{59, 0}, {60, 0}, {119, 0}, {120, 0}, {180, 0}, {239, 0}});
  CHECK(busiest_minute(log).start == 60);
  CHECK(busiest_minute(log).requests == 2);
  CHECK(busiest_minute(log_of({{5, 0}})).start == 0);
  CHECK(requests_of(log) == std::vector<std::uint64_t>{6, 0, 0});
}

TEST_CASE("a quota is named with its burst, or takes the common one, or its count") {
  CHECK(parse_named_quota("30/min:10", 5).quota == Quota::per_minute(30).burst(10));
  CHECK(parse_named_quota("30/min", 5).quota == Quota::per_minute(30).burst(5));
  CHECK(parse_named_quota("30/min", 0).quota == Quota::per_minute(30));
  CHECK(parse_named_quota("30/min:10", 0).name == "30/min");
  for (const char* bad : {"", "30", "30/", "/min", "30/fortnight", "0/min", "-1/min",
                          "30/min:", "30/min:0", "30/min:-1", "30/min:x", "30/min:10x",
                          "30/min:1e3", "30/min:99999999999999999999", "1.5/s", "30/min 60/min"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_named_quota(bad, 0), std::invalid_argument);
  }
}

TEST_CASE("numbers are printed as people read them") {
  CHECK(thousands(0) == "0");
  CHECK(thousands(999) == "999");
  CHECK(thousands(1'000) == "1,000");
  CHECK(thousands(12'345'678) == "12,345,678");
  CHECK(duration(999us) == "999 us");
  CHECK(duration(1ms) == "1.00 ms");
  CHECK(duration(999'499us) == "999 ms");
  CHECK(duration(999'500us) == "1.00 s");
  CHECK(duration(59'949ms) == "59.9 s");
  CHECK(duration(60s) == "1m");
  CHECK(duration(220s) == "3m 40s");
  CHECK(duration(2h + 5min) == "2h 5m");
  CHECK(rate(7'750'000, 1s) == "7.75 M/s");
  CHECK(rate(812'000, 1s) == "812 k/s");
  CHECK(plural(1, "process") == "1 process");
  CHECK(plural(2'000, "process") == "2,000 processes");
  CHECK(printable("a\x1b\n", 60) == "a\\x1b\\x0a");
  CHECK(printable("abcdef", 3) == "abc...");
}

TEST_CASE("percentages are rounded half up, but only all is 100 % and only none is 0 %") {
  CHECK(percent(9'740, 9'999) == "97.4 %");
  CHECK(percent(259, 9'999) == "2.6 %");
  CHECK(percent(1, 3, 2) == "33.33 %");
  CHECK(percent(2, 3) == "66.7 %");
  CHECK(percent(1, 800) == "0.1 %");    // 0.125
  CHECK(percent(3, 2'000) == "0.2 %");  // 0.15
  CHECK(percent(1, 1) == "100.0 %");
  CHECK(percent(0, 7) == "0.0 %");
  CHECK(percent(999'999, 1'000'000) == "99.9 %");
  CHECK(percent(1, 1'000'000) == "0.1 %");
  CHECK(percent(99'999, 100'000, 2) == "99.99 %");
  CHECK(percent(1'000'001, 1'000'000) == "100.1 %");
  CHECK(percent(UINT64_MAX - 1, UINT64_MAX) == "99.9 %");
  CHECK(percent(1, 0) == "-");
}

TEST_CASE("a table's columns are as wide as their widest cell") {
  Table table({"name", "count"});
  table.add({"a longer name", "1"});
  table.add({"b", "12,345,678"});
  CHECK(table.text() ==
        "  name                count\n"
        "  a longer name           1\n"
        "  b              12,345,678\n");
}

TEST_CASE("the most that a quota admits in a time is its burst and what came back") {
  CHECK(most_admitted(Quota::per_second(10).burst(5), 0s) == 5);
  CHECK(most_admitted(Quota::per_second(10).burst(5), 99ms) == 5);
  CHECK(most_admitted(Quota::per_second(10).burst(5), 100ms) == 6);
}

namespace {

constexpr std::int64_t noon = 1'431'864'000;  // 17 May 2015 12:00 UTC
constexpr std::int64_t minute = 60;
constexpr std::int64_t hour = 3'600;
constexpr std::int64_t day = 86'400;

AccessLog log_at(const std::vector<std::int64_t>& seconds, std::uint32_t clients = 7) {
  AccessLog log;
  for (std::uint32_t i = 0; i < clients; ++i) log.clients.push_back(std::to_string(i));
  for (const std::int64_t second : seconds) {
    log.requests.push_back({second, static_cast<std::uint32_t>(log.requests.size() % clients)});
  }
  return log;
}

/// `count` requests in each minute that `holds(number)` names, for `minutes` from noon on.
template <class Holds>
std::vector<std::int64_t> in_minutes(std::int64_t minutes, std::int64_t count, Holds holds) {
  std::vector<std::int64_t> seconds;
  for (std::int64_t number = 0; number < minutes; ++number) {
    if (!holds(number)) continue;
    for (std::int64_t i = 0; i < count; ++i) {
      seconds.push_back(noon + number * minute + i * 59 / std::max<std::int64_t>(1, count - 1));
    }
  }
  return seconds;
}

}  // namespace

TEST_CASE("a log of one minute of each hour has gaps, is a sample and comes in whole minutes") {
  const AccessLog log =
      log_at(in_minutes(24 * 60, 120, [](std::int64_t number) { return number % 60 == 5; }));
  const LogCoverage coverage = coverage_of(log);
  CHECK_FALSE(coverage.complete());
  CHECK(coverage.sampling.period == 60);
  CHECK(coverage.sampling.minute == 5);
  CHECK(coverage.sampling.requests == 24 * 120);
  CHECK(coverage.isolated.count == 24);
  CHECK(coverage.isolated.requests == 24 * 120);
  CHECK(coverage.stamp_step == 1);
  // 2,880 requests in 23 hours: 10 times the longest silence to expect is 2,576 s.
  CHECK(coverage.gaps.count == 23);
  CHECK(coverage.gaps.total == 23 * (hour - 59));
  CHECK(coverage.gaps.longest == hour - 59);
  CHECK(coverage.gaps.start == noon + 5 * minute + 59);
}

TEST_CASE("the sampled minute is one of the log's own time zone, and the longest period counts") {
  auto seconds = in_minutes(12 * 60, 30, [](std::int64_t number) { return number % 60 == 40; });
  AccessLog log = log_at(seconds);
  log.utc_offset = 5 * hour + 30 * minute;
  CHECK(coverage_of(log).sampling.minute == 10);
  log.utc_offset = -(5 * hour + 45 * minute);
  CHECK(coverage_of(log).sampling.minute == 55);
  CHECK(coverage_of(log).sampling.period == 60);

  seconds = in_minutes(12 * 60, 30, [](std::int64_t number) { return number % 15 == 3; });
  CHECK(coverage_of(log_at(seconds)).sampling.period == 15);
  CHECK(coverage_of(log_at(seconds)).sampling.minute == 3);

  seconds = in_minutes(12 * 1'440, 30, [](std::int64_t number) { return number % 1'440 == 90; });
  CHECK(coverage_of(log_at(seconds)).sampling.period == 1'440);
  CHECK(coverage_of(log_at(seconds)).sampling.minute == 13 * 60 + 30);
}

TEST_CASE("a sample is told from 95 % of the requests and ten periods on") {
  const auto with_others = [](std::int64_t others) {
    auto seconds = in_minutes(10 * 60, 95, [](std::int64_t number) { return number % 60 == 5; });
    for (std::int64_t i = 0; i < others; ++i) seconds.push_back(noon + 7 * minute + i % minute);
    std::sort(seconds.begin(), seconds.end());
    return coverage_of(log_at(seconds)).sampling.period;
  };
  CHECK(with_others(50) == 60);  // of 1,000
  CHECK(with_others(51) == 0);
  const auto hours = [](std::int64_t count) {
    return coverage_of(log_at(in_minutes(count * 60, 95,
                                         [](std::int64_t number) { return number % 60 == 5; })))
        .sampling.period;
  };
  CHECK(hours(10) == 60);
  CHECK(hours(9) == 0);
}

TEST_CASE("a minute is isolated if five clients asked in it and nobody beside it") {
  const auto isolated = [](const std::vector<std::int64_t>& seconds, std::uint32_t clients) {
    return coverage_of(log_at(seconds, clients)).isolated.count;
  };
  const auto every = [](std::int64_t step) {
    return in_minutes(12, 10, [=](std::int64_t number) { return number % step == 0; });
  };
  CHECK(isolated(every(1), 5) == 0);
  CHECK(isolated(every(2), 5) == 6);
  CHECK(isolated(every(2), 4) == 0);
  CHECK(isolated(every(4), 5) == 3);
  CHECK(isolated(every(6), 5) == 0);  // two of them may be chance
  const auto pairs =
      in_minutes(30, 10, [](std::int64_t number) { return number % 5 == 0 || number % 5 == 1; });
  CHECK(isolated(pairs, 5) == 0);
  // Less than a tenth of the requests lie in three such minutes.
  const auto few = [&](std::int64_t in_busy_minute) {
    auto seconds = every(4);
    for (std::int64_t i = 0; i < in_busy_minute; ++i) {
      seconds.push_back(noon + 20 * minute + i * 2 * minute / in_busy_minute);
    }
    return isolated(seconds, 5);
  };
  CHECK(few(270) == 3);
  CHECK(few(271) == 0);
}

TEST_CASE("a silence is a gap if the traffic explains no tenth of it") {
  // A request each second for an hour, but for a gap: 10 * (1 + ln 3,600) = 92 s are explained, but
  // ten minutes are always allowed.
  const auto with_silence = [](std::int64_t silence) {
    std::vector<std::int64_t> seconds;
    for (std::int64_t i = 0; i < 1'800; ++i) seconds.push_back(noon + i);
    for (std::int64_t i = 0; i < 1'800; ++i) seconds.push_back(noon + 1'799 + silence + i);
    return coverage_of(log_at(seconds)).gaps;
  };
  CHECK(with_silence(600).count == 0);
  CHECK(with_silence(601).count == 1);
  CHECK(with_silence(601).longest == 601);
  CHECK(with_silence(601).start == noon + 1'799);
  // 100 requests, one an hour: no silence below 10 * mean * (1 + ln 100) is one.
  const auto hourly_with_silence = [](std::int64_t hours) {
    std::vector<std::int64_t> seconds;
    for (std::int64_t i = 0; i < 50; ++i) seconds.push_back(noon + i * hour);
    for (std::int64_t i = 0; i < 50; ++i) seconds.push_back(noon + (49 + hours + i) * hour + 7);
    return coverage_of(log_at(seconds)).gaps.count;
  };
  // With h hours of silence the mean is (98 + h) / 100 hours, and h > 0.56 * (98 + h) from 125 on.
  CHECK(hourly_with_silence(124) == 0);
  CHECK(hourly_with_silence(125) == 1);
}

TEST_CASE("stamps that are all apart by multiples of more than a second are coarse") {
  const auto step_of = [](std::int64_t step, std::size_t count) {
    std::vector<std::int64_t> seconds;
    for (std::size_t i = 0; i < count; ++i) {
      seconds.insert(seconds.end(), 3, noon + 7 + static_cast<std::int64_t>(i) * step);
    }
    return coverage_of(log_at(seconds)).stamp_step;
  };
  CHECK(step_of(1, 20) == 1);
  CHECK(step_of(2, 20) == 2);
  CHECK(step_of(60, 20) == 60);
  CHECK(step_of(60, 10) == 60);
  CHECK(step_of(60, 9) == 1);
  auto seconds = in_minutes(100, 1, [](std::int64_t) { return true; });
  CHECK(coverage_of(log_at(seconds)).stamp_step == 60);
  seconds.back() += 1;
  CHECK(coverage_of(log_at(seconds)).stamp_step == 1);
}

TEST_CASE("an empty log and one of one request are not suspected") {
  CHECK(coverage_of(log_at({})).complete());
  CHECK(coverage_of(log_at({noon})).complete());
  CHECK(coverage_of(log_at({noon, noon + 10 * day})).complete());
}

TEST_CASE("traffic at random times, with nights, is not suspected") {
  test::Random random("traffic at random times, with nights, is not suspected");
  CAPTURE(random.repeat());
  for (int round = 0; round < 20; ++round) {
    // From 60 requests an hour by day and 6 by night to 6,000 and 600, for three days.
    const std::uint64_t busy = 60 * (1 + random.below(100));
    std::vector<std::int64_t> seconds;
    for (std::int64_t second = 0; second < 3 * day; ++second) {
      const bool night = second / hour % 24 < 8;
      if (random.below(3'600 * 10) < (night ? busy : busy * 10)) seconds.push_back(noon + second);
    }
    CAPTURE(busy);
    CHECK(coverage_of(log_at(seconds, 50)).complete());
  }
}
