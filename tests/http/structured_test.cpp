// Structured fields: what RFC 9651 takes, and what it does not.
#include "src/http/structured.hpp"

#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/http/parse.hpp"

using namespace sluice;
using http::Text;
using http::detail::BareItem;
using http::detail::Member;
using http::detail::MemberReader;
using Shape = MemberReader::Shape;
using Type = BareItem::Type;

TEST_CASE("every kind of item is taken in a list") {
  struct Row {
    const char* text;
    Type type;
    Word number;
    const char* raw;
  };
  const std::vector<Row> rows{
      {"100", Type::integer, 100, "100"},
      {"-5", Type::integer, -5, "-5"},
      {"999999999999999", Type::integer, 999'999'999'999'999, "999999999999999"},
      {"1.5", Type::decimal, 1, "1.5"},
      {"\"a b\"", Type::string, 0, "a b"},
      {"default", Type::token, 0, "default"},
      {"*a/b:c", Type::token, 0, "*a/b:c"},
      {":aGk=:", Type::bytes, 0, "aGk="},
      {"?1", Type::boolean, 1, ""},
      {"?0", Type::boolean, 0, ""},
      {"@1659578233", Type::date, 1'659'578'233, "1659578233"},
      {"%\"f%c3%bc\"", Type::display_string, 0, "f%c3%bc"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    MemberReader list(row.text, Shape::list);
    Member member;
    REQUIRE(list.next(member));
    CHECK(member.item.type == row.type);
    CHECK(member.item.number == row.number);
    CHECK(member.item.raw == row.raw);
    CHECK_FALSE(list.next(member));
    CHECK_FALSE(list.failed());
  }
}

TEST_CASE("members are read in order with their parameters, of which the last of a name counts") {
  MemberReader list("  \"a\";q=1;w=2;q=3 ,\tb; flag;x=\"y;,\" , 7", Shape::list);
  Member member;
  REQUIRE(list.next(member));
  REQUIRE(member.parameter("q"));
  CHECK(member.parameter("q")->number == 3);
  CHECK(member.parameter("w")->number == 2);
  CHECK_FALSE(member.parameter("pk"));
  REQUIRE(list.next(member));
  CHECK(member.item.raw == "b");
  REQUIRE(member.parameter("flag"));
  CHECK(member.parameter("flag")->type == Type::boolean);
  CHECK(member.parameter("flag")->number == 1);
  CHECK(member.parameter("x")->raw == "y;,");
  REQUIRE(list.next(member));
  CHECK(member.item.number == 7);
  CHECK_FALSE(list.next(member));
  CHECK_FALSE(list.failed());
}

TEST_CASE("a dictionary has keys, and values that are true by themselves") {
  MemberReader members("limit=100, remaining=50;x, ok", Shape::dictionary);
  Member member;
  REQUIRE(members.next(member));
  CHECK(member.key == "limit");
  CHECK(member.item.number == 100);
  REQUIRE(members.next(member));
  CHECK(member.key == "remaining");
  REQUIRE(members.next(member));
  CHECK(member.key == "ok");
  CHECK(member.item.number == 1);
  CHECK_FALSE(members.next(member));
  CHECK_FALSE(members.failed());
}

TEST_CASE("what RFC 9651 does not take makes the whole list unsound") {
  for (const std::string_view text :
       http::parts_of("a, ,a a,,b a; a;=1 a;Q=1 a;q= \"a \"a\\x\" \"a\\ \"\x01\" \"\xc3\xa9\" "
                      "\xc3\xa9 1. 1.2345 "
                      ".5 --1 - 1000000000000000 1000000000000.5 :aGk :a!: ?2 ? @1.5 @ %\" "
                      "%\"%C3\" %\"%c a=1 {}",
                      ' ')) {
    CAPTURE(text);
    CHECK_FALSE(MemberReader::sound(text, Shape::list));
  }
  CHECK_FALSE(MemberReader::sound("a b", Shape::list));
  CHECK_FALSE(MemberReader::sound("(a b)", Shape::list));
  CHECK(MemberReader::sound("a\t", Shape::list));  // a tab may stand around commas only
  CHECK(MemberReader::sound("", Shape::list));
  CHECK_FALSE(MemberReader::sound("100, a=1", Shape::dictionary));
  CHECK_FALSE(MemberReader::sound("A=1", Shape::dictionary));
}

TEST_CASE("texts are copied without their escapes, and bytes out of their base64") {
  const auto copied = [](BareItem item) {
    Text out;
    return item.copy_to(out) ? std::string(out.view()) : "(none)";
  };
  CHECK(copied({Type::string, 0, "a\\\"b\\\\c"}) == "a\"b\\c");
  CHECK(copied({Type::token, 0, "abc"}) == "abc");
  CHECK(copied({Type::bytes, 0, "aGVsbG8="}) == "hello");
  CHECK(copied({Type::bytes, 0, "aGVsbG8"}) == "hello");
  CHECK(copied({Type::bytes, 0, "/+8A"}) == std::string("\xff\xef\0", 3));
  CHECK(copied({Type::bytes, 0, ""}).empty());
  CHECK(copied({Type::bytes, 0, "a"}) == "(none)");
  CHECK(copied({Type::bytes, 0, "a=b="}) == "(none)");
  CHECK(copied({Type::integer, 5, "5"}) == "(none)");
  const std::string longest(Text::capacity, 'x');
  CHECK(copied({Type::token, 0, longest}) == longest);
  const std::string longer = longest + 'x';
  CHECK(copied({Type::token, 0, longer}) == "(none)");
  CHECK(copied({Type::string, 0, longer}) == "(none)");
}
