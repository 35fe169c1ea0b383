// The readers of replies, of any shape, of calls, and of a connection that listens: every split of
// a stream, bounds, and streams that are not ours. Threading: single-threaded.
#include <hiredis/hiredis.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "backends/redis/protocol/array_reply.hpp"
#include "backends/redis/protocol/push_reader.hpp"
#include "backends/redis/protocol/reply_reader.hpp"
#include "tests/catch.hpp"
#include "tests/redis/protocol/reply_values.hpp"
#include "tests/redis/resp.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;
using redis_detail::ArrayReader;
using redis_detail::Push;
using redis_detail::PushReader;
using redis_detail::ReplyGuard;
using redis_detail::ReplyReader;
using redis_detail::ServerReply;
using State = ArrayReader::State;

namespace {

/// Hands `hear` the text in parts of any sizes, often small ones, until it returns false.
void in_parts(std::string_view text, Random& random, const auto& hear) {
  const std::size_t most = random.one_in(2) ? 9 + text.size() / 50 : 70'000;
  for (bool goes_on = true; goes_on && !text.empty();) {
    const std::string_view part = text.substr(0, 1 + random.below(most));
    text.remove_prefix(part.size());
    goes_on = hear(part);
  }
}

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
    case ReplyValue::Kind::null:
      return "$-1\r\n";
    case ReplyValue::Kind::status:
      return "+" + value.text + "\r\n";
    case ReplyValue::Kind::error:
      return "-" + value.text + "\r\n";
    case ReplyValue::Kind::integer:
      return ":" + std::to_string(value.integer) + "\r\n";
    case ReplyValue::Kind::string:
      return bulk(value.text);
    case ReplyValue::Kind::array:
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

using Replies = std::vector<std::pair<ServerReply::Kind, std::string>>;

using Pushes = std::vector<std::pair<Push::Kind, std::string>>;

std::string push(std::string_view kind, std::string_view channel, std::string_view last) {
  return "*3\r\n" + bulk(kind) + bulk(channel) + std::string(last);
}

/// Adds what is complete, up to the first that is broken.
void collect(ReplyReader& reader, Replies& replies) {
  for (auto next = reader.next(); next.kind != ServerReply::Kind::none; next = reader.next()) {
    replies.emplace_back(next.kind, next.text);
    if (next.kind == ServerReply::Kind::broken) return;
  }
}
void collect(PushReader& reader, Pushes& pushes) {
  for (Push next = reader.next(); next.kind != Push::Kind::none; next = reader.next()) {
    pushes.emplace_back(next.kind, next.channel);
    if (next.kind == Push::Kind::broken) return;
  }
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
    State state = State::incomplete;
    in_parts(text, random, [&](std::string_view part) {
      CHECK(state == State::incomplete);
      state = reader.feed(part);
      return true;
    });
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
  for (const std::string& text :
       split("?\r\n;OK\r\n;\r\n;:x\r\n;:\r\n;: 1\r\n;:1 \r\n;$x\r\n;$\r\n;$-2\r\n;$1\r\nabc;"
             "$1\r\na\rb;*x\r\n;*\r\n;*-2\r\n;*1\r\n?;*1\r\n:x\r\n;+OK\r\n+OK\r\n;+OK\r\n\r\n;"
             "*0\r\n\n;$1\r\na\r\n:;_\r\n?;~1\r\n:1\r\n;>1\r\n:1\r\n;,1.5\r\n;#t\r\n;(1\r\n;"
             "*1\r\n,1\r\n;*1\r\n#t\r\n;*2147483648\r\n;HTTP/1.1 400\r\n;:99999999999999999999\r\n;"
             "$99999999999999999999\r\n;*99999999999999999999\r\n;%1\r\n+a\r\n:1\r\n;"
             "=5\r\ntxt:a\r\n;|1\r\n+a\r\n+b\r\n:1\r\n;*1\r\n%1\r\n+a\r\n:1\r\n")) {
    CAPTURE(text);
    CHECK(state_of(text) == State::broken);
  }
  CHECK(state_of("\x15\x03\x03\r\n") == State::broken);
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
  CHECK(reader.feed("\r\n") == State::broken);  // until it is reset
  CHECK(reader.feed("") == State::broken);
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

TEST_CASE("replies are heard however their stream is split, up to what cannot be one", "[guard]") {
  Random random("replies are heard however their stream is split, up to what cannot be one");
  CAPTURE(random.repeat());
  const auto garbage = split("*3\r\n;?;$16385\r\n;+a\n;$-1\r\n;:-1\r\n;$1\r\nabc");
  ReplyReader reader;
  for (std::size_t round = scaled(1'000); round > 0; --round) {
    using Kind = ServerReply::Kind;
    Replies expected;
    std::string text;
    for (auto n = random.below(12); n > 0; --n) {
      std::string words(random.one_in(9) ? ReplyGuard::max_bulk : random.below(40), 'x');
      const std::array kinds{Kind::string, Kind::status, Kind::error, Kind::integer};
      const Kind kind = kinds[random.below(kinds.size())];
      if (kind == Kind::string) {
        if (random.one_in(3)) words += "\r\n$1\r\n";
        words.resize(std::min(words.size(), ReplyGuard::max_bulk));
        text += bulk(words);
      } else {
        words.resize(std::min(words.size(), ReplyGuard::max_line - 1));
        if (kind == Kind::integer) words = std::to_string(random.below(1'000));
        text += (kind == Kind::status ? "+" : kind == Kind::error ? "-" : ":") + words + "\r\n";
        if (kind == Kind::integer) words.clear();
      }
      expected.emplace_back(kind, words);
    }
    const bool is_ours = !random.one_in(3);
    if (!is_ours) text += garbage[random.below(garbage.size())];
    reader.reset();
    Replies replies;
    bool is_sound = true;
    in_parts(text, random, [&](std::string_view part) {
      is_sound = reader.feed(part);
      collect(reader, replies);
      return is_sound;
    });
    CHECK(is_sound == is_ours);
    CHECK(replies == expected);
  }
}

TEST_CASE("what the guard accepts never breaks the reader and never piles up in it", "[guard]") {
  Random random("what the guard accepts never breaks the reader and never piles up in it");
  CAPTURE(random.repeat());
  constexpr std::string_view alphabet = "+-$*:\r\n0123456789a";
  const auto noise = [&] {
    std::string text;
    for (auto n = random.below(30); n > 0; --n) text += alphabet[random.below(alphabet.size())];
    return text;
  };
  std::size_t replies = 0;
  for (std::size_t round = scaled(20'000); round > 0; --round) {
    std::string text;
    for (auto n = random.below(8); n > 0; --n) {
      text += random.one_in(4)   ? noise()
              : random.one_in(3) ? bulk(std::string(random.below(ReplyGuard::max_bulk + 2), 'x'))
              : random.one_in(2) ? bulk(noise())
                                 : "-ERR x\r\n:17\r\n+OK\r\n";
    }
    if (!text.empty() && random.one_in(3)) text[random.below(text.size())] ^= 1;
    ReplyGuard guard;
    const std::unique_ptr<redisReader, decltype(&redisReaderFree)> reader(redisReaderCreate(),
                                                                          &redisReaderFree);
    in_parts(text, random, [&](std::string_view part) {
      const std::size_t good = guard.accept(part);
      REQUIRE(redisReaderFeed(reader.get(), part.data(), good) == REDIS_OK);
      for (void* reply = reader.get(); reply != nullptr;) {
        REQUIRE(redisReaderGetReply(reader.get(), &reply) == REDIS_OK);
        if (reply == nullptr) break;
        ++replies;
        freeReplyObject(reply);
      }
      REQUIRE(reader->len - reader->pos <= ReplyGuard::max_bulk + 16);
      return good == part.size();
    });
  }
  CHECK(replies > 0);
}

TEST_CASE("a stream is cut off at the first byte that cannot be ours, which is marked", "[guard]") {
  for (std::string bytes :
       split("$16384\r\n^;$1638^5\r\n;$2147^483647\r\n;$9999^9999999999999999\r\n;$^-1\r\n;$^\r\n;"
             "$0^005\r\n;$5^\n;$5\r^5;$1\r\na^bc;$1\r\na\r^b;$^x;$^+5\r\n;^*1\r\n$1\r\na\r\n;"
             "^*-1\r\n;^*1000000000\r\n;:1\r\n:0\r\n:999999999999999999\r\n^;:^\r\n;:^-1\r\n;"
             ":0^1\r\n;:1^\n;:100000000000000000^0\r\n;^>2\r\n;^%1\r\n;"
             "^HTTP/1.1 400 Bad Request\r\n;^\r\n;+a^\n;+a\r^b;+OK\r\n+OK\r\n^*")) {
    CAPTURE(bytes);
    const std::size_t accepted = bytes.find('^');
    bytes.erase(accepted, 1);
    CHECK(ReplyGuard().accept(bytes) == accepted);
  }
  CHECK(ReplyGuard().accept({"\0", 1}) == 0);
  std::string endless(1'000'000, 'a');
  endless[0] = '+';
  CHECK(ReplyGuard().accept(endless) == 1 + ReplyGuard::max_line);
}

TEST_CASE("pushes mean the same however their stream is split", "[push]") {
  Random random("pushes mean the same however their stream is split");
  CAPTURE(random.repeat());
  for (std::size_t round = scaled(1'000); round > 0; --round) {
    using Kind = Push::Kind;
    Pushes expected;
    std::string text;
    for (auto n = random.below(9); n > 0; --n) {
      std::string channel(random.one_in(9) ? PushReader::max_bulk : random.below(30), '\n');
      const std::array kinds{Kind::subscribed, Kind::unsubscribed, Kind::message, Kind::error,
                             Kind::pong};
      const Kind kind = kinds[random.below(kinds.size())];
      if (kind == Kind::error) channel = "NOPERM no";
      if (kind == Kind::pong) channel.clear();
      text += kind == Kind::subscribed     ? push("subscribe", channel, ":1\r\n")
              : kind == Kind::unsubscribed ? push("unsubscribe", channel, ":0\r\n")
              : kind == Kind::message      ? push("message", channel, bulk("\r\n"))
              : kind == Kind::error        ? "-NOPERM no\r\n"
              : random.one_in(2)           ? "+PONG\r\n"
                                           : "*2\r\n" + bulk("pong") + bulk("");
      expected.emplace_back(kind, channel);
    }
    PushReader reader;
    Pushes pushes;
    in_parts(text, random, [&](std::string_view part) {
      reader.feed(part);
      collect(reader, pushes);
      return true;
    });
    CHECK(pushes == expected);
  }
}

TEST_CASE("a stream of pushes that cannot be ours is broken", "[push]") {
  auto streams = split(
      "+OK\r\n;:1\r\n;$-1\r\n;*4\r\n;*-1\r\n;*0\r\n*0\r\n;\r\n;_\r\n;#t\r\n;~1\r\n;>3\r\n;%1\r\n;"
      "(1\r\n;=5\r\n;*1000000000\r\n;*2147483648\r\n;*1\r\n*1\r\n;*3\r\n*3\r\n;*3\r\n:1\r\n;"
      "*3\r\n$-1\r\n;*3\r\n$4097\r\n;*3\r\n$2147483647\r\n;*3\r\n$1\r\nab\r\n;"
      "*3\r\n$99999999999999999999999\r\n;HTTP/1.1 400 Bad Request\r\n");
  for (const std::string& stream :
       {bulk("a"), bulk("abc"), "*2\r\n" + bulk("message") + bulk("a"),
        push("pmessage", "a", bulk("")), push("message", "a", ":1\r\n"),
        push("subscribe", "a", bulk("")), push("subscribe", "a", ":-1\r\n"),
        push("subscribe", "a", bulk("1")), push("subscribe", "a", ":99999999999999999999999\r\n"),
        std::string(5'000, '*'), "*3\r\n" + bulk(std::string(PushReader::max_bulk + 1, 'x'))}) {
    streams.push_back(stream);
  }
  for (const std::string& stream : streams) {
    CAPTURE(stream.substr(0, 60));
    PushReader reader;
    reader.feed(stream);
    Pushes pushes;
    collect(reader, pushes);
    CHECK(pushes == Pushes{{Push::Kind::broken, ""}});
  }
}
