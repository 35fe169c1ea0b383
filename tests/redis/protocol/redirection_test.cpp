// MOVED and ASK: what they name, and what is no redirection. Threading: single-threaded.
#include "backends/redis/protocol/redirection.hpp"

#include <string>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice::test;
using sluice::RedisAddress;
using sluice::redis_detail::read_redirection;

TEST_CASE("a redirection names a slot and a node", "[redirection]") {
  struct Row {
    std::string error;
    bool is_ask;
    std::uint16_t slot;
    RedisAddress node;
  };
  const std::string longest(255, 'a');
  for (const Row& row : {
           Row{"MOVED 3999 127.0.0.1:6381", false, 3999, {"127.0.0.1", 6381}},
           Row{"ASK 3999 127.0.0.1:6381", true, 3999, {"127.0.0.1", 6381}},
           Row{"MOVED 0 redis-1.example:1", false, 0, {"redis-1.example", 1}},
           Row{"ASK 16383 h:65535", true, 16'383, {"h", 65'535}},
           Row{"MOVED 1 [::1]:6381", false, 1, {"::1", 6381}},
           Row{"MOVED 1 ::1:6381", false, 1, {"::1", 6381}},
           Row{"ASK 1 2001:db8::7:8:6381", true, 1, {"2001:db8::7:8", 6381}},
           Row{"MOVED 3999 :6381", false, 3999, {"", 6381}},
           Row{"ASK 1 " + longest + ":2", true, 1, {longest, 2}},
       }) {
    CAPTURE(row.error);
    const auto found = read_redirection(row.error);
    REQUIRE(found);
    CHECK(found->is_ask == row.is_ask);
    CHECK(found->slot == row.slot);
    CHECK(found->node == row.node);
  }
}

TEST_CASE("an error that names no node is no redirection", "[redirection]") {
  for (const std::string& error : {std::string(),
                                   std::string("ERR unknown command"),
                                   std::string("MOVED"),
                                   std::string("MOVED "),
                                   std::string("MOVED 1"),
                                   std::string("MOVED 1 "),
                                   std::string("MOVED  1 h:1"),
                                   std::string("MOVED 1  h:1"),
                                   std::string(" MOVED 1 h:1"),
                                   std::string("moved 1 h:1"),
                                   std::string("MOVEDX 1 h:1"),
                                   std::string("ASKING 1 h:1"),
                                   std::string("MOVED h:1 1"),
                                   std::string("MOVED 1 h"),
                                   std::string("MOVED 1 h:"),
                                   std::string("MOVED 1 :"),
                                   std::string("MOVED 1 h:1 x"),
                                   std::string("MOVED 1 h:1 "),
                                   std::string("MOVED 1 h:0"),
                                   std::string("MOVED 1 h:65536"),
                                   std::string("MOVED 1 h:-1"),
                                   std::string("MOVED 1 h:+1"),
                                   std::string("MOVED 1 h:1x"),
                                   std::string("MOVED 1 h:0x1"),
                                   std::string("MOVED 1 h:99999999999999999999"),
                                   std::string("MOVED 16384 h:1"),
                                   std::string("MOVED -1 h:1"),
                                   std::string("MOVED +1 h:1"),
                                   std::string("MOVED 65536 h:1"),
                                   std::string("MOVED x h:1"),
                                   std::string("MOVED 1x h:1"),
                                   std::string("MOVED 1 []:1"),
                                   std::string("MOVED 1 [:1"),
                                   std::string("MOVED 1 [::1:1"),
                                   std::string("MOVED 1 ::1]:1"),
                                   std::string("MOVED 1 ?:1"),
                                   std::string("MOVED 1 [::1]"),
                                   std::string("MOVED 1 a b:1"),
                                   std::string("MOVED 1 a\x01:1"),
                                   std::string("MOVED 1 a\x7f:1"),
                                   std::string("MOVED 1 \xc3\xa4:1"),
                                   std::string("MOVED 1 a\0:1", 13),
                                   std::string("MOVED 1 a\r\n:1"),
                                   "MOVED 1 " + std::string(256, 'a') + ":1"}) {
    CAPTURE(error);
    CHECK_FALSE(read_redirection(error));
  }
}

TEST_CASE("any bytes are a valid redirection or none", "[redirection]") {
  Random random("any bytes are a valid redirection or none");
  CAPTURE(random.repeat());
  const std::string_view pieces[] = {"MOVED ", "ASK ",  " ", ":",     "[", "]",  "1",
                                     "3999",   "16384", "0", "65536", "h", "::", "\xff"};
  std::size_t found = 0;
  for (std::size_t i = 0; i < scaled(20'000); ++i) {
    std::string error = random.one_in(2) ? "MOVED 1 " : "ASK 16383 ";
    if (random.one_in(4)) error.clear();
    for (auto n = random.below(6); n > 0; --n) error += pieces[random.below(std::size(pieces))];
    const auto redirection = read_redirection(error);
    if (!redirection) continue;
    ++found;
    CHECK(redirection->slot < 16'384);
    CHECK(redirection->node.port != 0);
    CHECK(redirection->node.host.find_first_of(" \xff") == std::string::npos);
    CHECK(redirection->is_ask == error.starts_with("ASK"));
  }
  CHECK(found > 0);
}
