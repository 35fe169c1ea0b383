// Nonsense in every place: what it ends in, and that it is bounded.
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/http/parse.hpp"

using namespace sluice;
using namespace sluice::http;
using namespace std::chrono_literals;

namespace {

struct Row {
  std::string name;
  std::string value;
  Fate fate;
};

}  // namespace

TEST_CASE("nonsense is not used, and the reason is told") {
  const std::string huge(Feedback::max_value_bytes + 1, '1');
  const std::string deep = '"' + std::string(Text::capacity + 1, 'n') + '"';
  const std::vector<Row> rows{
      {"Retry-After", "", Fate::empty},
      {"Retry-After", "-1", Fate::negative},
      {"Retry-After", "NaN", Fate::malformed},
      {"Retry-After", "1e30", Fate::malformed},
      {"Retry-After", "1" + std::string(30, '0'), Fate::clamped},
      {"Retry-After", "Thu, 32 Feb 2024 12:34:56 GMT", Fate::malformed},
      {"Retry-After", "Thu, 29 Feb 2020 12:34:56 GMT", Fate::past},  // a Saturday: any name will do
      {"Retry-After", "\xff\xfe", Fate::malformed},
      {"Retry-After", std::string("3\0000", 3), Fate::malformed},
      {"Retry-After", huge, Fate::too_long},
      {"retry-after-ms", "-20", Fate::negative},
      {"RateLimit", "", Fate::empty},
      {"RateLimit", "\"a\"", Fate::malformed},
      {"RateLimit", "\"a\";r=-1", Fate::negative},
      {"RateLimit", "\"a\";r=1;t=-1", Fate::negative},
      {"RateLimit", "\"a\";r=1.5", Fate::malformed},
      {"RateLimit", "\"a\";r=1e30", Fate::malformed},
      {"RateLimit", "\"a\";r=1000000000000000", Fate::malformed},
      {"RateLimit", "\"a\";r=1;pk=a b", Fate::malformed},
      {"RateLimit", "\"a\";r=1;pk=7", Fate::malformed},
      {"RateLimit", deep + ";r=1", Fate::too_long},
      {"RateLimit", "5;r=1", Fate::malformed},
      {"RateLimit", "(\"a\" \"b\");r=1", Fate::malformed},
      {"RateLimit", "\"a\";r=1,", Fate::malformed},
      {"RateLimit", "limit=-1", Fate::negative},
      {"RateLimit", "colour=1", Fate::malformed},
      {"RateLimit", huge, Fate::too_long},
      {"RateLimit-Policy", "\"a\";w=5", Fate::malformed},
      {"RateLimit-Policy", "\"a\";q=1;w=\"x\"", Fate::malformed},
      {"RateLimit-Policy", "\"a\";q=1;w=999999999999999", Fate::used},
      {"RateLimit-Policy", "limit=5", Fate::malformed},
      {"X-RateLimit-Limit", "-1", Fate::negative},
      {"X-RateLimit-Limit", "unlimited", Fate::malformed},
      {"X-RateLimit-Limit", "1" + std::string(30, '0'), Fate::clamped},
      {"X-RateLimit-Remaining", "5 apples", Fate::malformed},
      {"X-RateLimit-Remaining", "0x10", Fate::malformed},
      {"X-RateLimit-Reset", "Tue Feb 16 2021 09:02:42 GMT+0100", Fate::malformed},
      {"X-RateLimit-Reset", "99999999999999999999999999", Fate::clamped},
      {"X-RateLimit-Reset", "1500000000", Fate::past},
      {"X-RateLimit-Window", "1709210096", Fate::malformed},
      {"X-RateLimit-Global", "perhaps", Fate::malformed},
      {"X-RateLimit-Scope", "us\xc3\xa9r", Fate::malformed},
      {"X-RateLimit-Bucket", std::string(65, 'b'), Fate::too_long},
      {"X-Shopify-Shop-Api-Call-Limit", "32", Fate::malformed},
      {"X-Shopify-Shop-Api-Call-Limit", "-1/40", Fate::negative},
      {"X-Shopify-Shop-Api-Call-Limit", "1/2/3", Fate::malformed},
      {"X-RateLimit-Precision", "millisecond", Fate::unknown},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name, row.value.substr(0, 60));
    const Feedback feedback = parse_lines({{row.name, row.value}});
    REQUIRE(feedback.notes().size() == 1);
    CHECK(feedback.notes()[0].fate == row.fate);
    CHECK(feedback.wait().value_or(1us) > 0s);
    CHECK(feedback.wait().value_or(0s) <= 24h);
  }
}

TEST_CASE("nonsense beside a sound header leaves it alone") {
  const Feedback feedback = parse_lines({{"Retry-After", "soon"},
                                         {"Retry-After", "30"},
                                         {"RateLimit", "\"a\";r=\xff"},
                                         {"RateLimit", "\"b\";r=2"},
                                         {"X-RateLimit-Remaining", "-5"}});
  CHECK(feedback.retry_after == 30s);
  REQUIRE(feedback.windows().size() == 1);
  CHECK(feedback.windows()[0].name == "b");
}

TEST_CASE("an instant in the past does not say how long to wait") {
  const Feedback feedback =
      parse_lines({{"X-RateLimit-Remaining", "0"}, {"X-RateLimit-Reset", "1500000000"}});
  CHECK(feedback.windows()[0].reset == 0s);
  CHECK_FALSE(feedback.wait());
}

TEST_CASE("limits beyond the bounds are told to be so") {
  std::string list = "\"p0\";r=1";
  for (int i = 1; i < 40; ++i) list += ", \"p" + std::to_string(i) + "\";r=1";
  const Feedback many = parse_lines({{"RateLimit", list}, {"X-RateLimit-Limit", "1"}});
  CHECK(many.windows().size() == Feedback::max_windows);
  CHECK(many.notes()[0].fate == Fate::partly);
  CHECK(many.notes()[1].fate == Fate::too_many);

  HeaderLines lines;
  for (int i = 0; i < 100; ++i) lines.emplace_back("X-RateLimit-Reset", std::to_string(i));
  const Feedback repeated = parse_lines(lines);
  CHECK(repeated.truncated);
  CHECK(repeated.notes().size() == Feedback::max_notes);

  HeaderLines others(5000, {"Set-Cookie", "a"});
  others.emplace_back("Retry-After", "30");
  CHECK(parse_lines(others).truncated);
  CHECK_FALSE(parse_lines(others).retry_after);
}

TEST_CASE("times at the ends of their range do no harm") {
  for (const Time now : {Time::min(), Time::max(), to_time(0), to_time(word_limit)}) {
    for (const Span longest : {Span::min(), Span::max(), Span{0}, Span{1}}) {
      for (const char* value : {"1", "1709210096", "Fri, 31 Dec 9999 23:59:59 GMT",
                                "Thu, 01 Jan 1970 00:00:00 GMT", "99999999999999999999"}) {
        const HeaderLines lines{{"Retry-After", value},
                                {"X-RateLimit-Reset", value},
                                {"Date", "Fri, 31 Dec 9999 23:59:59 GMT"}};
        const Feedback feedback = parse_feedback(lines, now, {.longest = longest});
        CHECK(feedback.wait().value_or(1us) > 0s);
        CHECK(feedback.wait().value_or(0s) <= std::max(longest, Span{0}));
        CHECK(feedback.retry_at().value_or(feedback.at) >= feedback.at);
        CHECK(feedback.made <= feedback.at);
      }
    }
  }
}
