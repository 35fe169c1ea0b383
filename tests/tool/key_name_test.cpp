// The names of keys, taken apart.
#include "tool/describe.hpp"

#include "src/waiting/wake_up.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {
namespace {

using tool::KeyName;

TEST_CASE("a key is taken apart as it was put together", "[key_name]") {
  Random random("a key is taken apart as it was put together");
  CAPTURE(random.repeat());
  const auto part = [&](std::int64_t least) {
    std::string text;
    for (auto left = random.between(least, 12); left > 0; --left) {
      text +=
          static_cast<char>(random.one_in(3) ? random.between(0, 255) : random.between(33, 126));
    }
    return text;
  };
  for (std::size_t i = 0; i < scaled(2'000); ++i) {
    const std::string tag = part(1);
    const std::string limit = part(1);
    const std::string unit = part(0);
    const std::string rendered =
        render(Key{tag, std::string_view(limit)}.with_unit(std::string_view(unit)));
    const auto name = KeyName::parse("app:" + rendered);
    INFO(rendered);
    REQUIRE(name);
    CHECK(name->prefix == "app:");
    CHECK(name->tag == tag);
    CHECK(name->name == limit);
    CHECK(name->unit == unit);
    CHECK(name->text == "app:" + rendered);
    CHECK_FALSE(name->is_hashed);
    CHECK(name->prefix + render(name->key()) == name->text);
  }
}

TEST_CASE("a part that is hashed is known as such", "[key_name]") {
  const std::string tag(200, 'x');
  const auto name = KeyName::parse(render(Key{tag, "api"}));
  REQUIRE(name);
  CHECK(name->is_hashed);
  CHECK(name->name == "api");
  CHECK(tool::wait_line_of(*name).empty());
  CHECK(KeyName::parse("{#}:a") == std::nullopt);
}

TEST_CASE("foreign names are none of a limiter", "[key_name]") {
  for (const char* const text : {"",          "foo",          "{",       "}",        "{}",
                                 "{a}",       "{a}:",         "{}:a",    "a}:{b",    "{a}:b:",
                                 "{a}:b:c:d", "{a}b",         "{a b}:c", "{a}:%",    "{a}:%4",
                                 "{a}:%zz",   "{a}:%41",      "{a}:%2F", "{a}:\xff", "{a}:{b}",
                                 "{a}:#0123", "{user:1}:cart"}) {
    INFO(text);
    CHECK_FALSE(KeyName::parse(text));
  }
}

TEST_CASE("the line of those who wait for a key has the name that they give it", "[key_name]") {
  const auto name = KeyName::parse("p{a}:api:10/s");
  REQUIRE(name);
  const std::string line = detail::wait_line_name(name->key());
  CHECK(tool::wait_line_of(*name) == "p" + render(Key{"a", std::string_view(line)}));
  CHECK(tool::wait_line_of(*name) == "p{a}:line2%1fapi%1f10/s");
}

}  // namespace
}  // namespace sluice::test
