// A log under a quota: what is admitted must follow from the quota by hand.
// Threading: single-threaded.
#include "sim/log/replay.hpp"

#include <stdexcept>

#include "cli/text.hpp"
#include "sim/log/load.hpp"
#include "tests/catch.hpp"

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
  CHECK(ratio(3, 2) == "1.50");
  CHECK(ratio(2, 3) == "0.67");
  CHECK(ratio(0, 3) == "0.00");
  CHECK(ratio(1, 0) == "-");
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
