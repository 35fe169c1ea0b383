// Responses as vendors document them, and what is made of them.
#include <string>
#include <vector>

#include "tests/http/rows.hpp"

using namespace sluice;
using namespace sluice::http;
using namespace std::chrono_literals;

TEST_CASE("the draft's headers are read in every form that it had") {
  check_table(R"(
RateLimit with String names
< RateLimit-Policy: "burst";q=100;w=60, "daily";q=1000;w=86400 | RateLimit: "daily";r=50;t=30
> ratelimit burst: limit 100, length 60s
> ratelimit daily: limit 1000, remaining 50, reset 30s, length 86400s
Token names, a unit and a partition key
< RateLimit: peruser;r=7;t=1;pk=:dXNlcjE=:
< RateLimit-Policy: peruser;q=10;w=1;qu="content-bytes";pk=:dXNlcjE=:
> ratelimit peruser: limit 10, remaining 7, reset 1s, length 1s, partition user1, unit content-bytes
one policy, two partitions
< RateLimit: "p";r=1;pk=:YQ==:, "p";r=2;pk=:Yg==:
> ratelimit p: remaining 1, partition a
> ratelimit p: remaining 2, partition b
one policy of all partitions
< RateLimit-Policy: "p";q=9 | RateLimit: "p";r=1;pk=:YQ==:
> ratelimit p: limit 9, remaining 1, partition a
a list over several lines
< RateLimit: "a";r=1;t=2 | RateLimit: "b";r=3;t=4;acme-burst=7
> ratelimit a: remaining 1, reset 2s
> ratelimit b: remaining 3, reset 4s
draft 8, which does not say how long
< RateLimit: "a";r=0
> ratelimit a: remaining 0
draft 7: a dictionary
< RateLimit: limit=100, remaining=50, reset=5 | RateLimit-Policy: 100;w=60
> ratelimit: limit 100, remaining 50, reset 5s, length 60s
draft 6: three headers and a policy
< RateLimit-Policy: 10;w=1, 100;w=60;comment="sliding"
< RateLimit-Limit: 100 | RateLimit-Remaining: 99 | RateLimit-Reset: 50
> ratelimit-policy: limit 10, length 1s
> ratelimit: limit 100, remaining 99, reset 50s, length 60s
draft 6: two policies of one limit
< RateLimit-Policy: 100;w=60, 100;w=3600 | RateLimit-Limit: 100 | RateLimit-Remaining: 99
> ratelimit-policy: limit 100, length 3600s
> ratelimit: limit 100, remaining 99, length 60s
draft 6 without a reset
< RateLimit-Limit: 100 | RateLimit-Remaining: 0
> ratelimit: limit 100, remaining 0
draft 3: the policy stands behind the limit
< RateLimit-Limit: 100, 100;w=60;burst=1000, 50;w=3600
< RateLimit-Remaining: 50 | RateLimit-Reset: 12
> ratelimit: limit 100, remaining 50, reset 12s)");
}

TEST_CASE("vendors' headers are read as they document them") {
  check_table(R"(
GitHub
< x-ratelimit-limit: 5000 | x-ratelimit-remaining: 4987 | x-ratelimit-reset: 1709210156
< x-ratelimit-used: 13 | x-ratelimit-resource: core
> x-ratelimit: limit 5000, remaining 4987, used 13, reset 60s, resource core
X (Twitter)
< x-rate-limit-limit: 900 | x-rate-limit-remaining: 0 | x-rate-limit-reset: 1709210996
< x-app-limit-24hour-limit: 500 | x-app-limit-24hour-remaining: 499
< x-app-limit-24hour-reset: 1709296496
> wait 900s
> x-rate-limit: limit 900, remaining 0, reset 900s
> x-app-limit 24hour: limit 500, remaining 499, reset 86400s
Okta
< X-Rate-Limit-Limit: 1200 | X-Rate-Limit-Remaining: 1199 | X-Rate-Limit-Reset: 1709210126
> x-rate-limit: limit 1200, remaining 1199, reset 30s
Discord
< X-RateLimit-Limit: 5 | X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 1709210100.123
< X-RateLimit-Reset-After: 1.337 | X-RateLimit-Bucket: abcd1234 | X-RateLimit-Scope: shared
< Retry-After: 65
> retry 65s, wait 65s, scope shared
> x-ratelimit: limit 5, remaining 0, reset 1337ms, resource abcd1234
Discord, the length of time before the instant
< X-RateLimit-Reset-After: 1.337 | X-RateLimit-Reset: 1709210100.123
> x-ratelimit: reset 1337ms
Discord, global
< Retry-After: 0.75 | X-RateLimit-Global: true
> retry 750ms, wait 750ms, scope global
Discord, not global
< Retry-After: 1 | X-RateLimit-Global: false
> retry 1s, wait 1s
Reddit
< X-Ratelimit-Used: 5 | X-Ratelimit-Remaining: 595.0 | X-Ratelimit-Reset: 422
> x-ratelimit: remaining 595, used 5, reset 422s
Shopify
< X-Shopify-Shop-Api-Call-Limit: 32/40 | Retry-After: 2.0
> retry 2s, wait 2s
> x-shopify-shop-api-call-limit: limit 40, remaining 8, used 32
OpenAI
< x-ratelimit-limit-requests: 60 | x-ratelimit-limit-tokens: 150000
< x-ratelimit-remaining-requests: 59 | x-ratelimit-remaining-tokens: 0
< x-ratelimit-reset-requests: 20ms | x-ratelimit-reset-tokens: 6m0s
> wait 360s
> x-ratelimit requests: limit 60, remaining 59, reset 20ms
> x-ratelimit tokens: limit 150000, remaining 0, reset 360s
Groq
< x-ratelimit-remaining-tokens: 17997 | x-ratelimit-reset-tokens: 2m59.56s
> x-ratelimit tokens: remaining 17997, reset 179560ms
Anthropic
< anthropic-ratelimit-requests-limit: 50 | anthropic-ratelimit-requests-remaining: 49
< anthropic-ratelimit-requests-reset: 2024-02-29T12:34:57Z
< anthropic-ratelimit-input-tokens-remaining: 2000
< anthropic-ratelimit-unified-5h-reset: 1709210106
> anthropic-ratelimit requests: limit 50, remaining 49, reset 1s
> anthropic-ratelimit input-tokens: remaining 2000
> anthropic-ratelimit unified-5h: reset 10s
Stripe
< Stripe-Rate-Limited-Reason: endpoint-rate
> reason endpoint-rate
HubSpot
< X-HubSpot-RateLimit-Daily: 250000 | X-HubSpot-RateLimit-Daily-Remaining: 249999
< X-HubSpot-RateLimit-Interval-Milliseconds: 10000 | X-HubSpot-RateLimit-Max: 100
< X-HubSpot-RateLimit-Remaining: 92 | X-HubSpot-RateLimit-Secondly: 10
< X-HubSpot-RateLimit-Secondly-Remaining: 9
> x-hubspot-ratelimit daily: limit 250000, remaining 249999
> x-hubspot-ratelimit: limit 100, remaining 92, length 10s
> x-hubspot-ratelimit secondly: limit 10, remaining 9
GitLab
< RateLimit-Limit: 60 | RateLimit-Name: throttle_authenticated_web | RateLimit-Observed: 67
< RateLimit-Remaining: 0 | RateLimit-Reset: 1709210126
< RateLimit-ResetTime: Thu, 29 Feb 2024 12:35:26 GMT | Retry-After: 30
> retry 30s, wait 30s
> ratelimit: limit 60, remaining 0, used 67, reset 30s, resource throttle_authenticated_web
Azure
< x-ms-retry-after-ms: 1250 | Retry-After: 2 | x-ms-ratelimit-remaining-subscription-reads: 11999
> retry 1250ms, wait 1250ms
> x-ms-ratelimit subscription-reads: remaining 11999
Azure OpenAI
< retry-after-ms: 20 | retry-after: 1
> retry 20ms, wait 20ms
Docker Hub
< ratelimit-limit: 100;w=21600 | ratelimit-remaining: 76;w=21600
> ratelimit: limit 100, remaining 76, length 21600s
Linear, in milliseconds of the epoch
< X-RateLimit-Requests-Limit: 1500 | X-RateLimit-Requests-Remaining: 1499
< X-RateLimit-Requests-Reset: 1709210097500
> x-ratelimit requests: limit 1500, remaining 1499, reset 1500ms
Jira, by RFC 3339
< X-RateLimit-Limit: 40 | X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 2024-02-29T12:36:56Z
> wait 120s
> x-ratelimit: limit 40, remaining 0, reset 120s
BigCommerce
< X-Rate-Limit-Requests-Left: 6 | X-Rate-Limit-Requests-Quota: 25
< X-Rate-Limit-Time-Reset-Ms: 3000 | X-Rate-Limit-Time-Window-Ms: 5000
> x-rate-limit: limit 25, remaining 6, reset 3s, length 5s
Zendesk
< X-Rate-Limit: 700 | X-Rate-Limit-Remaining: 699 | Retry-After: 93
> retry 93s, wait 93s
> x-rate-limit: limit 700, remaining 699
Kong
< X-RateLimit-Limit-Minute: 10 | X-RateLimit-Remaining-Minute: 9
> x-ratelimit minute: limit 10, remaining 9
MailerLite
< X-RateLimit-Retry-After: 59
> retry 59s, wait 59s
Brevo
< x-sib-ratelimit-limit: 1000 | x-sib-ratelimit-remaining: 999 | x-sib-ratelimit-reset: 3600
> x-sib-ratelimit: limit 1000, remaining 999, reset 3600s
used of a limit, without what remains
< X-RateLimit-Limit: 10 | X-RateLimit-Used: 12
> x-ratelimit: limit 10, remaining 0, used 12)");
}

TEST_CASE("Retry-After is read in seconds and as a date, in any case, and the longer counts") {
  CHECK(parse_lines({{"rEtRy-aFtEr", " 120\t"}}).retry_after == 120s);
  CHECK(parse_lines({{"Retry-After", "Thu, 29 Feb 2024 12:35:56 GMT"}}).retry_after == 60s);
  CHECK(
      parse_lines({{"Retry-After", "3"}, {"Retry-After", "5"}, {"Retry-After", "4"}}).retry_after ==
      5s);
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
  const struct {
    std::string name, one, other, told;
    bool may_be_joined = true;  // in one list
  } rows[] = {
      {"RateLimit", R"("a";r=7;t=5)", R"("a";r=2;t=9)", "ratelimit a: remaining 2, reset 9s"},
      {"RateLimit", R"("a";r=2;t=5)", R"("a";r=7;t=9)", "ratelimit a: remaining 2, reset 9s"},
      {"RateLimit-Policy", R"("a";q=10;w=60)", R"("a";q=20;w=60)",
       "ratelimit a: limit 10, length 60s"},
      {"RateLimit-Policy", R"("a";q=10;w=60)", R"("a";q=20;w=90)",
       "ratelimit a: limit 10, length 90s"},
      {"RateLimit-Policy", R"("a";q=10;w=90)", R"("a";q=20;w=60)",
       "ratelimit a: limit 10, length 90s"},
      {"RateLimit", "limit=10, remaining=3, reset=4", "limit=20, remaining=1, reset=9",
       "ratelimit: limit 10, remaining 1, reset 9s", false},
      {"X-RateLimit-Limit", "10", "20", "x-ratelimit: limit 10"},
      {"X-RateLimit-Limit", "10;w=90", "10;w=60", "x-ratelimit: limit 10, length 90s", false},
      {"X-RateLimit-Used", "4", "9", "x-ratelimit: used 9"},
      {"X-Shopify-Shop-Api-Call-Limit", "32/40", "39/40",
       "x-shopify-shop-api-call-limit: limit 40, remaining 1, used 39", false},
      {"X-Shopify-Shop-Api-Call-Limit", "30/40", "20/35",
       "x-shopify-shop-api-call-limit: limit 35, remaining 5, used 30", false},
      {"x-amzn-RateLimit-Limit", "0.5", "5", "x-amzn-ratelimit: interval 2s", false},
  };
  for (const auto& [name, one, other, told, may_be_joined] : rows) {
    check_told(one, {{name, one}, {name, other}}, told + "\n");
    check_told(one, {{name, other}, {name, one}}, told + "\n");
    if (!may_be_joined) continue;
    check_told(one, {{name, one + ", " + other}}, told + "\n");
    check_told(one, {{name, other + ", " + one}}, told + "\n");
  }
}
