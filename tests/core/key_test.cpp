// Keys: rendered so that no two are alike, whatever bytes a user sends. Threading: single-threaded.
#include "sluice/key.hpp"

#include <climits>
#include <map>
#include <string>

#include "sluice/extend/owned_plan.hpp"
#include "sluice/sluice.hpp"
#include "src/util/siphash.hpp"
#include "src/waiting/queue_ticket.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

std::string hex_of(const std::array<std::uint64_t, 2>& words) {
  std::string out;
  for (const std::uint64_t word : words) {
    for (int byte = 0; byte < 8; ++byte) {  // little-endian, as the vectors are published
      constexpr std::string_view digits = "0123456789ABCDEF";
      const auto value = word >> (8 * byte) & 255;
      out += digits[value >> 4];
      out += digits[value & 15];
    }
  }
  return out;
}

constexpr HashKey reference_key{0x0706050403020100, 0x0f0e0d0c0b0a0908};

}  // namespace

TEST_CASE("SipHash-2-4 with 128 bits gives the published values", "[core][key]") {
  // Key 00..0f, message 00 01 02..: the reference vectors, and longer ones from OpenSSL.
  const std::pair<std::size_t, const char*> vectors[] = {
      {0, "A3817F04BA25A8E66DF67214C7550293"},   {1, "DA87C1D86B99AF44347659119B22FC45"},
      {2, "8177228DA4A45DC7FCA38BDEF60AFFE4"},   {7, "A1F1EBBED8DBC153C0B84AA61FF08239"},
      {8, "3B62A9BA6258F5610F83E264F31497B4"},   {15, "5493E99933B0A8117E08EC0F97CFC3D9"},
      {16, "6EE2A4CA67B054BBFD3315BF85230577"},  {63, "5150D1772F50834A503E069A973FBD7C"},
      {129, "6156500C05217297033B050C576E424E"}, {300, "CE005A406D14B36D5386B5F7A7E1B311"},
  };
  for (const auto& [length, expected] : vectors) {
    std::string message;
    for (std::size_t i = 0; i < length; ++i) message += static_cast<char>(i & 255);
    INFO(length);
    CHECK(hex_of(sluice::detail::SipHash24(reference_key)(message)) == expected);
  }
}

TEST_CASE("parts hash as one message that no other parts make", "[core][key]") {
  const auto hash = [](auto... parts) {
    return sluice::detail::SipHash13(reference_key)(std::string_view(parts)...);
  };
  CHECK(hash("a", "bc") != hash("ab", "c"));
  CHECK(hash("", "abc") != hash("abc", ""));
  CHECK(hash("a", "") != hash("", "a"));
  CHECK(hash("a", "bc") == hash("a", "bc"));
  CHECK(hash("a", "bc", "") == hash("a", "bc"));
  CHECK(hash("a", "bc", "d") != hash("a", "bc"));
  CHECK(hash("a", "bc", "d") != hash("a", "b", "cd"));
  CHECK(hash("a", "bc", "d") != hash("a", "bc", "e"));
}

TEST_CASE("a key renders with its hash tag, and user input never makes one", "[core][key][C-013]") {
  CHECK(render(Key{"alice", "api"}) == "{alice}:api");
  CHECK(render(Key{"a", "b:c"}) == "{a}:b%3ac");
  CHECK(render(Key{"a:b", "c"}) == "{a%3ab}:c");
  CHECK(render(Key{"{x}", "}y{"}) == "{%7bx%7d}:%7dy%7b");
  CHECK(render(KeyArg{"a%00", std::string("\0\r\n", 3)}) == "{a%2500}:%00%0d%0a");
  CHECK(render(Key{"-._~@+=,/", "AZaz09"}) == "{-._~@+=,/}:AZaz09");
  CHECK(render(Key{"#", "\xff"}) == "{%23}:%ff");
  CHECK(render(Key{"alice", "api"}.with_unit("10/s@min")) == "{alice}:api:10/s@min");
  CHECK(render(Key{"a", "b"}.with_unit("daily@x:y")) == "{a}:b:daily@x%3ay");
  std::string out = "before ";
  append_rendered(out, Key{"a", "b"});
  CHECK(out == "before {a}:b");
}

TEST_CASE("a key has two parts of 1 byte to 1 MiB, stored as keyed hashes from 129 bytes on",
          "[core][key]") {
  const std::string edge(Key::max_plain_bytes, 'x');
  CHECK(render(Key{edge, "n"}) == "{" + edge + "}:n");
  const std::string hashed = render(KeyArg{edge + "x", "n"});
  CHECK(hashed.size() == std::string("{#}:n").size() + 32);
  CHECK(hashed.substr(0, 2) == "{#");
  CHECK(render(KeyArg{edge + "y", "n"}) != hashed);
  CHECK(render(KeyArg{edge + "x", "n"}, reference_key) != hashed);
  CHECK(render(KeyArg{"t", edge + "x"}).substr(0, 5) == "{t}:#");
  // A short part that looks like a hash is not one.
  CHECK(render(KeyArg{hashed.substr(1, 33), "n"}) != hashed);
  const std::string large(Key::max_part_bytes, 'z');
  CHECK(render(Key{large, large}).size() == std::string("{#}:#").size() + 64);
  CHECK(is_valid(Key{large, large}));
  CHECK(is_valid(Key{std::string_view("\0", 1), "b"}));
  for (const KeyArg& key : {KeyArg{"a", ""}, {"", "b"}, {large + "x", "b"}, {"a", large + "x"}}) {
    CHECK_FALSE(is_valid(key));
  }
}

TEST_CASE("different keys render differently, and use only bytes that mean nothing to Redis",
          "[core][key][C-086]") {
  test::Random random(
      "different keys render differently, and use only bytes that mean nothing to Redis");
  CAPTURE(random.repeat());
  constexpr std::string_view alphabet("{}:%#\r\n\0a0 \xff'\"", 13);
  std::map<std::string, std::pair<std::string, std::string>> seen;
  const auto part = [&] {
    std::string out;
    const std::size_t size = 1 + random.below(random.one_in(50) ? 300 : 4);
    for (std::size_t i = 0; i < size; ++i) {
      out += random.one_in(8) ? static_cast<char>(random.below(256))
                              : alphabet[random.below(alphabet.size())];
    }
    return out;
  };
  const std::size_t trials = test::scaled(100'000);
  for (std::size_t i = 0; i < trials; ++i) {
    const std::string tag = part();
    const std::string name = part();
    const std::string rendered = render(Key{tag, name});
    const auto [it, fresh] = seen.try_emplace(rendered, tag, name);
    if (!fresh && it->second != std::pair(tag, name)) FAIL("two keys render as " << rendered);
    if (rendered.find('}') != rendered.rfind('}') || rendered.rfind('{') != 0) {
      FAIL("the hash tag is not ours: " << rendered);
    }
    for (const char c : rendered) {
      if (c <= ' ' || c > '~') FAIL("a byte that is not printable in " << rendered);
    }
  }
  CHECK(seen.size() > trials / 3);
}

TEST_CASE("a key's unit tells it from others, also their wait lines", "[core][key]") {
  const Key key("a", "b");
  using detail::wait_line_name;
  CHECK(wait_line_name(key) == wait_line_name({"another tag", "b"}));
  CHECK(wait_line_name(key) != wait_line_name(key.with_unit("10s")));
  CHECK(wait_line_name(key.with_unit("20s")) != wait_line_name(key.with_unit("10s")));
  CHECK(key.unit().empty());
  CHECK(key.with_unit("10/s").unit() == "10/s");
  CHECK_FALSE(key.with_unit("10/s") == key);
  CHECK_FALSE(key.with_unit("10/s") == key.with_unit("20/s"));
  CHECK(key.with_unit("10/s").with_unit("") == key);
  CHECK(key.with_unit("10/s").with_default_name("c").unit() == "10/s");
  CHECK(key.with_unit(std::string(300, 'u')).unit() == std::string(255, 'u'));
}

TEST_CASE("limiters name what they count in", "[core][key]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const auto unit = [](const auto& limiter) {
    return std::string(limiter.acquire_step("k").key.unit());
  };
  for (const auto& [quota, name] : {std::pair{Quota::per_second(10).burst(3), "10/s"},
                                    {Quota::per_minute(600), "10/s"},
                                    {Quota::per_minute(50), "50/min"},
                                    {Quota::per_day(1), "1/day"},
                                    {Quota::per(7, 13s), "7/13s"},
                                    {Quota::per(1, 3us), "20000000/min"},
                                    {Quota::per(1, 11us), "1/11us"}}) {
    CHECK(unit(TokenBucket(*store, "b", quota)) == name);
  }
  CHECK(unit(TokenBucket(*store, "b", Quota::per_second(10),
                         {.refill = Refill::per_interval(90s)})) == "10/s@90s");
  CHECK(unit(SlidingWindow(*store, "w", {{10, 1s}})) == "1s,grants");
  for (const Word limit : {10, 20}) {
    CHECK(unit(SlidingWindow(*store, "w", {{limit, 1s}, {10 * limit, 1min}})) == "1s+1min,grants");
  }
  CHECK(unit(SlidingWindowCounter(*store, "c", {10, 90s})) == "90s");
  for (const auto& [calendar, name] : {std::pair{Calendar::every(1min), "1min"},
                                       {Calendar::every(1h, Time{90s}), "1h+90s"},
                                       {Calendar::daily(), "daily@UTC"},
                                       {Calendar::monthly(), "monthly@UTC"}}) {
    CHECK(unit(FixedWindow(*store, "f", 10, calendar)) == name);
  }
  CHECK(unit(SlotLock(*store, "l", 1s)).empty());
}

TEST_CASE("the tag of a number is its decimal digits", "[core][key]") {
  for (const auto& [key, digits] : {std::pair{Key(0), "0"},
                                    {Key(-42), "-42"},
                                    {Key(std::int8_t{-128}), "-128"},
                                    {Key(std::uint8_t{65}), "65"},
                                    {Key(std::uint16_t{65535}), "65535"},
                                    {Key(42U), "42"},
                                    {Key(LLONG_MIN), "-9223372036854775808"},
                                    {Key(LLONG_MAX), "9223372036854775807"},
                                    {Key(ULLONG_MAX), "18446744073709551615"}}) {
    CHECK(key.tag() == digits);
    CHECK(key.name().empty());
    CHECK(key == Key(digits));
  }
  CHECK(Key(42, "uploads") == Key("42", "uploads"));
  CHECK_FALSE(Key(42) == Key(43));
  CHECK(render(Key(-1, "n")) == "{-1}:n");
}

TEST_CASE("a key of a number keeps its digits, through copies, steps and plans", "[core][key]") {
  VirtualClock clock;
  const TokenBucket bucket(make_virtual_store(clock), "b", Quota::per_second(1).burst(3));
  const Step step = bucket.acquire_step(123456789);  // the key that was passed is gone
  CHECK(step.key == Key("123456789", "b").with_unit("1/s"));
  const std::array steps{bucket.acquire_step(7), bucket.acquire_step(8)};
  CHECK(decide(bucket.store(), steps));
  CHECK(bucket.try_acquire(0).remaining == 2);  // which is no null pointer
  CHECK(bucket.at("0").try_acquire().remaining == 1);
  const OwnedPlan owned(step);
  CHECK(owned.view().steps()[0].key == Key("123456789", "b").with_unit("1/s"));
  Key key("text", "n");
  key = Key(LLONG_MIN, "m");
  const Key copy = key;
  key = Key("other");
  CHECK(copy == Key("-9223372036854775808", "m"));
  CHECK(key.tag() == "other");
}

TEST_CASE("a key of text is a constant where its text is one", "[core][key]") {
  static constexpr Key key{"alice", "uploads"};
  static constexpr Key copy = key;
  static_assert(copy == Key("alice", "uploads"));
  static_assert(Key("alice").with_default_name("api").name() == "api");
  static_assert(copy.with_default_name("api") == copy);
  CHECK(copy.tag() == "alice");
}
