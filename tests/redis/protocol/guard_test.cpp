// ReplyGuard and the reader behind it: every split of a stream, every kind of garbage.
#include <hiredis/hiredis.h>

#include <memory>

#include "backends/redis/protocol/reply_reader.hpp"
#include "tests/catch.hpp"
#include "tests/redis/resp.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;
using redis_detail::ReplyGuard;
using redis_detail::ReplyReader;
using redis_detail::ServerReply;
using Kind = ServerReply::Kind;

namespace {

using Replies = std::vector<std::pair<Kind, std::string>>;

void collect(ReplyReader& reader, Replies& replies) {
  for (;;) {
    const ServerReply reply = reader.next();
    if (reply.kind == Kind::none) return;
    replies.emplace_back(reply.kind, reply.text);
    if (reply.kind == Kind::broken) return;
  }
}

}  // namespace

TEST_CASE("a stream means the same however it is split", "[guard]") {
  const std::string text = "+OK\r\n$0\r\n\r\n:0\r\n:120\r\n-ERR no\r\n$4\r\na\r\nb\r\n+\r\n" +
                           bulk(std::string(40, '\n'));
  const Replies expected{{Kind::status, "OK"},    {Kind::string, ""},
                         {Kind::integer, ""},     {Kind::integer, ""},
                         {Kind::error, "ERR no"}, {Kind::string, "a\r\nb"},
                         {Kind::status, ""},      {Kind::string, std::string(40, '\n')}};
  std::size_t wrong = 0;
  for (std::size_t first = 0; first <= text.size(); ++first) {
    for (std::size_t second = first; second <= text.size(); ++second) {
      ReplyReader reader;
      reader.reset();
      Replies replies;
      const std::string_view all = text;
      for (const auto part :
           {all.substr(0, first), all.substr(first, second - first), all.substr(second)}) {
        wrong += reader.feed(part) ? 0U : 1U;
        collect(reader, replies);
      }
      wrong += replies == expected ? 0U : 1U;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("a stream is cut off at the first byte that cannot be ours", "[guard]") {
  const auto accepted = [](std::string_view bytes) { return ReplyGuard().accept(bytes); };
  CHECK(accepted("$16384\r\n") == 8);
  CHECK(accepted("$16385\r\n") == 5);
  CHECK(accepted("$2147483647\r\n") == 5);
  CHECK(accepted("$99999999999999999999\r\n") == 5);
  CHECK(accepted("$-1\r\n") == 1);
  CHECK(accepted("$\r\n") == 1);
  CHECK(accepted("$0005\r\n") == 2);
  CHECK(accepted("$5\n") == 2);
  CHECK(accepted("$5\r5") == 3);
  CHECK(accepted("$1\r\nabc") == 5);
  CHECK(accepted("$1\r\na\rb") == 6);
  CHECK(accepted("$x") == 1);
  CHECK(accepted("$+5\r\n") == 1);
  CHECK(accepted("*1\r\n$1\r\na\r\n") == 0);
  CHECK(accepted("*-1\r\n") == 0);
  CHECK(accepted("*1000000000\r\n") == 0);
  CHECK(accepted(":1\r\n:0\r\n:999999999999999999\r\n") == 29);
  CHECK(accepted(":\r\n") == 1);
  CHECK(accepted(":-1\r\n") == 1);
  CHECK(accepted(":01\r\n") == 2);
  CHECK(accepted(":1\n") == 2);
  CHECK(accepted(":1000000000000000000\r\n") == 19);
  CHECK(accepted(">2\r\n") == 0);
  CHECK(accepted("%1\r\n") == 0);
  CHECK(accepted("HTTP/1.1 400 Bad Request\r\n") == 0);
  CHECK(accepted("\r\n") == 0);
  CHECK(accepted({"\0", 1}) == 0);
  CHECK(accepted("+a\n") == 2);
  CHECK(accepted("+a\rb") == 3);
  CHECK(accepted("+OK\r\n+OK\r\n*") == 10);
  std::string endless(1'000'000, 'a');
  endless[0] = '+';
  CHECK(accepted(endless) == 1 + ReplyGuard::max_line);
}

TEST_CASE("replies in front of garbage are heard", "[guard]") {
  ReplyReader reader;
  reader.reset();
  CHECK_FALSE(reader.feed("+OK\r\n$2\r\nab\r\n*3\r\n"));
  Replies replies;
  collect(reader, replies);
  CHECK(replies == Replies{{Kind::status, "OK"}, {Kind::string, "ab"}});
  reader.reset();
  CHECK(reader.feed("+OK\r\n"));
}

TEST_CASE("all replies of a long read are heard, and the begun one with the next", "[guard]") {
  Replies expected;
  std::string text;
  for (std::size_t i = 0; text.size() < 65'536; ++i) {
    expected.emplace_back(Kind::string, std::string(i % 300, static_cast<char>('a' + i % 26)));
    text += bulk(expected.back().second);
  }
  const std::size_t begun = text.size() - 10;
  ReplyReader reader;
  reader.reset();
  Replies replies;
  CHECK(reader.feed(std::string_view(text).substr(0, begun)));
  collect(reader, replies);
  CHECK(replies.size() == expected.size() - 1);
  CHECK(reader.feed(std::string_view(text).substr(begun)));
  collect(reader, replies);
  CHECK(replies == expected);
}

TEST_CASE("what the guard accepts never breaks the reader and never piles up in it", "[guard]") {
  Random random("what the guard accepts never breaks the reader and never piles up in it");
  CAPTURE(random.repeat());
  const std::string alphabet = "+-$*:\r\n0123456789a";
  const auto noise = [&] {
    std::string text;
    for (auto n = random.below(30); n > 0; --n) text += alphabet[random.below(alphabet.size())];
    return text;
  };
  std::size_t streams_accepted = 0;
  std::size_t replies = 0;
  for (std::size_t round = scaled(20'000); round > 0; --round) {
    std::string text;
    for (auto n = random.below(8); n > 0; --n) {
      switch (random.below(5)) {
        case 0:
          text += bulk(noise());
          break;
        case 3:
          text += ":" + std::to_string(random.below(1'000)) + "\r\n";
          break;
        case 1:
          text += "+OK\r\n";
          break;
        case 2:
          text += bulk(std::string(random.below(ReplyGuard::max_bulk + 2), 'x'));
          break;
        default:
          text += random.one_in(4) ? noise() : "-ERR x\r\n";
      }
    }
    if (!text.empty() && random.one_in(3)) text[random.below(text.size())] ^= 1;
    ReplyGuard guard;
    const std::unique_ptr<redisReader, decltype(&redisReaderFree)> reader(redisReaderCreate(),
                                                                          &redisReaderFree);
    std::string_view rest = text;
    bool sound = true;
    while (sound && !rest.empty()) {
      const auto part = rest.substr(0, 1 + random.below(5'000));
      rest.remove_prefix(part.size());
      const std::size_t good = guard.accept(part);
      sound = good == part.size();
      REQUIRE(redisReaderFeed(reader.get(), part.data(), good) == REDIS_OK);
      for (void* reply = reader.get(); reply != nullptr;) {
        REQUIRE(redisReaderGetReply(reader.get(), &reply) == REDIS_OK);
        if (reply == nullptr) break;
        ++replies;
        freeReplyObject(reply);
      }
      REQUIRE(reader->len - reader->pos <= ReplyGuard::max_bulk + 16);
    }
    streams_accepted += sound ? 1U : 0U;
  }
  CHECK(streams_accepted > 0);
  CHECK(replies > 0);
}
