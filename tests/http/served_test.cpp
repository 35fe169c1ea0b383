// Which statuses of HTTP are refusals, which may pass, and which are answers.
#include <sluice/calls/errors.hpp>
#include <sluice/http.hpp>

#include <string>

#include "tests/catch.hpp"
#include "tests/http/parse.hpp"

using namespace sluice;
using namespace std::chrono_literals;

TEST_CASE("429 and the statuses of bans are refusals of their scope") {
  const http::Feedback feedback = http::parse_lines({{"Retry-After", "120"}});
  for (const int status : {418, 420, 429}) {
    try {
      http::require_served(status, feedback, 2);
      FAIL("served");
    } catch (const RateLimited& refusal) {
      CHECK(refusal.retry_after() == 120s);
      CHECK(refusal.scope() == 2);
      CHECK(refusal.what() == "the API answered " + std::to_string(status));
    }
  }
}

TEST_CASE("statuses that may pass are transient, and the call may have been served") {
  const http::Feedback feedback = http::parse_lines({{"Retry-After", "3"}});
  for (const int status : {408, 502, 503, 504}) {
    try {
      http::require_served(status, feedback);
      FAIL("served");
    } catch (const Transient& failure) {
      CHECK(failure.retry_after() == 3s);
      CHECK(failure.served() == Served::perhaps);
      CHECK(failure.what() == "the API answered " + std::to_string(status));
    }
  }
  CHECK_THROWS_AS(http::require_served(503, http::parse_lines({})), Transient);
}

TEST_CASE("any other status is an answer, whatever the headers say") {
  const http::Feedback feedback = http::parse_lines({{"Retry-After", "120"}});
  for (const int status : {-1,  0,   200, 204, 301, 400, 401, 403, 404, 409,
                           417, 419, 421, 428, 430, 500, 501, 505, 999, 1 << 30}) {
    CAPTURE(status);
    CHECK_NOTHROW(http::require_served(status, feedback));
  }
}
