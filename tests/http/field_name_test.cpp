// What the names of headers say.
#include "src/http/field_name.hpp"

#include <string>
#include <vector>

#include "tests/catch.hpp"

using namespace sluice::http;
using detail::lower_name;
using detail::Meaning;
using detail::read_field_name;

TEST_CASE("one grammar reads the names of many vendors") {
  struct Row {
    std::string name;
    Meaning meaning;
    std::string source;
    std::string group;
  };
  const std::vector<Row> rows{
      {"Retry-After", Meaning::retry_after, "retry-after", ""},
      {"retry-after-ms", Meaning::retry_after_ms, "retry-after-ms", ""},
      {"X-RateLimit-Retry-After", Meaning::retry_after, "x-ratelimit", ""},
      {"RateLimit", Meaning::rate_limit, "ratelimit", ""},
      {"RateLimit-Policy", Meaning::policy, "ratelimit-policy", ""},
      {"RateLimit-Limit", Meaning::limit, "ratelimit", ""},
      {"RateLimit-ResetTime", Meaning::reset, "ratelimit", ""},
      {"RateLimit-Observed", Meaning::used, "ratelimit", ""},
      {"X-RateLimit-Reset-After", Meaning::reset, "x-ratelimit", ""},
      {"X-Rate-Limit-Limit", Meaning::limit, "x-rate-limit", ""},
      {"X-Rate-Limit", Meaning::limit, "x-rate-limit", ""},
      {"x-ratelimit-limit-requests", Meaning::limit, "x-ratelimit", "requests"},
      {"x-ratelimit-reset-tokens_usage_based", Meaning::reset, "x-ratelimit", "tokens_usage_based"},
      {"X-RateLimit-Requests-Reset", Meaning::reset, "x-ratelimit", "requests"},
      {"anthropic-ratelimit-input-tokens-remaining", Meaning::remaining, "anthropic-ratelimit",
       "input-tokens"},
      {"X-HubSpot-RateLimit-Daily", Meaning::limit, "x-hubspot-ratelimit", "daily"},
      {"X-HubSpot-RateLimit-Daily-Remaining", Meaning::remaining, "x-hubspot-ratelimit", "daily"},
      {"X-HubSpot-RateLimit-Interval-Milliseconds", Meaning::length_ms, "x-hubspot-ratelimit", ""},
      {"X-HubSpot-RateLimit-Max", Meaning::limit, "x-hubspot-ratelimit", ""},
      {"X-Rate-Limit-Time-Reset-Ms", Meaning::reset_ms, "x-rate-limit", ""},
      {"X-Rate-Limit-Requests-Left", Meaning::remaining, "x-rate-limit", ""},
      {"x-app-limit-24hour-remaining", Meaning::remaining, "x-app-limit", "24hour"},
      {"x-ms-ratelimit-remaining-subscription-reads", Meaning::remaining, "x-ms-ratelimit",
       "subscription-reads"},
      {"X-RateLimit-Limit-Minute", Meaning::limit, "x-ratelimit", "minute"},
      {"X-RateLimit-Resource", Meaning::resource, "x-ratelimit", ""},
      {"X-RateLimit-Bucket", Meaning::resource, "x-ratelimit", ""},
      {"X-RateLimit-Scope", Meaning::scope, "x-ratelimit", ""},
      {"X-RateLimit-Global", Meaning::global, "x-ratelimit", ""},
      {"X-RateLimit-Precision", Meaning::unknown, "x-ratelimit", "precision"},
      {"X-RateLimit-NearLimit", Meaning::unknown, "x-ratelimit", "nearlimit"},
      {"X-RateLimit-", Meaning::limit, "x-ratelimit", ""},
      {"X-RateLimits", Meaning::none, "", ""},
      {"Corporate-Limit", Meaning::none, "", ""},
      {"Corporatelimit", Meaning::none, "", ""},
      {"Content-Type", Meaning::none, "", ""},
      {"-", Meaning::none, "", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Text lower = lower_name(row.name);
    const auto name = read_field_name(lower.view());
    CHECK(name.meaning == row.meaning);
    CHECK(name.source == row.source);
    CHECK(name.group == row.group);
  }
}

TEST_CASE("a name that is longer than any that is known is none") {
  CHECK(lower_name("x-ratelimit-limit-" + std::string(46, 'a')).view().size() == 64);
  CHECK(lower_name("x-ratelimit-limit-" + std::string(47, 'a')).empty());
  CHECK(lower_name(std::string(1 << 20, 'a')).empty());
}
