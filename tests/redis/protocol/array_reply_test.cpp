// Replies of any shape: every split, bounds, and streams that are no reply. Threading:
// single-threaded.
#include "backends/redis/protocol/array_reply.hpp"

#include <algorithm>

#include "tests/catch.hpp"
#include "tests/redis/protocol/reply_values.hpp"
#include "tests/redis/resp.hpp"
#include "tests/support/seed.hpp"

using namespace sluice::test;
using sluice::redis_detail::ArrayReader;
using Kind = ReplyValue::Kind;
using State = ArrayReader::State;

namespace {

State feed(ArrayReader& reader, std::string_view bytes, std::size_t part) {
  State state = State::incomplete;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(part, bytes.size()))) {
    state = reader.feed(bytes.substr(0, part));
  }
  return state;
}

/// The state after all bytes, which does not depend on how they are split.
State state_of(std::string_view bytes) {
  ArrayReader whole;
  ArrayReader single;
  const State state = feed(whole, bytes, std::max<std::size_t>(bytes.size(), 1));
  CHECK(feed(single, bytes, 1) == state);
  if (state == State::complete) CHECK(single.value() == whole.value());
  return state;
}

ReplyValue value_of(std::string_view bytes) {
  ArrayReader reader;
  REQUIRE(reader.feed(bytes) == State::complete);
  return reader.value();
}

std::string text_of(const ReplyValue& value) {
  switch (value.kind) {
    case Kind::null:
      return "$-1\r\n";
    case Kind::status:
      return "+" + value.text + "\r\n";
    case Kind::error:
      return "-" + value.text + "\r\n";
    case Kind::integer:
      return ":" + std::to_string(value.integer) + "\r\n";
    case Kind::string:
      return bulk(value.text);
    case Kind::array:
      break;
  }
  std::string text = "*" + std::to_string(value.elements.size()) + "\r\n";
  for (const ReplyValue& element : value.elements) text += text_of(element);
  return text;
}

ReplyValue draw(Random& random, int depth) {
  std::string text;
  for (auto n = random.below(20); n > 0; --n) text += static_cast<char>(random.between(32, 126));
  switch (random.below(depth > 0 ? 7 : 5)) {
    case 0:
      return null_value();
    case 1:
      return status_value(text);
    case 2:
      return error_value(text);
    case 3:
      return integer_value(static_cast<std::int64_t>(random.next()));
    case 4:
      if (random.one_in(2)) text += "\r\n" + std::string(1, '\0');
      return string_value(text);
    default:
      break;
  }
  ReplyValue value = array_value({});
  for (auto n = random.below(6); n > 0; --n) value.elements.push_back(draw(random, depth - 1));
  return value;
}

std::string nested(std::size_t depth) {
  std::string text;
  for (; depth > 0; --depth) text += "*1\r\n";
  return text + ":1\r\n";
}

}  // namespace

TEST_CASE("a reply of each kind is read", "[array_reply]") {
  CHECK(value_of("+OK\r\n") == status_value("OK"));
  CHECK(value_of("+\r\n") == status_value(""));
  CHECK(value_of("-ERR no\r\n") == error_value("ERR no"));
  CHECK(value_of(":-7\r\n") == integer_value(-7));
  CHECK(value_of(":9223372036854775807\r\n") == integer_value(INT64_MAX));
  CHECK(value_of("$0\r\n\r\n") == string_value(""));
  const std::string binary("a\r\nb\0", 5);
  CHECK(value_of(bulk(binary)) == string_value(binary));
  CHECK(value_of("$-1\r\n") == null_value());
  CHECK(value_of("*-1\r\n") == null_value());
  CHECK(value_of("*0\r\n") == array_value({}));
  CHECK(value_of("*3\r\n*2\r\n:1\r\n$-1\r\n+a\r\n*0\r\n") ==
        array_value(
            {array_value({integer_value(1), null_value()}), status_value("a"), array_value({})}));
}

TEST_CASE("a reply is the same however its bytes are split", "[array_reply]") {
  Random random("a reply is the same however its bytes are split");
  CAPTURE(random.repeat());
  ArrayReader reader;
  for (std::size_t i = 0; i < scaled(2'000); ++i) {
    const ReplyValue expected = draw(random, 5);
    const std::string text = text_of(expected);
    CAPTURE(text);
    reader.reset();
    std::string_view rest = text;
    State state = State::incomplete;
    while (!rest.empty()) {
      CHECK(state == State::incomplete);
      const auto part = static_cast<std::size_t>(random.between(1, 9));
      state = reader.feed(rest.substr(0, part));
      rest.remove_prefix(std::min(part, rest.size()));
    }
    REQUIRE(state == State::complete);
    CHECK(reader.feed("") == State::complete);
    CHECK(reader.value() == expected);
    CHECK(reader.feed("+") == State::broken);
    CHECK(reader.feed("") == State::broken);
  }
}

TEST_CASE("changed bytes have one meaning however they are split", "[array_reply]") {
  Random random("changed bytes have one meaning however they are split");
  CAPTURE(random.repeat());
  constexpr std::string_view marks = "*$:+-\r\n019%_,#~=>(|!";
  std::size_t count[3] = {};
  for (std::size_t i = 0; i < scaled(2'000); ++i) {
    std::string text = text_of(draw(random, 4));
    for (auto n = random.below(3); n > 0; --n) {
      text[random.below(text.size())] = marks[random.below(marks.size())];
    }
    CAPTURE(text);
    ++count[static_cast<std::size_t>(state_of(text))];
  }
  CHECK(std::ranges::all_of(count, [](std::size_t n) { return n > 0; }));
}

TEST_CASE("bytes that are no reply of RESP2 are broken", "[array_reply]") {
  for (const std::string text : {"?\r\n",
                                 "OK\r\n",
                                 "\r\n",
                                 "HTTP/1.1 400\r\n",
                                 "\x15\x03\x03\r\n",
                                 ":x\r\n",
                                 ":\r\n",
                                 ": 1\r\n",
                                 ":1 \r\n",
                                 ":99999999999999999999\r\n",
                                 "$x\r\n",
                                 "$\r\n",
                                 "$-2\r\n",
                                 "$1\r\nabc",
                                 "$1\r\na\rb",
                                 "$99999999999999999999\r\n",
                                 "*x\r\n",
                                 "*\r\n",
                                 "*-2\r\n",
                                 "*2147483648\r\n",
                                 "*99999999999999999999\r\n",
                                 "*1\r\n?",
                                 "*1\r\n:x\r\n",
                                 "+OK\r\n+OK\r\n",
                                 "+OK\r\n\r\n",
                                 "*0\r\n\n",
                                 "$1\r\na\r\n:",
                                 "_\r\n?",
                                 "%1\r\n+a\r\n:1\r\n",
                                 "~1\r\n:1\r\n",
                                 ">1\r\n:1\r\n",
                                 ",1.5\r\n",
                                 "#t\r\n",
                                 "=5\r\ntxt:a\r\n",
                                 "(1\r\n",
                                 "|1\r\n+a\r\n+b\r\n:1\r\n",
                                 "*1\r\n%1\r\n+a\r\n:1\r\n",
                                 "*1\r\n,1\r\n",
                                 "*1\r\n#t\r\n"}) {
    CAPTURE(text);
    CHECK(state_of(text) == State::broken);
  }
}

TEST_CASE("a part of a reply is incomplete", "[array_reply]") {
  const std::string_view text = "*2\r\n$3\r\nabc\r\n*1\r\n:12\r\n";
  for (std::size_t size = 0; size < text.size(); ++size) {
    CAPTURE(size);
    CHECK(state_of(text.substr(0, size)) == State::incomplete);
  }
  CHECK(state_of(text) == State::complete);
}

TEST_CASE("a reply beyond the bounds is broken, whatever it announces", "[array_reply]") {
  CHECK(state_of("*8192\r\n") == State::incomplete);
  CHECK(state_of("*8193\r\n") == State::broken);
  CHECK(state_of("*2\r\n*8190\r\n") == State::incomplete);
  CHECK(state_of("*2\r\n*8191\r\n") == State::broken);
  CHECK(state_of("*2147483647\r\n") == State::broken);
  CHECK(state_of("*1000000000\r\n") == State::broken);
  CHECK(state_of("$2147483647\r\nabc") == State::incomplete);
  CHECK(state_of(nested(ArrayReader::max_depth)) == State::complete);
  CHECK(state_of(nested(ArrayReader::max_depth + 1)) == State::broken);
  CHECK(state_of(nested(1'000)) == State::broken);

  std::string row = "*2\r\n*4095\r\n";
  for (int i = 0; i < 4'095; ++i) row += ":0\r\n";
  CHECK(ArrayReader().feed(row + "*4095\r\n") == State::incomplete);
  CHECK(ArrayReader().feed(row + "*4096\r\n") == State::broken);
}

TEST_CASE("a reply has at most 128 KiB", "[array_reply]") {
  constexpr std::size_t frame = std::string_view("$131058\r\n\r\n").size();
  const std::string longest = bulk(std::string(ArrayReader::max_bytes - frame, 'x'));
  REQUIRE(longest.size() == ArrayReader::max_bytes);
  CHECK(ArrayReader().feed(longest) == State::complete);
  CHECK(ArrayReader().feed(bulk(std::string(ArrayReader::max_bytes - frame + 1, 'x'))) ==
        State::broken);

  ArrayReader reader;
  const std::string part(1'000, 'x');
  State state = reader.feed("+");
  std::size_t fed = 1;
  for (; state == State::incomplete; fed += part.size()) state = reader.feed(part);
  CHECK(state == State::broken);
  CHECK(fed > ArrayReader::max_bytes);
  CHECK(fed <= ArrayReader::max_bytes + part.size());
}

TEST_CASE("a reader that was reset expects a reply from its first byte", "[array_reply]") {
  ArrayReader reader;
  const std::string long_line = "+" + std::string(ArrayReader::max_bytes - 1, 'x');
  for (const std::string& text : {std::string("*2\r\n:1\r\n"), std::string("*8192\r\n"),
                                  std::string("*8192\r\n:1\r\n"), long_line, long_line}) {
    CHECK(reader.feed(text) == State::incomplete);
    reader.reset();
  }
  CHECK(reader.feed("?") == State::broken);
  reader.reset();
  CHECK(reader.feed("*1\r\n:1\r\n") == State::complete);
  reader.reset();
  CHECK(reader.feed(":7\r\n") == State::complete);
  CHECK(reader.value() == integer_value(7));
}

TEST_CASE("a reader that is broken stays so until it is reset", "[array_reply]") {
  ArrayReader reader;
  CHECK(reader.feed("+x") == State::incomplete);
  CHECK(reader.feed(std::string(ArrayReader::max_bytes, 'x')) == State::broken);
  CHECK(reader.feed("\r\n") == State::broken);
  CHECK(reader.feed("") == State::broken);
}
