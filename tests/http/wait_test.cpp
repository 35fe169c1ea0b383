// Numbers, durations and dates as waits: what is a length of time, what an instant.
#include "src/http/wait.hpp"

#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/http/parse.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using http::Fate;
using http::test_now;
using http::detail::Frame;
using http::detail::parse_wait;
using http::detail::TimeUnit;
using http::detail::Wait;

namespace {

constexpr Span longest = 24h;
constexpr Frame frame{test_now, test_now, longest};

struct Row {
  std::string text;
  Fate fate;
  Span span;
  bool relative;
};

void check(const std::vector<Row>& rows, TimeUnit unit) {
  for (const Row& row : rows) {
    CAPTURE(row.text.substr(0, 60));
    const Wait wait = parse_wait(row.text, unit, frame);
    CHECK(wait.fate == row.fate);
    CHECK(wait.span == row.span);
    if (wait.known()) CHECK(wait.relative == row.relative);
  }
}

}  // namespace

TEST_CASE("a number's size tells whether it is a length of time or an instant") {
  check(
      {
          {"0", Fate::used, 0s, true},
          {"30", Fate::used, 30s, true},
          {"2.0", Fate::used, 2s, true},
          {"0.0000001", Fate::used, 1us, true},
          {"86400", Fate::used, 24h, true},
          {"86401", Fate::clamped, 24h, true},
          {"99999999", Fate::clamped, 24h, true},
          {"100000000", Fate::past, 0s, false},   // seconds of 1973
          {"1709210096", Fate::past, 0s, false},  // now
          {"1709210097", Fate::used, 1s, false},  // seconds
          {"1709210096.25", Fate::used, 250ms, false},
          {"99999999999", Fate::clamped, 24h, false},
          {"1709210096001", Fate::used, 1ms, false},  // milliseconds
          {"1709210096000001", Fate::used, 1us, false},
          {"1709210096000001000", Fate::used, 2us, false},  // nanoseconds, rounded up
          {"18446744073709551614", Fate::clamped, 24h, false},
          {"1" + std::string(30, '0'), Fate::clamped, 24h, true},
      },
      TimeUnit::seconds);
}

TEST_CASE("in milliseconds the same sizes are a thousand times larger") {
  check(
      {
          {"1500", Fate::used, 1500ms, true},
          {"0.5", Fate::used, 500us, true},
          {"99999999999", Fate::clamped, 24h, true},
          {"100000000000", Fate::past, 0s, false},
          {"1709210096001", Fate::used, 1ms, false},
      },
      TimeUnit::milliseconds);
}

TEST_CASE("durations are sums of numbers with units") {
  check(
      {
          {"6m0s", Fate::used, 6min, true},
          {"1s", Fate::used, 1s, true},
          {"20ms", Fate::used, 20ms, true},
          {"2m59.56s", Fate::used, 179'560ms, true},
          {"1h2m3s", Fate::used, 1h + 2min + 3s, true},
          {"0s", Fate::used, 0s, true},
          {"15us", Fate::used, 15us, true},
          {"15ns", Fate::used, 1us, true},
          {"1d1s", Fate::clamped, 24h, true},
          {"99999999999999999999h", Fate::clamped, 24h, true},
          {"-1s", Fate::negative, 0s, true},
          {"1s-1s", Fate::negative, 0s, true},
          {"1x", Fate::malformed, 0s, true},
          {"1m1", Fate::malformed, 0s, true},
          {"1mx", Fate::malformed, 0s, true},
          {"1 s", Fate::malformed, 0s, true},
          {"1e30", Fate::malformed, 0s, true},
      },
      TimeUnit::seconds);
}

TEST_CASE("dates are instants, measured from the server's clock") {
  check(
      {
          {"Thu, 29 Feb 2024 12:35:56 GMT", Fate::used, 60s, false},
          {"Thursday, 29-Feb-24 12:35:56 GMT", Fate::used, 60s, false},
          {"Thu Feb 29 12:35:56 2024", Fate::used, 60s, false},
          {"2024-02-29T12:34:56.25Z", Fate::used, 250ms, false},
          {"Thu, 29 Feb 2024 12:34:56 GMT", Fate::past, 0s, false},
          {"Fri, 31 Dec 1999 23:59:59 GMT", Fate::past, 0s, false},
          {"Fri, 31 Dec 9999 23:59:59 GMT", Fate::clamped, 24h, false},
      },
      TimeUnit::seconds);
  const Frame ahead{test_now, test_now + 10s, longest};
  CHECK(parse_wait("Thu, 29 Feb 2024 12:35:56 GMT", TimeUnit::seconds, ahead).span == 50s);
  CHECK(parse_wait("30", TimeUnit::seconds, ahead).span == 30s);
}

TEST_CASE("what is no time is not used, and the reason is told") {
  check(
      {
          {"", Fate::empty, 0s, true},
          {"  \t", Fate::empty, 0s, true},
          {"-1", Fate::negative, 0s, true},
          {"NaN", Fate::malformed, 0s, true},
          {"inf", Fate::malformed, 0s, true},
          {"1,5", Fate::malformed, 0s, true},
          {"0x10", Fate::malformed, 0s, true},
          {"\xd9\xa3\xd9\xa0", Fate::malformed, 0s, true},  // Arabic digits
          {"soon", Fate::malformed, 0s, true},
      },
      TimeUnit::seconds);
}
