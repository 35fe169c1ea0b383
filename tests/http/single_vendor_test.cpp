// Vendors whose headers have forms of their own: the literal headers, and what is made of them.
#include <string>
#include <vector>

#include "tests/http/rows.hpp"

using namespace sluice;
using namespace sluice::http;
using namespace std::chrono_literals;

TEST_CASE("exchanges' counts and milliseconds are read in their own units") {
  check_table(R"(
Binance
< X-MBX-USED-WEIGHT: 37 | X-MBX-USED-WEIGHT-1M: 37 | X-MBX-USED-WEIGHT-5H: 4000
< X-MBX-ORDER-COUNT-10S: 3 | X-MBX-ORDER-COUNT-1D: 1234
> x-mbx-used-weight: used 37
> x-mbx-used-weight 1m: used 37, length 60s
> x-mbx-used-weight 5h: used 4000, length 18000s
> x-mbx-order-count 10s: used 3, length 10s
> x-mbx-order-count 1d: used 1234, length 86400s
Binance, 429 or 418: the weight of its SAPI
< X-SAPI-USED-IP-WEIGHT-1M: 12000 | Retry-After: 120
> retry 120s, wait 120s
> x-sapi-used-ip-weight 1m: used 12000, length 60s
KuCoin, in milliseconds
< gw-ratelimit-limit: 4000 | gw-ratelimit-remaining: 0 | gw-ratelimit-reset: 29875
> wait 29875ms
> gw-ratelimit: limit 4000, remaining 0, reset 29875ms
Feishu, in seconds
< x-ogw-ratelimit-limit: 100 | x-ogw-ratelimit-reset: 29
> x-ogw-ratelimit: limit 100, reset 29s)");
}

TEST_CASE("a rate of requests a second is no count of requests") {
  for (const std::string_view rate :
       parts_of("0.0055 181818182us|0.0167 59880240us|0.5 2s|1.0 1s|15 66667us|1000000 1us|"
                "3000000 1us|0.00002 50000s",
                '|')) {
    const auto value_and_interval = parts_of(rate, ' ');
    check_told("Amazon SP-API", {{"x-amzn-RateLimit-Limit", std::string(value_and_interval[0])}},
               "x-amzn-ratelimit: interval " + std::string(value_and_interval[1]) + "\n");
  }
  const auto fate = [](const char* name, const char* value) {
    const Feedback feedback = parse_lines({{name, value}});
    REQUIRE(feedback.notes().size() == 1);
    if (feedback.notes()[0].fate >= Fate::empty) CHECK(feedback.windows().empty());
    return feedback.notes()[0].fate;
  };
  CHECK(fate("x-amzn-RateLimit-Limit", "0") == Fate::malformed);
  CHECK(fate("x-amzn-RateLimit-Limit", "0.0") == Fate::malformed);
  CHECK(fate("x-amzn-RateLimit-Limit", "-0.5") == Fate::negative);
  CHECK(fate("x-amzn-RateLimit-Limit", "0.5/s") == Fate::malformed);
  CHECK(fate("x-amzn-RateLimit-Limit", "1e-3") == Fate::malformed);
  CHECK(fate("x-amzn-RateLimit-Limit", "0.000001") == Fate::clamped);
  CHECK(fate("x-amzn-RateLimit-Limit", "0.00000001") == Fate::clamped);
  CHECK(fate("x-amzn-RateLimit-Limit", "99999999999999999999999") == Fate::used);
  CHECK(fate("X-RateLimit-Limit", "0.0055") == Fate::no_unit);
  CHECK(fate("X-RateLimit-Limit", "0.0000001") == Fate::no_unit);
  CHECK(fate("X-RateLimit-Limit", "0.0") == Fate::used);
  CHECK(fate("X-RateLimit-Remaining", "0.5") == Fate::used);
}

TEST_CASE("Strava's pairs are two windows, which end at full quarters and at midnight UTC") {
  // It is 12:34:56.
  check_table(R"(
Strava
< X-RateLimit-Limit: 200,2000 | X-RateLimit-Usage: 28,413
< X-ReadRateLimit-Limit: 100,1000 | X-ReadRateLimit-Usage: 101, 999
> wait 604s
> x-ratelimit 15min: limit 200, remaining 172, used 28, reset 604s, length 900s
> x-ratelimit day: limit 2000, remaining 1587, used 413, reset 41104s, length 86400s
> x-readratelimit 15min: limit 100, remaining 0, used 101, reset 604s, length 900s
> x-readratelimit day: limit 1000, remaining 1, used 999, reset 41104s, length 86400s
Strava, the day is used up, by the server's Date
< Date: Thu, 29 Feb 2024 23:00:00 GMT
< X-Ratelimit-Usage: 2,30001 | X-Ratelimit-Limit: 600,30000
> wait 3600s
> x-ratelimit 15min: limit 600, remaining 598, used 2, reset 900s, length 900s
> x-ratelimit day: limit 30000, remaining 0, used 30001, reset 3600s, length 86400s
a list that is no pair of a limit and its usage: proxies have joined it
< X-RateLimit-Limit: 200,2000 | X-RateLimit-Remaining: 7
> x-ratelimit: limit 200, remaining 7
three counts are no pair
< X-RateLimit-Limit: 200,2000,5 | X-RateLimit-Usage: 1,2,3
> x-ratelimit: limit 5, remaining 2, used 3
one usage
< X-RateLimit-Limit: 200 | X-RateLimit-Usage: 28
> x-ratelimit: limit 200, remaining 172, used 28)");
}

TEST_CASE("each of Sentry's categories is a window, and no category is all of them") {
  check_table(R"(
Sentry
< Retry-After: 2700
< X-Sentry-Rate-Limits: 60:transaction:key, 2700:default;error;security:organization
> retry 2700s, wait 2700s
> x-sentry-rate-limits transaction: remaining 0, reset 60s, resource key
> x-sentry-rate-limits default: remaining 0, reset 2700s, resource organization
> x-sentry-rate-limits error: remaining 0, reset 2700s, resource organization
> x-sentry-rate-limits security: remaining 0, reset 2700s, resource organization
Sentry, all categories
< X-Sentry-Rate-Limits: 60::organization, 2700.5::organization
> wait 2700500ms
> x-sentry-rate-limits: remaining 0, reset 2700500ms, resource organization
Sentry, the longer first
< X-Sentry-Rate-Limits: 2700::organization, 60::key
> wait 2700s
> x-sentry-rate-limits: remaining 0, reset 2700s, resource organization
Sentry, metrics
< X-Sentry-Rate-Limits: 2700:metric_bucket:organization:quota_exceeded:custom
> wait 2700s
> x-sentry-rate-limits metric_bucket: remaining 0, reset 2700s, resource organization)");
}

TEST_CASE("ESI tells its errors and its tokens") {
  check_table(R"(
ESI, errors
< X-ESI-Error-Limit-Remain: 95 | X-ESI-Error-Limit-Reset: 42
> x-esi-error-limit: remaining 95, reset 42s
ESI, tokens
< X-Ratelimit-Group: char-location | X-Ratelimit-Limit: 150/15m
< X-Ratelimit-Remaining: 148 | X-Ratelimit-Used: 2
> x-ratelimit: limit 150, remaining 148, used 2, length 900s, resource char-location)");
}

TEST_CASE("Path of Exile's rules are a window for each period, with the state of each") {
  check_table(R"(
two rules, of which each has two periods
< X-Rate-Limit-Policy: items | X-Rate-Limit-Rules: Account, Ip
< X-Rate-Limit-Ip: 45:60:120,180:1800:600 | X-Rate-Limit-Ip-State: 1:60:0,2:1800:0
< X-Rate-Limit-Account: 30:60:60,100:1800:600 | X-Rate-Limit-Account-State: 1:60:0,103:1800:600
> wait 600s
> x-rate-limit ip: limit 45, remaining 44, used 1, length 60s, resource items
> x-rate-limit ip: limit 180, remaining 178, used 2, length 1800s, resource items
> x-rate-limit account: limit 30, remaining 29, used 1, length 60s, resource items
> x-rate-limit account: limit 100, remaining 0, used 103, reset 600s, length 1800s, resource items
a ban counts, whatever is used
< X-Rate-Limit-Rules: Ip | X-Rate-Limit-Ip: 45:60:120 | X-Rate-Limit-Ip-State: 5:60:120
> wait 120s
> x-rate-limit ip: limit 45, remaining 0, used 5, reset 120s, length 60s
the list stands on several lines
< X-Rate-Limit-Rules: Account | X-Rate-Limit-Rules: Ip | X-Rate-Limit-Ip: 45:60:120
> x-rate-limit ip: limit 45, length 60s
all hits are used, and for how long is not told
< X-Rate-Limit-Rules: Ip | X-Rate-Limit-Ip: 45:60:120 | X-Rate-Limit-Ip-State: 45:60:0
> x-rate-limit ip: limit 45, remaining 0, used 45, length 60s)");
  const Feedback others =
      parse_lines({{"X-Rate-Limit-Rules", "Account"}, {"X-Rate-Limit-Ip", "45:60:120"}});
  CHECK(others.windows().empty());
  CHECK(others.notes()[1].fate == Fate::unknown);
  CHECK(parse_lines({{"X-Rate-Limit-Ip", "45:60:120"}}).windows().empty());
}

TEST_CASE("a number in a unit that is not known is refused, one that tells its unit is not") {
  struct Reset {
    const char* name;
    const char* value;
    Fate fate;
    std::optional<Span> reset{};
  };
  const std::vector<Reset> rows{
      {"gw-ratelimit-reset", "29875", Fate::used, 29'875ms},
      {"acme-ratelimit-reset", "29875", Fate::no_unit},
      {"acme-ratelimit-reset", "30", Fate::no_unit},
      {"acme-ratelimit-reset", "0", Fate::no_unit},
      {"acme-ratelimit-reset", "99999999", Fate::no_unit},
      {"acme-ratelimit-reset", "30s", Fate::used, 30s},
      {"acme-ratelimit-reset-ms", "29875", Fate::used, 29'875ms},
      {"acme-ratelimit-reset", "1709210156", Fate::used, 60s},
      {"acme-ratelimit-reset", "Thu, 29 Feb 2024 12:35:56 GMT", Fate::used, 60s},
      {"acme-ratelimit-retry-after", "30", Fate::no_unit},
      {"acme-ratelimit-window", "60", Fate::no_unit},
      {"X-RateLimit-Limit", "150/15", Fate::no_unit},
      {"X-RateLimit-Limit", "150/", Fate::malformed},
      {"X-RateLimit-Limit", "150/0s", Fate::malformed},
      {"X-RateLimit-Limit", "150/-1s", Fate::negative},
      {"X-RateLimit-Limit", "150/-1m30s", Fate::negative},
      {"X-RateLimit-Limit", "-150/15m", Fate::negative},
      {"X-RateLimit-Limit", "150/Thu, 29 Feb 2024 12:35:56 GMT", Fate::malformed},
      {"X-RateLimit-Reset", "30", Fate::used, 30s},
  };
  for (const Reset& row : rows) {
    CAPTURE(row.name, row.value);
    const Feedback feedback = parse_lines({{row.name, row.value}});
    REQUIRE(feedback.notes().size() == 1);
    CHECK(feedback.notes()[0].fate == row.fate);
    CHECK(feedback.windows().empty() == !row.reset.has_value());
    if (!feedback.windows().empty()) CHECK(feedback.windows()[0].reset == row.reset);
    CHECK_FALSE(feedback.retry_after);
  }
}

TEST_CASE("a vendor's header with a fault is ignored whole") {
  struct Bad {
    HeaderLines lines;
    Fate fate;  ///< of the last one
  };
  const HeaderLines rules{{"X-Rate-Limit-Rules", "Ip"}};
  const auto rule = [&](const char* name, const std::string& value) {
    return HeaderLines{rules[0], {name, value}};
  };
  const std::string sentry_name = "X-Sentry-Rate-Limits";
  const std::vector<Bad> rows{
      {{{"X-MBX-USED-WEIGHT-1M", "-1"}}, Fate::negative},
      {{{"X-MBX-USED-WEIGHT-1M", "37 x"}}, Fate::malformed},
      {{{"X-MBX-USED-WEIGHT-1M", "1,2"}}, Fate::malformed},
      {{{"X-MBX-USED-WEIGHT-1M", std::string("3\0007", 3)}}, Fate::malformed},
      {{{"X-MBX-USED-WEIGHT-1Y", "37"}}, Fate::unknown},
      {{{"X-MBX-USED-WEIGHT-0M", "37"}}, Fate::unknown},
      {{{"X-MBX-USED-WEIGHT-1.5M", "37"}}, Fate::unknown},
      {{{"X-MBX-USED-WEIGHT-M", "37"}}, Fate::unknown},
      {{{"X-MBX-USED-WEIGHT-", "37"}}, Fate::used},
      {{{sentry_name, "60:error, soon:default"}}, Fate::malformed},
      {{{sentry_name, "60:error, -5:default"}}, Fate::negative},
      {{{sentry_name, "60:error,,"}}, Fate::malformed},
      {{{sentry_name, "60:err\x01or"}}, Fate::malformed},
      {{{sentry_name, "60:error:k\xffy"}}, Fate::malformed},
      {{{sentry_name, "60:ok, 60:" + std::string(65, 'c')}}, Fate::too_long},
      {{{sentry_name, "60:ok:" + std::string(65, 'c')}}, Fate::too_long},
      {rule("X-Rate-Limit-Ip", "45:60:120,180:1800"), Fate::malformed},
      {rule("X-Rate-Limit-Ip", "45:60:120,180:x:600"), Fate::malformed},
      {rule("X-Rate-Limit-Ip", "45:60:120,-180:60:600"), Fate::negative},
      {rule("X-Rate-Limit-Ip", "45:60:120:7"), Fate::malformed},
      {rule("X-Rate-Limit-Ip", "45"), Fate::malformed},
      {rule("X-Rate-Limit-Ip-State", "45:60:0,1:1800:-1"), Fate::negative},
  };
  for (const Bad& row : rows) {
    CAPTURE(row.lines.back().first, row.lines.back().second.substr(0, 60));
    const Feedback feedback = parse_lines(row.lines);
    CHECK(feedback.notes().back().fate == row.fate);
    CHECK(feedback.windows().empty() == (row.fate >= Fate::empty));
    CHECK_FALSE(feedback.wait());
  }
}

TEST_CASE("huge counts of single vendors are bounded") {
  const std::string huge = "1" + std::string(30, '0');
  const Feedback feedback = parse_lines({{"X-MBX-USED-WEIGHT-1M", huge},
                                         {"X-MBX-ORDER-COUNT-" + huge + "D", "1"},
                                         {"X-RateLimit-Limit", huge + "," + huge},
                                         {"X-RateLimit-Usage", huge + ",1"},
                                         {"X-Rate-Limit-Rules", "Ip"},
                                         {"X-Rate-Limit-Ip", huge + ":" + huge + ":" + huge},
                                         {"X-Sentry-Rate-Limits", huge + ":error"}});
  for (const Window& window : feedback.windows()) {
    CHECK(window.used.value_or(0) <= word_limit);
    CHECK(window.limit.value_or(0) <= word_limit);
    CHECK(window.length.value_or(0s) <= 24h);
    CHECK(window.reset.value_or(0s) <= 24h);
  }
  CHECK(feedback.wait() <= 24h);
  std::string many = "60:c0";
  for (int i = 1; i < 40; ++i) many += ";c" + std::to_string(i);
  const Feedback crowded = parse_lines({{"X-Sentry-Rate-Limits", many}});
  CHECK(crowded.windows().size() == Feedback::max_windows);
  CHECK(crowded.notes()[0].fate == Fate::partly);
}
