// Responses as vendors document them, one row each, and what is made of them.
#include <string>
#include <vector>

#include "tests/http/rows.hpp"

using namespace sluice;
using namespace sluice::http;
using namespace std::chrono_literals;

TEST_CASE("the draft's headers are read in every form that it had") {
  const std::vector<Row> rows{
      {"RateLimit with String names",
       {{"RateLimit-Policy", R"("burst";q=100;w=60, "daily";q=1000;w=86400)"},
        {"RateLimit", R"("daily";r=50;t=30)"}},
       {},
       {{.source = "ratelimit", .name = "burst", .limit = 100, .length = 60s},
        {.source = "ratelimit",
         .name = "daily",
         .limit = 1000,
         .remaining = 50,
         .reset = 30s,
         .length = 24h}}},
      {"Token names, a unit and a partition key",
       {{"RateLimit", "peruser;r=7;t=1;pk=:dXNlcjE=:"},
        {"RateLimit-Policy", R"(peruser;q=10;w=1;qu="content-bytes";pk=:dXNlcjE=:)"}},
       {},
       {{.source = "ratelimit",
         .name = "peruser",
         .limit = 10,
         .remaining = 7,
         .reset = 1s,
         .length = 1s,
         .partition = "user1",
         .unit = "content-bytes"}}},
      {"one policy, two partitions",
       {{"RateLimit", R"("p";r=1;pk=:YQ==:, "p";r=2;pk=:Yg==:)"}},
       {},
       {{.source = "ratelimit", .name = "p", .remaining = 1, .partition = "a"},
        {.source = "ratelimit", .name = "p", .remaining = 2, .partition = "b"}}},
      {"a list over several lines",
       {{"RateLimit", R"("a";r=1;t=2)"}, {"RateLimit", R"("b";r=3;t=4;acme-burst=7)"}},
       {},
       {{.source = "ratelimit", .name = "a", .remaining = 1, .reset = 2s},
        {.source = "ratelimit", .name = "b", .remaining = 3, .reset = 4s}}},
      {"draft 7: a dictionary",
       {{"RateLimit", "limit=100, remaining=50, reset=5"}, {"RateLimit-Policy", "100;w=60"}},
       {},
       {{.source = "ratelimit", .limit = 100, .remaining = 50, .reset = 5s, .length = 60s}}},
      {"draft 6: three headers and a policy",
       {{"RateLimit-Policy", R"(10;w=1, 100;w=60;comment="sliding")"},
        {"RateLimit-Limit", "100"},
        {"RateLimit-Remaining", "99"},
        {"RateLimit-Reset", "50"}},
       {},
       {{.source = "ratelimit-policy", .limit = 10, .length = 1s},
        {.source = "ratelimit", .limit = 100, .remaining = 99, .reset = 50s, .length = 60s}}},
      {"draft 3: the policy stands behind the limit",
       {{"RateLimit-Limit", "100, 100;w=60;burst=1000, 5000;w=3600"},
        {"RateLimit-Remaining", "50"},
        {"RateLimit-Reset", "12"}},
       {},
       {{.source = "ratelimit", .limit = 100, .remaining = 50, .reset = 12s}}},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("vendors' headers are read as they document them") {
  const std::vector<Row> rows{
      {"GitHub",
       {{"x-ratelimit-limit", "5000"},
        {"x-ratelimit-remaining", "4987"},
        {"x-ratelimit-reset", "1709210156"},
        {"x-ratelimit-used", "13"},
        {"x-ratelimit-resource", "core"}},
       {},
       {{.source = "x-ratelimit",
         .limit = 5000,
         .remaining = 4987,
         .used = 13,
         .reset = 60s,
         .resource = "core"}}},
      {"X (Twitter)",
       {{"x-rate-limit-limit", "900"},
        {"x-rate-limit-remaining", "0"},
        {"x-rate-limit-reset", "1709210996"},
        {"x-app-limit-24hour-limit", "500"},
        {"x-app-limit-24hour-remaining", "499"},
        {"x-app-limit-24hour-reset", "1709296496"}},
       {},
       {{.source = "x-rate-limit", .limit = 900, .remaining = 0, .reset = 15min},
        {.source = "x-app-limit", .name = "24hour", .limit = 500, .remaining = 499, .reset = 24h}}},
      {"Okta",
       {{"X-Rate-Limit-Limit", "1200"},
        {"X-Rate-Limit-Remaining", "1199"},
        {"X-Rate-Limit-Reset", "1709210126"}},
       {},
       {{.source = "x-rate-limit", .limit = 1200, .remaining = 1199, .reset = 30s}}},
      {"Discord",
       {{"X-RateLimit-Limit", "5"},
        {"X-RateLimit-Remaining", "0"},
        {"X-RateLimit-Reset", "1709210100.123"},
        {"X-RateLimit-Reset-After", "1.337"},
        {"X-RateLimit-Bucket", "abcd1234"},
        {"X-RateLimit-Scope", "shared"},
        {"Retry-After", "65"}},
       65s,
       {{.source = "x-ratelimit",
         .limit = 5,
         .remaining = 0,
         .reset = 1337ms,
         .resource = "abcd1234"}},
       "shared"},
      {"Discord, global",
       {{"Retry-After", "0.75"}, {"X-RateLimit-Global", "true"}},
       750ms,
       {},
       "global"},
      {"Reddit",
       {{"X-Ratelimit-Used", "5"},
        {"X-Ratelimit-Remaining", "595.0"},
        {"X-Ratelimit-Reset", "422"}},
       {},
       {{.source = "x-ratelimit", .remaining = 595, .used = 5, .reset = 422s}}},
      {"Shopify",
       {{"X-Shopify-Shop-Api-Call-Limit", "32/40"}, {"Retry-After", "2.0"}},
       2s,
       {{.source = "x-shopify-shop-api-call-limit", .limit = 40, .remaining = 8, .used = 32}}},
      {"OpenAI",
       {{"x-ratelimit-limit-requests", "60"},
        {"x-ratelimit-limit-tokens", "150000"},
        {"x-ratelimit-remaining-requests", "59"},
        {"x-ratelimit-remaining-tokens", "0"},
        {"x-ratelimit-reset-requests", "20ms"},
        {"x-ratelimit-reset-tokens", "6m0s"}},
       {},
       {{.source = "x-ratelimit", .name = "requests", .limit = 60, .remaining = 59, .reset = 20ms},
        {.source = "x-ratelimit",
         .name = "tokens",
         .limit = 150'000,
         .remaining = 0,
         .reset = 6min}}},
      {"Groq",
       {{"x-ratelimit-remaining-tokens", "17997"}, {"x-ratelimit-reset-tokens", "2m59.56s"}},
       {},
       {{.source = "x-ratelimit", .name = "tokens", .remaining = 17'997, .reset = 179'560ms}}},
      {"Anthropic",
       {{"anthropic-ratelimit-requests-limit", "50"},
        {"anthropic-ratelimit-requests-remaining", "49"},
        {"anthropic-ratelimit-requests-reset", "2024-02-29T12:34:57Z"},
        {"anthropic-ratelimit-input-tokens-remaining", "2000"},
        {"anthropic-ratelimit-unified-5h-reset", "1709210106"}},
       {},
       {{.source = "anthropic-ratelimit",
         .name = "requests",
         .limit = 50,
         .remaining = 49,
         .reset = 1s},
        {.source = "anthropic-ratelimit", .name = "input-tokens", .remaining = 2000},
        {.source = "anthropic-ratelimit", .name = "unified-5h", .reset = 10s}}},
      {"Stripe", {{"Stripe-Rate-Limited-Reason", "endpoint-rate"}}, {}, {}, "", "endpoint-rate"},
      {"HubSpot",
       {{"X-HubSpot-RateLimit-Daily", "250000"},
        {"X-HubSpot-RateLimit-Daily-Remaining", "249999"},
        {"X-HubSpot-RateLimit-Interval-Milliseconds", "10000"},
        {"X-HubSpot-RateLimit-Max", "100"},
        {"X-HubSpot-RateLimit-Remaining", "92"},
        {"X-HubSpot-RateLimit-Secondly", "10"},
        {"X-HubSpot-RateLimit-Secondly-Remaining", "9"}},
       {},
       {{.source = "x-hubspot-ratelimit", .name = "daily", .limit = 250'000, .remaining = 249'999},
        {.source = "x-hubspot-ratelimit", .limit = 100, .remaining = 92, .length = 10s},
        {.source = "x-hubspot-ratelimit", .name = "secondly", .limit = 10, .remaining = 9}}},
      {"GitLab",
       {{"RateLimit-Limit", "60"},
        {"RateLimit-Name", "throttle_authenticated_web"},
        {"RateLimit-Observed", "67"},
        {"RateLimit-Remaining", "0"},
        {"RateLimit-Reset", "1709210126"},
        {"RateLimit-ResetTime", "Thu, 29 Feb 2024 12:35:26 GMT"},
        {"Retry-After", "30"}},
       30s,
       {{.source = "ratelimit",
         .limit = 60,
         .remaining = 0,
         .used = 67,
         .reset = 30s,
         .resource = "throttle_authenticated_web"}}},
      {"Azure",
       {{"x-ms-retry-after-ms", "1250"},
        {"Retry-After", "2"},
        {"x-ms-ratelimit-remaining-subscription-reads", "11999"}},
       1250ms,
       {{.source = "x-ms-ratelimit", .name = "subscription-reads", .remaining = 11'999}}},
      {"Azure OpenAI", {{"retry-after-ms", "20"}, {"retry-after", "1"}}, 20ms, {}},
      {"Docker Hub",
       {{"ratelimit-limit", "100;w=21600"}, {"ratelimit-remaining", "76;w=21600"}},
       {},
       {{.source = "ratelimit", .limit = 100, .remaining = 76, .length = 6h}}},
      {"Linear, in milliseconds of the epoch",
       {{"X-RateLimit-Requests-Limit", "1500"},
        {"X-RateLimit-Requests-Remaining", "1499"},
        {"X-RateLimit-Requests-Reset", "1709210097500"}},
       {},
       {{.source = "x-ratelimit",
         .name = "requests",
         .limit = 1500,
         .remaining = 1499,
         .reset = 1500ms}}},
      {"Jira, by RFC 3339",
       {{"X-RateLimit-Limit", "40"},
        {"X-RateLimit-Remaining", "0"},
        {"X-RateLimit-Reset", "2024-02-29T12:36:56Z"}},
       {},
       {{.source = "x-ratelimit", .limit = 40, .remaining = 0, .reset = 2min}}},
      {"BigCommerce",
       {{"X-Rate-Limit-Requests-Left", "6"},
        {"X-Rate-Limit-Requests-Quota", "25"},
        {"X-Rate-Limit-Time-Reset-Ms", "3000"},
        {"X-Rate-Limit-Time-Window-Ms", "5000"}},
       {},
       {{.source = "x-rate-limit", .limit = 25, .remaining = 6, .reset = 3s, .length = 5s}}},
      {"Zendesk",
       {{"X-Rate-Limit", "700"}, {"X-Rate-Limit-Remaining", "699"}, {"Retry-After", "93"}},
       93s,
       {{.source = "x-rate-limit", .limit = 700, .remaining = 699}}},
      {"Kong",
       {{"X-RateLimit-Limit-Minute", "10"}, {"X-RateLimit-Remaining-Minute", "9"}},
       {},
       {{.source = "x-ratelimit", .name = "minute", .limit = 10, .remaining = 9}}},
      {"MailerLite", {{"X-RateLimit-Retry-After", "59"}}, 59s, {}},
      {"Brevo",
       {{"x-sib-ratelimit-limit", "1000"},
        {"x-sib-ratelimit-remaining", "999"},
        {"x-sib-ratelimit-reset", "3600"}},
       {},
       {{.source = "x-sib-ratelimit", .limit = 1000, .remaining = 999, .reset = 1h}}},
      {"used of a limit, without what remains",
       {{"X-RateLimit-Limit", "10"}, {"X-RateLimit-Used", "12"}},
       {},
       {{.source = "x-ratelimit", .limit = 10, .remaining = 0, .used = 12}}},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("Retry-After is read in seconds and in the three forms of an HTTP-date") {
  const std::vector<Row> rows{
      {"seconds", {{"Retry-After", "120"}}, 120s, {}},
      {"in any case, with blanks", {{"rEtRy-aFtEr", " 120\t"}}, 120s, {}},
      {"IMF-fixdate", {{"Retry-After", "Thu, 29 Feb 2024 12:35:56 GMT"}}, 60s, {}},
      {"RFC 850", {{"Retry-After", "Thursday, 29-Feb-24 12:35:56 GMT"}}, 60s, {}},
      {"asctime", {{"Retry-After", "Thu Feb 29 12:35:56 2024"}}, 60s, {}},
      {"of two, the longer",
       {{"Retry-After", "3"}, {"Retry-After", "5"}, {"Retry-After", "4"}},
       5s,
       {}},
      {"milliseconds that contradict by more than rounding: the longer",
       {{"retry-after-ms", "20"}, {"Retry-After", "60"}},
       60s,
       {}},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("of Retry-After and retry-after-ms the longer counts, but for seconds rounded up") {
  const struct {
    const char* seconds;
    const char* milliseconds;
    Span expected;
  } rows[] = {
      {"2", "2000", 2s},      {"2", "1999", 1999ms}, {"2", "1001", 1001ms}, {"2", "1000", 2s},
      {"2", "999", 2s},       {"2", "0", 2s},        {"2", "2001", 2001ms}, {"2", "60000", 60s},
      {"0", "0", 0s},         {"0", "1", 1ms},       {"1", "0.001", 1us},   {"1.5", "501", 501ms},
      {"1.5", "500", 1500ms},
  };
  for (const auto& row : rows) {
    const HeaderLines both{{"Retry-After", row.seconds}, {"retry-after-ms", row.milliseconds}};
    for (const HeaderLines& lines : {both, HeaderLines(both.rbegin(), both.rend())}) {
      CAPTURE(row.seconds, row.milliseconds, lines.front().first);
      const Feedback feedback = parse_lines(lines);
      CHECK(feedback.retry_after == row.expected);
      // The other one is told to be superseded.
      CHECK((feedback.notes()[0].fate == Fate::superseded) !=
            (feedback.notes()[1].fate == Fate::superseded));
    }
  }
}

TEST_CASE("of two items of one name the stricter counts, in either order") {
  const auto check_both = [](const std::string& name, const std::string& a, const std::string& b,
                             const Expected& expected) {
    for (const HeaderLines& lines :
         {HeaderLines{{name, a}, {name, b}}, HeaderLines{{name, b}, {name, a}},
          HeaderLines{{name, a + ", " + b}}, HeaderLines{{name, b + ", " + a}}}) {
      CAPTURE(name, lines[0].second);
      check({"told twice", lines, {}, {expected}});
    }
  };
  check_both("RateLimit", R"("a";r=7;t=5)", R"("a";r=2;t=9)",
             {.source = "ratelimit", .name = "a", .remaining = 2, .reset = 9s});
  check_both("RateLimit", R"("a";r=2;t=5)", R"("a";r=7;t=9)",
             {.source = "ratelimit", .name = "a", .remaining = 2, .reset = 9s});
  check_both("RateLimit-Policy", R"("a";q=10;w=60)", R"("a";q=20;w=60)",
             {.source = "ratelimit", .name = "a", .limit = 10, .length = 60s});
  check_both("RateLimit-Policy", R"("a";q=10;w=60)", R"("a";q=20;w=90)",
             {.source = "ratelimit", .name = "a", .limit = 10, .length = 90s});
  check_both("RateLimit-Policy", R"("a";q=10;w=90)", R"("a";q=20;w=60)",
             {.source = "ratelimit", .name = "a", .limit = 10, .length = 90s});
  const Expected ten{.source = "x-ratelimit", .limit = 10};
  check_both("X-RateLimit-Limit", "10", "20", ten);
  for (const HeaderLines& lines :
       {HeaderLines{{"X-RateLimit-Limit", "10;w=90"}, {"X-RateLimit-Limit", "10;w=60"}},
        HeaderLines{{"X-RateLimit-Limit", "10;w=60"}, {"X-RateLimit-Limit", "10;w=90"}}}) {
    check(
        {"windows told twice", lines, {}, {{.source = "x-ratelimit", .limit = 10, .length = 90s}}});
  }
  for (const bool turned : {false, true}) {
    const std::string few = "limit=10, remaining=3, reset=4";
    const std::string many = "limit=20, remaining=1, reset=9";
    check({"the dictionary of an early draft",
           {{"RateLimit", turned ? many : few}, {"RateLimit", turned ? few : many}},
           {},
           {{.source = "ratelimit", .limit = 10, .remaining = 1, .reset = 9s}}});
  }
}

TEST_CASE("of two counts of what is used the larger counts, in either order") {
  const std::vector<Expected> one_left{
      {.source = "x-ratelimit", .limit = 10, .remaining = 1, .used = 9}};
  for (const HeaderLines& used :
       {HeaderLines{{"X-RateLimit-Used", "4"}, {"X-RateLimit-Used", "9"}},
        HeaderLines{{"X-RateLimit-Used", "9"}, {"X-RateLimit-Used", "4"}},
        HeaderLines{{"X-RateLimit-Used", "4, 9"}}, HeaderLines{{"X-RateLimit-Used", "9, 4"}}}) {
    HeaderLines lines{{"X-RateLimit-Limit", "10"}};
    lines.insert(lines.end(), used.begin(), used.end());
    check({"used twice", lines, {}, one_left});
  }
  const std::string shopify = "X-Shopify-Shop-Api-Call-Limit";
  const auto remaining = [&](const HeaderLines& lines) {
    const Feedback feedback = parse_lines(lines);
    REQUIRE(feedback.windows().size() == 1);
    return feedback.windows()[0].remaining;
  };
  CHECK(remaining({{shopify, "32/40"}, {shopify, "39/40"}}) == 1);
  CHECK(remaining({{shopify, "39/40"}, {shopify, "32/40"}}) == 1);
  CHECK(remaining({{shopify, "30/40"}, {shopify, "20/35"}}) == 5);
}
