// Text within the width of a terminal, and JSON.
#include "tool/output.hpp"

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {
namespace {

using tool::Moment;
using tool::Style;
using namespace std::chrono_literals;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST_CASE("text is broken at spaces, and within words that are too long", "[output]") {
  CHECK(tool::wrapped({.width = 10}, "one two three", 0) == "one two\nthree");
  CHECK(tool::wrapped({.width = 10}, "one two three", 4) == "one\n    two\n    three");
  CHECK(tool::wrapped({.width = 10}, "0123456789abc", 0) == "0123456789\nabc");
  CHECK(tool::wrapped({}, std::string(500, 'x'), 4) == std::string(500, 'x'));
  CHECK(tool::wrapped({}, "one\n\ntwo", 2) == "one\n  \n  two");
  CHECK(tool::wrapped({.width = 10}, "one two\nthree four five\n", 0) ==
        "one two\nthree four\nfive\n");
}

TEST_CASE("no line is wider than the terminal, and no letter is lost", "[output]") {
  Random random("no line is wider than the terminal, and no letter is lost");
  CAPTURE(random.repeat());
  for (std::size_t i = 0; i < scaled(500); ++i) {
    const Style style{.width = static_cast<std::size_t>(random.between(20, 60))};
    std::string text;
    for (auto left = random.between(1, 200); left > 0; --left) {
      text += random.one_in(9) ? ' ' : static_cast<char>(random.between('a', 'z'));
    }
    const auto indent = static_cast<std::size_t>(random.between(0, 30));
    const std::size_t kept = std::min(indent, style.width / 2);
    std::string letters;
    for (const std::string& line : lines_of(tool::wrapped(style, text, indent))) {
      CHECK(line.size() <= style.width);
      letters += line.substr(letters.empty() ? 0 : std::min(kept, line.size()));
    }
    std::erase(letters, ' ');
    std::erase(text, ' ');
    CHECK(letters == text);
  }
}

TEST_CASE("values are texts for readers and numbers for programs", "[output]") {
  constexpr Word now = 1'800'000'000'000'000;
  CHECK(tool::text_of(Word{12'345}, now) == "12,345");
  CHECK(tool::text_of(Word{-5}, now) == "-5");
  CHECK(tool::text_of(9.5, now) == "9.5");
  CHECK(tool::text_of(Span{1'500'000}, now) == "1.50 s");
  CHECK(tool::text_of(Moment{now + 300'000}, now) == "in 300 ms");
  CHECK(tool::text_of(Moment{now - 300'000}, now) == "300 ms ago");
  CHECK(tool::text_of(Moment{now + 3'600'000'000}, now) == "15 Jan 2027 09:00:00 UTC");
  const tool::Fields fields{
      {"used", Word{3}}, {"until", Moment{now}}, {"window", Span{5}}, {"rate", std::string("1/s")}};
  CHECK(tool::text_of(fields, now) == "used 3, until in 0 us, window 5 us, rate 1/s");
  CHECK(tool::to_json(fields).dump() ==
        R"({"used":3,"until_us":1800000000000000,"window_us":5,"rate":"1/s"})");
}

TEST_CASE("a text begins below its name where the terminal is narrow", "[output]") {
  CHECK(tool::behind({}, "name  ", "one two", 6) == "name  one two");
  CHECK(tool::behind({.width = 13}, "name  ", "one two", 6) == "name  one two");
  CHECK(tool::behind({.width = 12}, "name  ", "one two", 6) == "name  one\n      two");
  CHECK(tool::behind({.width = 10}, "name  ", "one two", 6) == "name\n     one\n     two");
}

TEST_CASE("no byte of a foreign text reaches a terminal but printable ones", "[output]") {
  CHECK(tool::shown("a\x1b[2J\n\x7f\xc3\xa9~ ") == "a\\x1b[2J\\x0a\\x7f\\xc3\\xa9~ ");
  CHECK(tool::shown(std::string(1'000, 'x')) == std::string(1'000, 'x'));
}

TEST_CASE("colour is for terminals alone", "[output]") {
  CHECK(tool::painted({.colour = true}, tool::Colour::red, "x") == "\x1b[31mx\x1b[0m");
  CHECK(tool::painted({}, tool::Colour::red, "x") == "x");
}

}  // namespace
}  // namespace sluice::test
