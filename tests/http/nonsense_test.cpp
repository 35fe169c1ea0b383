// Nonsense in every place: what it ends in, and that it is bounded.
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/http/parse.hpp"

using namespace sluice;
using namespace sluice::http;
using namespace std::chrono_literals;

TEST_CASE("nonsense is not used, and the reason is told") {
  const std::string huge(Feedback::max_value_bytes + 1, '1');
  const std::string many_digits = "1" + std::string(30, '0');
  const std::string deep = '"' + std::string(Text::capacity + 1, 'n') + '"';
  const auto check = [](const std::string& name, Fate fate,
                        const std::vector<std::string>& values) {
    for (const std::string& value : values) {
      CAPTURE(name, value.substr(0, 60));
      const Feedback feedback = parse_lines({{name, value}});
      REQUIRE(feedback.notes().size() == 1);
      CHECK(feedback.notes()[0].fate == fate);
      CHECK(feedback.wait().value_or(1us) > 0s);
      CHECK(feedback.wait().value_or(0s) <= 24h);
    }
  };
  check("Retry-After", Fate::empty, {""});
  check("Retry-After", Fate::negative, {"-1"});
  check("Retry-After", Fate::malformed,
        {"NaN", "1e30", "Thu, 32 Feb 2024 12:34:56 GMT", "\xff\xfe", std::string("3\0000", 3)});
  check("Retry-After", Fate::clamped, {many_digits});
  check("Retry-After", Fate::past, {"Thu, 29 Feb 2020 12:34:56 GMT"});  // a Saturday: any will do
  check("Retry-After", Fate::too_long, {huge});
  check("retry-after-ms", Fate::negative, {"-20"});
  check("RateLimit", Fate::empty, {""});
  check("RateLimit", Fate::negative, {"\"a\";r=-1", "\"a\";r=1;t=-1", "limit=-1"});
  check("RateLimit", Fate::malformed,
        {"\"a\"", "\"a\";r=1.5", "\"a\";r=1e30", "\"a\";r=1000000000000000", "\"a\";r=1;pk=a b",
         "\"a\";r=1;pk=7", "5;r=1", "(\"a\" \"b\");r=1", "\"a\";r=1,", "colour=1"});
  check("RateLimit", Fate::too_long, {deep + ";r=1", huge});
  check("RateLimit-Policy", Fate::malformed, {"\"a\";w=5", "\"a\";q=1;w=\"x\"", "limit=5"});
  check("RateLimit-Policy", Fate::used, {"\"a\";q=1;w=999999999999999"});
  check("X-RateLimit-Limit", Fate::negative, {"-1"});
  check("X-RateLimit-Limit", Fate::malformed, {"unlimited"});
  check("X-RateLimit-Limit", Fate::clamped, {many_digits});
  check("X-RateLimit-Remaining", Fate::malformed, {"5 apples", "0x10"});
  check("X-RateLimit-Reset", Fate::malformed, {"Tue Feb 16 2021 09:02:42 GMT+0100"});
  check("X-RateLimit-Reset", Fate::clamped, {"99999999999999999999999999"});
  check("X-RateLimit-Reset", Fate::past, {"1500000000"});
  check("X-RateLimit-Window", Fate::malformed, {"1709210096"});
  check("X-RateLimit-Global", Fate::malformed, {"perhaps"});
  check("X-RateLimit-Scope", Fate::malformed, {"us\xc3\xa9r"});
  check("X-RateLimit-Bucket", Fate::too_long, {std::string(65, 'b')});
  check("X-Shopify-Shop-Api-Call-Limit", Fate::malformed, {"32", "1/2/3"});
  check("X-Shopify-Shop-Api-Call-Limit", Fate::negative, {"-1/40"});
  check("X-RateLimit-Precision", Fate::unknown, {"millisecond"});
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
