// What replies mean: those of Sentinels, to ROLE, HELLO, INFO and CLUSTER SLOTS, and MOVED and ASK;
// and the slots of keys. Threading: single-threaded.
#include <algorithm>
#include <string>

#include "backends/redis/connection/server_version.hpp"
#include "backends/redis/protocol/hash_slot.hpp"
#include "backends/redis/protocol/info_reply.hpp"
#include "backends/redis/protocol/redirection.hpp"
#include "backends/redis/protocol/sentinel_replies.hpp"
#include "backends/redis/topology/cluster_map.hpp"
#include "tests/catch.hpp"
#include "tests/redis/protocol/reply_values.hpp"
#include "tests/redis/resp.hpp"
#include "tests/support/seed.hpp"

using namespace sluice::test;
using namespace sluice::redis_detail;
using sluice::RedisAddress;

namespace {

ReplyValue strings(const std::vector<std::string>& texts) {
  ReplyValue value = array_value({});
  for (const std::string& text : texts) value.elements.push_back(string_value(text));
  return value;
}

ReplyValue sentinel(const std::string& host, const std::string& port,
                    const std::string& flags = "sentinel") {
  return strings({"name", "e6a2", "ip", host, "port", port, "flags", flags, "voted-leader", "?"});
}

std::string text_of(const std::vector<RedisAddress>& list) {
  std::string text;
  for (const auto& address : list) text += address.host + ":" + std::to_string(address.port) + " ";
  return text;
}

std::string master_complaint(const ReplyValue& reply) {
  const NamedMaster master = read_master(reply);
  CHECK_FALSE(master.address);
  return master.error;
}

const std::string whole =
    "# Server\r\nredis_version:7.2.4\r\nredis_mode:standalone\r\n\r\n"
    "# Memory\r\nused_memory:1012345\r\nmaxmemory_policy:noeviction\r\n\r\n"
    "# Stats\r\nevicted_keys:42\r\nevicted_clients:7\r\n\r\n"
    "# Replication\r\nrole:master\r\nmaster_replid:8c5\r\n";

/// The remainder of the message with 16 zero bits behind it, by long division.
unsigned divided(const std::string& message) {
  unsigned rest = 0;
  for (const char c : message + std::string(2, '\0')) {
    for (int bit = 7; bit >= 0; --bit) {
      rest = (rest << 1U) | ((static_cast<unsigned char>(c) >> static_cast<unsigned>(bit)) & 1U);
      if ((rest & 0x10000U) != 0) rest ^= 0x11021U;
    }
  }
  return rest;
}

const RedisAddress asked{"asked.example", 7000};

ReplyValue node(ReplyValue host, ReplyValue port) {
  return array_value({std::move(host), std::move(port), string_value("id"), array_value({})});
}

ReplyValue node(std::string_view host, std::int64_t port) {
  return node(string_value(host), integer_value(port));
}

ReplyValue row(std::int64_t first, std::int64_t last, ReplyValue master) {
  return array_value({integer_value(first), integer_value(last), std::move(master)});
}

ReplyValue row(std::int64_t first, std::int64_t last) { return row(first, last, node("a", 1)); }

std::string text_of(const ClusterMap& map) {
  std::string text;
  for (const auto& range : map.ranges) {
    text += std::to_string(range.first) + "-" + std::to_string(range.last) + "=" +
            range.master.host + ":" + std::to_string(range.master.port) + " ";
  }
  return text;
}

/// The ranges of a reply with these rows, which is a map.
std::string map_of(std::vector<ReplyValue> rows) {
  const ClusterMap map = read_cluster_map(array_value(std::move(rows)), asked);
  CHECK(map.error.empty());
  return text_of(map);
}

/// The error of a reply, which is no map.
std::string complaint(const ReplyValue& reply) {
  const ClusterMap map = read_cluster_map(reply, asked);
  CHECK(map.ranges.empty());
  return map.error;
}

std::string complaint_about(std::vector<ReplyValue> rows) {
  return complaint(array_value(std::move(rows)));
}

}  // namespace

TEST_CASE("a Sentinel names the master by host and port", "[sentinel_replies]") {
  for (const RedisAddress& address :
       {RedisAddress{"10.0.0.1", 6379}, RedisAddress{"::1", 1},
        RedisAddress{"redis.example", 65'535}, RedisAddress{std::string(255, 'a'), 7}}) {
    const NamedMaster master = read_master(strings({address.host, std::to_string(address.port)}));
    CHECK(master.address == address);
    CHECK(master.error.empty());
  }
}

TEST_CASE("a Sentinel that names no master is told why", "[sentinel_replies]") {
  CHECK(master_complaint(null_value()) == "the Sentinel knows no master of this name");
  CHECK(master_complaint(error_value("NOAUTH Authentication required.")) ==
        "NOAUTH Authentication required.");
  CHECK(master_complaint(error_value("")) == "an error without a text");
  const std::string shape = "the Sentinel's reply is no array of a host and a port";
  for (const ReplyValue& reply :
       {status_value("OK"), integer_value(1), string_value("10.0.0.1"), array_value({}),
        strings({"10.0.0.1"}), strings({"10.0.0.1", "1", "2"}),
        array_value({string_value("h"), integer_value(1)}),
        array_value({null_value(), string_value("1")}),
        array_value({string_value("h"), null_value()})}) {
    CHECK(master_complaint(reply) == shape);
  }
  CHECK(master_complaint(strings({"", "1"})) == "the Sentinel's host \"\" is no name");
  CHECK(master_complaint(strings({"a b", "1"})) == "the Sentinel's host \"a b\" is no name");
  CHECK(master_complaint(strings({"a\xff", "1"})) == "the Sentinel's host \"a\\xff\" is no name");
  for (const std::string port :
       {"0", "65536", "", "-1", "+1", "1x", " 1", "99999999999999999999"}) {
    CAPTURE(port);
    CHECK(master_complaint(strings({"h", port})) ==
          "the Sentinel's port must be 1 to 65535, got \"" + port + "\"");
  }
}

TEST_CASE("the newest vote counts, then the plurality, then not the master in use",
          "[sentinel_replies]") {
  const auto newest_of = [](std::vector<Vote> votes) {
    const Vote* const vote = newest(votes, {"used", 1});
    return vote == nullptr ? "" : vote->sentinel.host;
  };
  const RedisAddress used{"used", 1};
  const RedisAddress other{"other", 1};
  const RedisAddress third{"third", 1};
  CHECK(newest_of({}).empty());
  CHECK(newest_of({{{"a", 1}, used, 1}, {{"b", 1}, used, 1}, {{"c", 1}, other, 2}}) == "c");
  CHECK(newest_of({{{"a", 1}, other, 9}, {{"b", 1}, used, 10}, {{"c", 1}, other, 9}}) == "b");
  CHECK(newest_of({{{"a", 1}, other, 0}, {{"b", 1}, used, 0}, {{"c", 1}, used, 0}}) == "b");
  CHECK(newest_of({{{"a", 1}, used, 0}, {{"b", 1}, other, 0}}) == "b");
  // Those of an older epoch add nothing to their master's votes.
  CHECK(
      newest_of(
          {{{"a", 1}, third, 1}, {{"b", 1}, used, 1}, {{"c", 1}, used, 0}, {{"d", 1}, used, 0}}) ==
      "a");
}

TEST_CASE("an epoch is read from the fields of a master", "[sentinel_replies]") {
  CHECK(read_epoch(strings({"name", "m", "config-epoch", "12", "quorum", "2"})) == 12);
  CHECK(read_epoch(strings({"config-epoch", "18446744073709551615"})) == ~std::uint64_t{0});
  for (const ReplyValue& reply :
       {null_value(), strings({}), strings({"config-epoch"}), strings({"config-epoch", ""}),
        strings({"config-epoch", "-1"}), strings({"config-epoch", "x"}),
        strings({"config-epoch", "18446744073709551616"}), strings({"epoch", "3"})}) {
    CHECK(read_epoch(reply) == 0);
  }
}

TEST_CASE("other Sentinels are listed, those that are down last", "[sentinel_replies]") {
  CHECK(text_of(read_sentinels(array_value(
            {sentinel("a", "1", "s_down,sentinel"), sentinel("b", "26379"),
             sentinel("c", "2", "sentinel,disconnected"), sentinel("::1", "65535"),
             sentinel("d", "3", "o_down,sentinel")}))) == "b:26379 ::1:65535 a:1 c:2 d:3 ");
  CHECK(text_of(read_sentinels(array_value({strings({"port", "1", "ip", "a"})}))) == "a:1 ");
  CHECK(read_sentinels(array_value({})).empty());
}

TEST_CASE("rows that name no Sentinel are skipped, and other replies name none",
          "[sentinel_replies]") {
  const std::vector<ReplyValue> rows{
      sentinel("", "1"),
      sentinel("a b", "1"),
      sentinel("a", "0"),
      sentinel("a", "65536"),
      sentinel("a", ""),
      sentinel("a", "1x"),
      strings({}),
      strings({"ip"}),
      strings({"ip", "a"}),
      strings({"port", "1"}),
      strings({"ip", "a", "port"}),
      strings({"x", "ip", "a", "port", "1"}),
      array_value({string_value("ip"), null_value(), string_value("port"), string_value("1")}),
      array_value({string_value("ip"), string_value("a"), string_value("port"), integer_value(1)}),
      null_value(),
      integer_value(1),
      string_value("ip"),
      error_value("ERR")};
  CHECK(read_sentinels(array_value(rows)).empty());
  std::vector<ReplyValue> more = rows;
  more.insert(more.begin() + 3, sentinel("b", "2"));
  more.push_back(sentinel("c", "3"));
  CHECK(text_of(read_sentinels(array_value(more))) == "b:2 c:3 ");
  for (const ReplyValue& reply : {null_value(), error_value("ERR No such master with that name"),
                                  status_value("OK"), integer_value(1), string_value("a")}) {
    CHECK(read_sentinels(reply).empty());
  }
}

TEST_CASE("at most 64 Sentinels are listed, those that are up before the others",
          "[sentinel_replies]") {
  std::vector<ReplyValue> rows;
  for (int i = 1; i <= 100; ++i) rows.push_back(sentinel("d", std::to_string(i), "s_down"));
  CHECK(read_sentinels(array_value(rows)).size() == max_sentinels);
  rows.push_back(sentinel("u", "7"));
  const auto mixed = read_sentinels(array_value(rows));
  REQUIRE(mixed.size() == max_sentinels);
  CHECK(mixed.front() == RedisAddress{"u", 7});
  CHECK(mixed.back() == RedisAddress{"d", 63});
  for (int i = 1; i <= 100; ++i) rows.push_back(sentinel("u", std::to_string(i)));
  const auto up = read_sentinels(array_value(rows));
  REQUIRE(up.size() == max_sentinels);
  CHECK(up.back() == RedisAddress{"u", 63});
}

TEST_CASE("ROLE is master, slave, sentinel, or nonsense", "[sentinel_replies]") {
  for (const std::string role : {"master", "slave", "sentinel"}) {
    CHECK(read_role(array_value({string_value(role), integer_value(0), array_value({})})) == role);
    CHECK(read_role(array_value({string_value(role)})) == role);
    CHECK(read_role(string_value(role)).empty());
    CHECK(read_role(array_value({integer_value(1), string_value(role)})).empty());
  }
  for (const ReplyValue& reply :
       {null_value(), array_value({}), array_value({string_value("replica")}),
        array_value({string_value("master ")}), array_value({string_value("")}),
        array_value({array_value({string_value("master")})}), error_value("NOPERM master")}) {
    CHECK(read_role(reply).empty());
  }
}

TEST_CASE("the text of INFO states version, role, policy and evicted keys", "[redis][info]") {
  const InfoReply reply = read_info(whole);
  CHECK(reply.version == "7.2.4");
  CHECK(reply.role == "master");
  CHECK(reply.maxmemory_policy == "noeviction");
  CHECK(reply.evicted_keys == 42U);
}

TEST_CASE("what INFO does not state is empty", "[redis][info]") {
  for (const char* text :
       {"", "\r\n", ":", "# role:master", "xrole:master\r\nrole_x:master\nevicted_keys\r\n",
        "evicted_keys:\r\nrole:\r\n", "evicted_keys:-1\r\n", "evicted_keys:4 2\r\n",
        "evicted_keys:18446744073709551616\r\n", "x:role:master\r\n"}) {
    CAPTURE(text);
    const InfoReply reply = read_info(text);
    CHECK(reply.version.empty());
    CHECK(reply.role.empty());
    CHECK(reply.maxmemory_policy.empty());
    CHECK_FALSE(reply.evicted_keys);
  }
}

TEST_CASE("a value may contain a colon", "[redis][info]") {
  CHECK(read_info("redis_version:7:x\r\n").version == "7:x");
}

TEST_CASE("the first of two equal fields counts, and the last line may have no end",
          "[redis][info]") {
  const InfoReply reply = read_info(
      "role:master\r\nrole:slave\nevicted_keys:1\nevicted_keys:2\nmaxmemory_policy:allkeys-lru");
  CHECK(reply.role == "master");
  CHECK(reply.evicted_keys == 1U);
  CHECK(reply.maxmemory_policy == "allkeys-lru");
}

TEST_CASE("a text of INFO that was cut or changed is read within its bytes", "[redis][info]") {
  Random random("a text of INFO that was cut or changed is read within its bytes");
  CAPTURE(random.repeat());
  const auto is_within = [](std::string_view part, const std::string& text) {
    return part.empty() ||
           (part.data() >= text.data() && part.data() + part.size() <= text.data() + text.size());
  };
  for (std::size_t round = 0; round < scaled(5'000, 500); ++round) {
    const auto last = static_cast<std::int64_t>(whole.size());
    std::string text = whole.substr(0, static_cast<std::size_t>(random.between(0, last)));
    for (auto changes = random.between(0, 5); changes > 0 && !text.empty(); --changes) {
      const auto place = random.between(0, static_cast<std::int64_t>(text.size()) - 1);
      text[static_cast<std::size_t>(place)] = "\r\n:#0\0r\xff"[random.between(0, 7)];
    }
    const InfoReply reply = read_info(text);
    for (const std::string_view part : {reply.version, reply.role, reply.maxmemory_policy}) {
      CHECK(is_within(part, text));
      CHECK(part.find_first_of("\r\n") == std::string_view::npos);
    }
  }
}

TEST_CASE("the reply to HELLO states server, version, mode and role", "[version]") {
  const ReplyValue reply = array_value(
      {string_value("server"), string_value("redis"), string_value("version"),
       string_value("7.2.4"), string_value("proto"), integer_value(2), string_value("id"),
       integer_value(5), string_value("mode"), string_value("cluster"), string_value("role"),
       string_value("replica"), string_value("modules"),
       array_value({array_value({string_value("version"), integer_value(1)})})});
  const Hello hello = read_hello(reply);
  CHECK(hello.kind == Hello::Kind::map);
  CHECK(hello.server == "redis");
  CHECK(hello.version == "7.2.4");
  CHECK(hello.mode == "cluster");
  CHECK(hello.role == "replica");
  CHECK(hello.error.empty());
}

TEST_CASE("a field that is missing or no text is empty", "[version]") {
  for (const ReplyValue& reply :
       {array_value({}), array_value({string_value("version")}),
        array_value({string_value("version"), null_value()}),
        array_value({string_value("version"), integer_value(7)}),
        array_value({array_value({string_value("version"), string_value("7.0.0")})}),
        array_value({string_value("x"), string_value("version"), string_value("7.0.0")})}) {
    const Hello hello = read_hello(reply);
    CHECK(hello.kind == Hello::Kind::map);
    CHECK(hello.version.empty());
  }
}

TEST_CASE("another reply to HELLO is an error, some status, or nonsense", "[version]") {
  CHECK(read_hello(error_value("NOAUTH no")).kind == Hello::Kind::error);
  CHECK(read_hello(error_value("NOAUTH no")).error == "NOAUTH no");
  CHECK(read_hello(status_value("OK")).kind == Hello::Kind::other);
  CHECK(read_hello(null_value()).kind == Hello::Kind::nonsense);
  CHECK(read_hello(integer_value(1)).kind == Hello::Kind::nonsense);
  CHECK(read_hello(string_value("redis")).kind == Hello::Kind::nonsense);
}

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
  auto errors = split(
      ";MOVED;MOVED ;MOVED 1;MOVED 1 ;MOVED  1 h:1;MOVED 1  h:1; MOVED 1 h:1;moved 1 h:1;"
      "MOVEDX 1 h:1;ASKING 1 h:1;MOVED h:1 1;MOVED 1 h;MOVED 1 h:;MOVED 1 :;MOVED 1 h:1 x;"
      "MOVED 1 h:1 ;MOVED 1 h:0;MOVED 1 h:65536;MOVED 1 h:-1;MOVED 1 h:+1;MOVED 1 h:1x;"
      "MOVED 1 h:0x1;MOVED 16384 h:1;MOVED -1 h:1;MOVED +1 h:1;MOVED 65536 h:1;MOVED x h:1;"
      "MOVED 1x h:1;MOVED 1 []:1;MOVED 1 [:1;MOVED 1 [::1:1;MOVED 1 ::1]:1;MOVED 1 ?:1;"
      "MOVED 1 [::1];MOVED 1 a b:1;MOVED 1 a\r\n:1;ERR unknown command;"
      "MOVED 1 h:99999999999999999999");
  for (const std::string& error :
       {std::string("MOVED 1 a\x01:1"), std::string("MOVED 1 a\x7f:1"),
        std::string("MOVED 1 \xc3\xa4:1"), std::string("MOVED 1 a\0:1", 13),
        "MOVED 1 " + std::string(256, 'a') + ":1"}) {
    errors.push_back(error);
  }
  for (const std::string& error : errors) {
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

TEST_CASE("the slots of some keys are those of Redis", "[hash_slot]") {
  CHECK(hash_slot("") == 0);
  CHECK(hash_slot("123456789") == 0x31c3);
  CHECK(hash_slot("foo") == 12'182);
  CHECK(hash_slot("bar") == 5'061);
  CHECK(hash_slot("hello") == 866);
}

TEST_CASE("a key with a tag has the slot of its tag", "[hash_slot]") {
  CHECK(hash_slot("{bar}") == hash_slot("bar"));
  CHECK(hash_slot("app:{bar}:bucket") == hash_slot("bar"));
  CHECK(hash_slot("foo{bar}{zap}") == hash_slot("bar"));
  CHECK(hash_slot("foo{{bar}}zap") == hash_slot("{bar"));
  CHECK(hash_slot("}{bar}") == hash_slot("bar"));
  CHECK(hash_slot("{bar}}") == hash_slot("bar"));
}

TEST_CASE("a key without a tag has the slot of all its bytes", "[hash_slot]") {
  for (const std::string key : {"foo{}{bar}", "{}", "{", "}", "{bar", "bar}", "}bar{", "a{}"}) {
    CAPTURE(key);
    CHECK(hash_slot(key) == divided(key) % hash_slots);
  }
}

TEST_CASE("the slot of any bytes is the remainder of their polynomial", "[hash_slot]") {
  Random random("the slot of any bytes is the remainder of their polynomial");
  CAPTURE(random.repeat());
  for (std::size_t i = 0; i < scaled(2'000); ++i) {
    std::string key;
    for (auto n = random.below(40); n > 0; --n) key += static_cast<char>(random.below(256));
    const std::string tagged = "x{" + key + "}y";
    const bool is_tag = !key.empty() && key.find('}') == std::string::npos;
    const bool has_tag = key.find('{') != std::string::npos;
    if (!has_tag) CHECK(hash_slot(key) == divided(key) % hash_slots);
    if (is_tag) CHECK(hash_slot(tagged) == divided(key) % hash_slots);
  }
}

TEST_CASE("a map has its ranges in the order of the slots, with their masters", "[cluster_map]") {
  ReplyValue with_replicas = row(0, 5460, node("10.0.0.1", 7001));
  with_replicas.elements.push_back(node("10.0.0.4", 7004));
  with_replicas.elements.push_back(integer_value(5));  // replicas are not read
  CHECK(map_of({row(10'923, 16'383, node("10.0.0.3", 7003)), with_replicas,
                row(5461, 10'922, node("::1", 65'535))}) ==
        "0-5460=10.0.0.1:7001 5461-10922=::1:65535 10923-16383=10.0.0.3:7003 ");
  CHECK(map_of({row(0, 16'383)}) == "0-16383=a:1 ");
  CHECK(map_of({row(7, 7)}) == "7-7=a:1 ");
  CHECK(map_of({row(0, 1, array_value({string_value("a"), integer_value(1)}))}) == "0-1=a:1 ");
}

TEST_CASE("a map may have gaps", "[cluster_map]") {
  CHECK(map_of({}).empty());
  CHECK(map_of({row(3, 4), row(6, 9, node("b", 2))}) == "3-4=a:1 6-9=b:2 ");
}

TEST_CASE("a host that is empty or null is the asked one, and an unknown one leaves a gap",
          "[cluster_map]") {
  CHECK(map_of({row(0, 1, node("", 7001)), row(2, 3, node(null_value(), integer_value(7002)))}) ==
        "0-1=asked.example:7001 2-3=asked.example:7002 ");
  CHECK(map_of({row(0, 1, node("?", 0)), row(2, 3), row(4, 5, node("?", 7001))}) == "2-3=a:1 ");
}

TEST_CASE("a reply of which any part is wrong is no map, and is told which", "[cluster_map]") {
  const std::string call = "CLUSTER SLOTS: ";
  CHECK(complaint(error_value("ERR This instance has cluster support disabled")) ==
        "ERR This instance has cluster support disabled");
  CHECK(complaint(error_value("")) == "an error without a text");
  for (const ReplyValue& reply :
       {null_value(), status_value("OK"), integer_value(1), string_value("")}) {
    CHECK(complaint(reply) == call + "the reply is no array");
  }
  const std::string shape = call + "a row must be an array of two slots and a master";
  CHECK(complaint_about({integer_value(1)}) == shape);
  CHECK(complaint_about({array_value({})}) == shape);
  CHECK(complaint_about({row(0, 1), array_value({integer_value(2), integer_value(3)})}) == shape);

  CHECK(complaint_about({row(0, 16'384)}) == call + "a slot must be 0 to 16383, got 16384");
  CHECK(complaint_about({row(-1, 1)}) == call + "a slot must be 0 to 16383, got -1");
  CHECK(complaint_about({row(65'536, 65'537)}) == call + "a slot must be 0 to 16383, got 65536");
  CHECK(complaint_about({row(0, INT64_MAX)}) ==
        call + "a slot must be 0 to 16383, got 9223372036854775807");
  CHECK(complaint_about({row(5, 4)}) == call + "the slots 5 to 4 are no range");
  CHECK(complaint_about({array_value({string_value("0"), integer_value(1), node("a", 1)})}) ==
        call + "a slot must be an integer");
  CHECK(complaint_about({array_value({integer_value(0), null_value(), node("a", 1)})}) ==
        call + "a slot must be an integer");

  const std::string shape_of_node = call + "a node must be an array of a host and a port";
  CHECK(complaint_about({row(0, 1, string_value("a:1"))}) == shape_of_node);
  CHECK(complaint_about({row(0, 1, array_value({string_value("a")}))}) == shape_of_node);
  CHECK(complaint_about({row(0, 1, node(integer_value(1), integer_value(1)))}) ==
        call + "a host must be a string or null");
  CHECK(complaint_about({row(0, 1, node(status_value("a"), integer_value(1)))}) ==
        call + "a host must be a string or null");
  CHECK(complaint_about({row(0, 1, node("a b", 1))}) == call + "the host \"a b\" is no name");
  CHECK(complaint_about({row(0, 1, node("a\n", 1))}) == call + "the host \"a\\x0a\" is no name");
  CHECK(complaint_about({row(0, 1, node(std::string(256, 'a'), 1))}) ==
        call + "the host \"" + std::string(64, 'a') + "...\" is no name");
  CHECK(map_of({row(0, 1, node(std::string(255, 'a'), 1))}).size() > 255);

  CHECK(complaint_about({row(0, 1, node("a", 0))}) == call + "a port must be 1 to 65535, got 0");
  CHECK(complaint_about({row(0, 1, node("a", 65'536))}) ==
        call + "a port must be 1 to 65535, got 65536");
  CHECK(complaint_about({row(0, 1, node("a", -1))}) == call + "a port must be 1 to 65535, got -1");
  CHECK(complaint_about({row(0, 1, node(string_value("a"), string_value("1")))}) ==
        call + "a port must be 1 to 65535, got no integer");
}

TEST_CASE("a map with ranges that overlap is refused with both", "[cluster_map]") {
  CHECK(complaint_about({row(0, 5), row(5, 9)}) ==
        "CLUSTER SLOTS: the slots 0 to 5 and 5 to 9 overlap");
  CHECK(complaint_about({row(5, 9), row(0, 5)}) ==
        "CLUSTER SLOTS: the slots 0 to 5 and 5 to 9 overlap");
  CHECK(complaint_about({row(0, 16'383), row(7, 8)}) ==
        "CLUSTER SLOTS: the slots 0 to 16383 and 7 to 8 overlap");
  CHECK(complaint_about({row(3, 3), row(3, 3)}) ==
        "CLUSTER SLOTS: the slots 3 to 3 and 3 to 3 overlap");
}

TEST_CASE("a map has at most 16384 rows and 1024 masters", "[cluster_map]") {
  std::vector<ReplyValue> rows;
  for (int slot = 0; slot < 16'384; ++slot) rows.push_back(row(slot, slot));
  CHECK(read_cluster_map(array_value(rows), asked).ranges.size() == 16'384);
  rows.resize(100'000, row(0, 0));
  CHECK(complaint_about(rows) ==
        "CLUSTER SLOTS: the reply must have at most 16384 rows, got 100000");

  rows.clear();
  for (int slot = 0; slot < static_cast<int>(max_masters); ++slot) {
    rows.push_back(row(slot, slot, node("a", 1 + slot)));
  }
  rows.push_back(row(2000, 2000, node("a", 1)));
  CHECK(read_cluster_map(array_value(rows), asked).ranges.size() == max_masters + 1);
  rows.push_back(row(2001, 2001, node("b", 1)));
  CHECK(complaint_about(rows) == "CLUSTER SLOTS: the reply has more than 1024 masters");
}

TEST_CASE("each slot of a map has the owner that its row names, or none", "[cluster_map]") {
  Random random("each slot of a map has the owner that its row names, or none");
  CAPTURE(random.repeat());
  for (std::size_t i = 0; i < scaled(200); ++i) {
    std::vector<std::int64_t> owner(16'384, 0);  // 0: none
    std::vector<ReplyValue> rows;
    bool overlaps = false;
    for (auto n = random.below(8); n > 0; --n) {
      const std::int64_t first = random.between(0, 16'383);
      const std::int64_t last = std::min<std::int64_t>(16'383, first + random.between(0, 3'000));
      const std::int64_t port = random.between(1, 65'535);
      for (auto slot = first; slot <= last; ++slot) {
        auto& old = owner[static_cast<std::size_t>(slot)];
        overlaps |= old != 0;
        old = port;
      }
      rows.push_back(row(first, last, node("a", port)));
    }
    const ClusterMap map = read_cluster_map(array_value(rows), asked);
    CHECK(map.error.empty() == !overlaps);
    if (overlaps) continue;
    std::vector<std::int64_t> found(16'384, 0);
    for (const auto& range : map.ranges) {
      for (std::size_t slot = range.first; slot <= range.last; ++slot) {
        found[slot] = range.master.port;
      }
    }
    CHECK(found == owner);
  }
}
