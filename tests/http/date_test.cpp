// The three forms of an HTTP-date, and RFC 3339.
#include "src/http/date.hpp"

#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/http/parse.hpp"

using namespace sluice;
using http::test_now;
using http::detail::parse_http_date;
using http::detail::parse_rfc3339;

namespace {
constexpr Word second = 1'000'000;
}

TEST_CASE("the three forms of an HTTP-date are the same instant") {
  const Time instant = to_time(784'111'777 * second);  // the example of RFC 9110
  CHECK(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT", test_now) == instant);
  CHECK(parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT", test_now) == instant);
  CHECK(parse_http_date("Sun Nov  6 08:49:37 1994", test_now) == instant);
  CHECK(parse_http_date("Wed Nov 16 08:49:37 1994", test_now) == instant + std::chrono::hours{240});
}

TEST_CASE("a year of two digits lies at most 50 years ahead, else in the century before") {
  struct Row {
    const char* text;
    const char* same_as;
  };
  const std::vector<Row> rows{
      {"Thursday, 29-Feb-24 12:34:56 GMT", "Thu, 29 Feb 2024 12:34:56 GMT"},
      {"Friday, 28-Feb-74 00:00:00 GMT", "Wed, 28 Feb 2074 00:00:00 GMT"},
      {"Thursday, 01-Mar-74 00:00:00 GMT", "Fri, 01 Mar 1974 00:00:00 GMT"},
      {"Friday, 01-Jan-99 00:00:00 GMT", "Fri, 01 Jan 1999 00:00:00 GMT"},
      {"Saturday, 01-Jan-00 00:00:00 GMT", "Sat, 01 Jan 2000 00:00:00 GMT"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto date = parse_http_date(row.text, test_now);
    REQUIRE(date);
    CHECK(date == parse_http_date(row.same_as, test_now));
  }
  // Half a century later the same two digits mean another one.
  CHECK(parse_http_date("Wednesday, 01-Jan-20 00:00:00 GMT", to_time(3'300'000'000 * second)) ==
        parse_http_date("Wed, 01 Jan 2120 00:00:00 GMT", test_now));
  CHECK(parse_http_date("Friday, 28-Jul-24 00:00:00 GMT", to_time(3'300'000'000 * second)) ==
        parse_http_date("Fri, 28 Jul 2124 00:00:00 GMT", test_now));
}

TEST_CASE("dates at the edges are bounded, and second 60 is the next minute's first") {
  CHECK(parse_http_date("Thu, 01 Jan 1970 00:00:00 GMT", test_now) == to_time(0));
  CHECK(parse_http_date("Wed, 31 Dec 1969 23:59:59 GMT", test_now) == to_time(0));
  CHECK(parse_http_date("Sat, 01 Jan 0000 00:00:00 GMT", test_now) == to_time(0));
  CHECK(parse_http_date("Fri, 31 Dec 9999 23:59:59 GMT", test_now) == to_time(word_limit));
  CHECK(parse_http_date("Sat, 31 Dec 2016 23:59:60 GMT", test_now) ==
        parse_http_date("Sun, 01 Jan 2017 00:00:00 GMT", test_now));
}

TEST_CASE("what is almost a date is none") {
  for (const std::string_view text : http::parts_of(
           "|Sun|Sun, 06 Nov 1994 08:49:37|Sun, 06 Nov 1994 08:49:37 UTC|"
           "Sun, 06 Nov 1994 08:49:37 GMT+1|sun, 06 Nov 1994 08:49:37 GMT|"
           "Son, 06 Nov 1994 08:49:37 GMT|Sun, 6 Nov 1994 08:49:37 GMT|"
           "Sun, 06 nov 1994 08:49:37 GMT|Sun, 06 Nov 94 08:49:37 GMT|"
           "Sun, 31 Feb 1994 08:49:37 GMT|Sun, 00 Nov 1994 08:49:37 GMT|"
           "Sun, 06 Nov 1994 24:00:00 GMT|Sun, 06 Nov 1994 08:60:37 GMT|"
           "Sun, 06 Nov 1994 08:49:61 GMT|Sun,  06 Nov 1994 08:49:37 GMT|"
           "Sun Nov 6 08:49:37 1994|Sun Nov  6 08:49:37 1994 |Sunday, 06-Nov-1994 08:49:37 GMT|"
           "Sun, 06-Nov-94 08:49:37 GMT|Sun, 06 Nov 19\xc3\xa9 08:49:37 GMT|"
           "Mon, 29 Feb 2023 00:00:00 GMT",
           '|')) {
    CAPTURE(text);
    CHECK_FALSE(parse_http_date(text, test_now));
  }
}

TEST_CASE("RFC 3339 has fractions and offsets") {
  struct Row {
    const char* text;
    Word us;
  };
  const Word base = 1'709'210'096 * second;
  const std::vector<Row> rows{
      {"2024-02-29T12:34:56Z", base},
      {"2024-02-29t12:34:56z", base},
      {"2024-02-29 12:34:56Z", base},
      {"2024-02-29T12:34:56.5Z", base + 500'000},
      {"2024-02-29T12:34:56.0000001Z", base + 1},
      {"2024-02-29T12:34:56.000000000Z", base},
      {"2024-02-29T14:34:56+02:00", base},
      {"2024-02-29T07:04:56-05:30", base},
      {"1969-12-31T23:59:59Z", 0},
      {"9999-12-31T23:59:59Z", word_limit},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(parse_rfc3339(row.text) == to_time(row.us));
  }
  for (const std::string_view text :
       {"", "2024-02-29", "2024-02-29T12:34:56", "2024-02-29T12:34Z", "2024-02-30T12:34:56Z",
        "2024-02-29T12:34:56.Z", "2024-02-29T12:34:56+2:00", "2024-02-29T12:34:56+24:00",
        "2024-2-29T12:34:56Z", "2024-02-29T12:34:56Z ", "-024-02-29T12:34:56Z"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_rfc3339(text));
  }
}
