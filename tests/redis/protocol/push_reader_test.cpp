// What a connection that listens hears: every split of a stream, and streams that are not ours.
#include "backends/redis/protocol/push_reader.hpp"

#include <vector>

#include "tests/catch.hpp"
#include "tests/redis/resp.hpp"
#include "tests/support/seed.hpp"

using namespace sluice::test;
using sluice::redis_detail::Push;
using sluice::redis_detail::PushReader;
using Kind = Push::Kind;

namespace {

using Heard = std::vector<std::pair<Kind, std::string>>;

std::string push(std::string_view kind, std::string_view channel, std::string_view last) {
  return "*3\r\n" + bulk(kind) + bulk(channel) + std::string(last);
}

void collect(PushReader& reader, Heard& heard) {
  for (;;) {
    const Push next = reader.next();
    if (next.kind == Kind::none) return;
    heard.emplace_back(next.kind, next.channel);
    if (next.kind == Kind::broken) return;
  }
}

Heard hear(std::string_view text) {
  PushReader reader;
  reader.feed(text);
  Heard heard;
  collect(reader, heard);
  return heard;
}

bool is_broken(std::string_view text) { return hear(text) == Heard{{Kind::broken, ""}}; }

}  // namespace

TEST_CASE("pushes mean the same however their stream is split", "[push]") {
  const std::string text = push("subscribe", "{a}:x", ":1\r\n") +
                           push("message", "{a}:x", bulk("")) + push("message", "", bulk("\r\n")) +
                           push("unsubscribe", "{a}:x", ":0\r\n") + "-NOPERM no\r\n";
  const Heard expected{{Kind::subscribed, "{a}:x"},
                       {Kind::message, "{a}:x"},
                       {Kind::message, ""},
                       {Kind::unsubscribed, "{a}:x"},
                       {Kind::error, "NOPERM no"}};
  std::size_t wrong = 0;
  for (std::size_t first = 0; first <= text.size(); ++first) {
    for (std::size_t second = first; second <= text.size(); ++second) {
      PushReader reader;
      Heard heard;
      const std::string_view all = text;
      for (const auto part :
           {all.substr(0, first), all.substr(first, second - first), all.substr(second)}) {
        reader.feed(part);
        collect(reader, heard);
      }
      wrong += heard == expected ? 0U : 1U;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("a stream of pushes that cannot be ours is broken", "[push]") {
  CHECK(is_broken("+OK\r\n"));
  CHECK(is_broken(":1\r\n"));
  CHECK(is_broken("$1\r\na\r\n"));
  CHECK(is_broken("*4\r\n"));
  CHECK(is_broken("*1000000000\r\n"));
  CHECK(is_broken("*-1\r\n"));
  CHECK(is_broken("*2\r\n" + bulk("message") + bulk("a")));
  CHECK(is_broken(push("pmessage", "a", bulk(""))));
  CHECK(is_broken(push("message", "a", ":1\r\n")));
  CHECK(is_broken(push("subscribe", "a", bulk(""))));
  CHECK(is_broken("*3\r\n$2147483647\r\n"));
  CHECK(is_broken("*3\r\n$99999999999999999999999\r\n"));
  CHECK(is_broken(push("subscribe", "a", ":99999999999999999999999\r\n")));
  CHECK(is_broken("*3\r\n$1\r\nab\r\n"));
  CHECK(is_broken("*3\r\n$-1\r\n"));
  CHECK(is_broken(std::string(5'000, '*')));
  CHECK(is_broken("HTTP/1.1 400 Bad Request\r\n"));
}

TEST_CASE("a stream of pushes never piles up", "[push]") {
  Random random("a stream of pushes never piles up");
  CAPTURE(random.repeat());
  std::size_t messages = 0;
  for (std::size_t round = scaled(5'000); round > 0; --round) {
    std::string text;
    for (auto n = random.below(6); n > 0; --n) {
      text += push("message", std::string(random.below(PushReader::max_bulk + 2), 'x'),
                   bulk(std::string(random.below(40), '\n')));
    }
    if (!text.empty() && random.one_in(3)) text[random.below(text.size())] ^= 1;
    PushReader reader;
    std::string_view rest = text;
    std::size_t held = 0;
    bool broken = false;
    while (!broken && !rest.empty()) {
      const auto part = rest.substr(0, 1 + random.below(6'000));
      rest.remove_prefix(part.size());
      reader.feed(part);
      held += part.size();
      for (Push next = reader.next(); next.kind != Kind::none && !broken; next = reader.next()) {
        broken = next.kind == Kind::broken;
        messages += broken ? 0U : 1U;
        held = 0;  // or less: what is behind the last push
      }
      REQUIRE((broken || held <= 3 * (PushReader::max_bulk + 20) + 6'000));
    }
  }
  CHECK(messages > 0);
}
