// Decimal numbers of any length.
#include "src/http/number.hpp"

#include <string>
#include <vector>

#include "tests/catch.hpp"

using namespace sluice;
using http::detail::Decimal;
using http::detail::take_decimal;

TEST_CASE("a number of any length is read without overflow, and what follows it is left") {
  struct Row {
    std::string text;
    std::uint64_t whole;
    std::uint32_t micro;
    std::string rest;
  };
  const std::vector<Row> rows{
      {"0", 0, 0, ""},
      {"60", 60, 0, ""},
      {"+7", 7, 0, ""},
      {"007", 7, 0, ""},
      {"0.5", 0, 500'000, ""},
      {"1470173023.123", 1'470'173'023, 123'000, ""},
      {"1.0000019", 1, 1, ""},
      {"2.50", 2, 500'000, ""},
      {"2.500000000000", 2, 500'000, ""},
      {"3.0000000", 3, 0, ""},
      {"5.", 5, 0, "."},
      {"5.x", 5, 0, ".x"},
      {"5s", 5, 0, "s"},
      {"1e30", 1, 0, "e30"},
      {"18446744073709551614", 18'446'744'073'709'551'614U, 0, ""},
      {"18446744073709551615", Decimal::huge, 0, ""},
      {"18446744073709551616", Decimal::huge, 0, ""},
      {"1" + std::string(30, '0'), Decimal::huge, 0, ""},
      {std::string(4000, '9'), Decimal::huge, 0, ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text.substr(0, 40));
    std::string_view rest = row.text;
    const auto number = take_decimal(rest);
    REQUIRE(number);
    CHECK(number->whole == row.whole);
    CHECK(number->micro == row.micro);
    CHECK(rest == row.rest);
    CHECK_FALSE(number->negative);
  }
}

TEST_CASE("what begins with no digit is no number, and nothing of it is taken") {
  for (const std::string_view text : {"", "-", "+", ".5", "NaN", "inf", "0x"}) {
    CAPTURE(text);
    std::string_view rest = text;
    const auto number = take_decimal(rest);
    CHECK(number.has_value() == (text == "0x"));
    if (!number) CHECK(rest == text);
  }
}

TEST_CASE("minus zero is not negative, and less than that is") {
  const auto negative = [](std::string_view text) { return take_decimal(text)->negative; };
  CHECK_FALSE(negative("-0"));
  CHECK_FALSE(negative("-0.0"));
  CHECK(negative("-1"));
  CHECK(negative("-0.000001"));
  CHECK(negative("-0.00000000001"));
}

TEST_CASE("a number times a unit is rounded up and bounded") {
  const auto times = [](std::string_view text, Word unit) {
    return take_decimal(text)->times_rounded_up(unit);
  };
  CHECK(times("2", 1'000'000) == 2'000'000);
  CHECK(times("0.5", 1'000) == 500);
  CHECK(times("0.0005", 1'000) == 1);
  CHECK(times("0.0000001", 1'000'000) == 1);
  CHECK(times("0", 1'000'000) == 0);
  CHECK(times("1.0000000", 1'000'000) == 1'000'000);  // zeros behind the last place are no rest
  CHECK(times("1.00000000000000000000", 1'000'000) == 1'000'000);
  CHECK(times("0.1234560000", 1'000'000) == 123'456);
  CHECK(times("0.12345600001", 1'000'000) == 123'457);
  CHECK(times("1.0000000000000000001", 1'000'000) == 1'000'001);
  CHECK(times("1.000000", 1'000) == 1'000);
  CHECK(times("4503599627.370496", 1'000'000) == word_limit);
  CHECK(times("4503599627.370495", 1'000'000) == word_limit - 1);
  CHECK(times("4503599628", 1'000'000) == word_limit);
  CHECK(times("99999999999999999999999", 1) == word_limit);
}
