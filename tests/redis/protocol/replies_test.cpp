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

using Rows = std::vector<std::pair<std::string, std::string>>;

/// Takes the next value off a text: [an array], 7, nil, +status, -error, string or 'a string'.
ReplyValue take_value(std::string_view& text) {
  const auto word = [&text] {
    const bool is_quoted = text.starts_with('\'');
    if (is_quoted) text.remove_prefix(1);
    const std::size_t end = std::min(text.find_first_of(is_quoted ? "'" : " ]"), text.size());
    const std::string_view found = text.substr(0, end);
    text.remove_prefix(std::min(end + (is_quoted ? 1 : 0), text.size()));
    return found;
  };
  const char first = text.front();
  if (first == '[') {
    ReplyValue array = array_value({});
    for (text.remove_prefix(1); !text.starts_with(']');) {
      array.elements.push_back(take_value(text));
      if (text.starts_with(' ')) text.remove_prefix(1);
    }
    text.remove_prefix(1);
    return array;
  }
  const bool is_number = text.find_first_of("0123456789", first == '-' ? 1 : 0) ==
                         static_cast<std::size_t>(first == '-' ? 1 : 0);
  if (is_number) {
    const std::string_view digits = word();
    if (digits.find_first_not_of("-0123456789") != digits.npos) return string_value(digits);
    return integer_value(std::stoll(std::string(digits)));
  }
  if (first == '+' || first == '-') {
    text.remove_prefix(1);
    return first == '+' ? status_value(word()) : error_value(word());
  }
  const bool is_null = text.starts_with("nil");
  const std::string_view found = word();
  return is_null ? null_value() : string_value(found);
}

ReplyValue value(std::string_view text) { return take_value(text); }

std::string text_of(const RedisAddress& address) {
  return address.host + ":" + std::to_string(address.port);
}

/// The master that a Sentinel names, or why it names none.
std::string master_in(const std::string& reply) {
  const NamedMaster master = read_master(value(reply));
  CHECK(master.address.has_value() == master.error.empty());
  return master.address ? text_of(*master.address) : master.error;
}

std::string sentinel(const std::string& host, const std::string& port,
                     const std::string& flags = "sentinel") {
  return "[name e6a2 ip '" + host + "' port '" + port + "' flags " + flags + " voted-leader ?] ";
}

std::string sentinels_in(const std::string& reply) {
  std::string text;
  for (const RedisAddress& each : read_sentinels(value(reply))) text += text_of(each) + " ";
  return text;
}

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

/// The ranges of a map, or what is wrong with it.
std::string map_in(const ReplyValue& reply) {
  const ClusterMap map = read_cluster_map(reply, asked);
  if (!map.error.empty()) CHECK(map.ranges.empty());
  std::string text = map.error;
  for (const auto& range : map.ranges) {
    text += std::to_string(range.first) + "-" + std::to_string(range.last) + "=" +
            text_of(range.master) + " ";
  }
  return text;
}

ReplyValue row(std::int64_t first, std::int64_t last, std::string_view host = "a",
               std::int64_t port = 1) {
  return array_value({integer_value(first), integer_value(last),
                      array_value({string_value(host), integer_value(port)})});
}

}  // namespace

TEST_CASE("a Sentinel names the master by host and port, or is told why it names none",
          "[sentinel_replies]") {
  const std::string shape = "the Sentinel's reply is no array of a host and a port";
  for (const auto& [reply, expected] :
       Rows{{"[10.0.0.1 '6379']", "10.0.0.1:6379"},
            {"[::1 '1']", "::1:1"},
            {"[redis.example '65535']", "redis.example:65535"},
            {"[" + std::string(255, 'a') + " '7']", std::string(255, 'a') + ":7"},
            {"nil", "the Sentinel knows no master of this name"},
            {"-'NOAUTH Authentication required.'", "NOAUTH Authentication required."},
            {"-''", "an error without a text"},
            {"['' '1']", "the Sentinel's host \"\" is no name"},
            {"['a b' '1']", "the Sentinel's host \"a b\" is no name"},
            {"[a\xff '1']", "the Sentinel's host \"a\\xff\" is no name"}}) {
    CHECK(master_in(reply) == expected);
  }
  for (const std::string& reply :
       split("+OK;1;10.0.0.1;[];[10.0.0.1];[10.0.0.1 '1' '2'];[h 1];[nil '1'];[h nil]")) {
    CAPTURE(reply);
    CHECK(master_in(reply) == shape);
  }
  for (const std::string& port : split("0;65536;;-1;+1;1x; 1;99999999999999999999")) {
    CHECK(master_in("[h '" + port + "']") ==
          "the Sentinel's port must be 1 to 65535, got \"" + port + "\"");
  }
}

TEST_CASE("the newest vote counts, then the plurality, then not the master in use",
          "[sentinel_replies]") {
  const RedisAddress used{"used", 1};
  const RedisAddress other{"other", 1};
  const RedisAddress third{"third", 1};
  const auto newest_of = [&](std::vector<Vote> votes) {
    const Vote* const vote = newest(votes, used);
    return vote == nullptr ? "" : vote->sentinel.host;
  };
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
  CHECK(read_epoch(value("[name m config-epoch '12' quorum '2']")) == 12);
  CHECK(read_epoch(value("[config-epoch '18446744073709551615']")) == ~std::uint64_t{0});
  for (const std::string& reply :
       split("nil;[];[config-epoch];[config-epoch ''];[config-epoch '-1'];[config-epoch x];"
             "[config-epoch '18446744073709551616'];[epoch '3']")) {
    CHECK(read_epoch(value(reply)) == 0);
  }
}

TEST_CASE("other Sentinels are listed, those that are down last, and rows that name none skipped",
          "[sentinel_replies]") {
  CHECK(sentinels_in("[" + sentinel("a", "1", "s_down,sentinel") + sentinel("b", "26379") +
                     sentinel("c", "2", "sentinel,disconnected") + sentinel("::1", "65535") +
                     sentinel("d", "3", "o_down,sentinel") + "]") ==
        "b:26379 ::1:65535 a:1 c:2 d:3 ");
  CHECK(sentinels_in("[[port '1' ip a]]") == "a:1 ");
  const std::string none =
      sentinel("", "1") + sentinel("a b", "1") + sentinel("a", "0") + sentinel("a", "65536") +
      sentinel("a", "") + sentinel("a", "1x") +
      "[] [ip] [ip a] [port '1'] [ip a port] [x ip a port '1'] [ip nil port '1'] [ip a port 1] nil "
      "1 ip -ERR";
  CHECK(sentinels_in("[" + none + "]").empty());
  CHECK(sentinels_in("[" + sentinel("b", "2") + none + " " + sentinel("c", "3") + "]") ==
        "b:2 c:3 ");
  for (const char* reply : {"[]", "nil", "-ERR", "+OK", "1", "a"}) {
    CHECK(sentinels_in(reply).empty());
  }
  std::string rows;  // at most 64 are listed, those that are up before the others
  const auto listed = [&] { return read_sentinels(value("[" + rows + "]")); };
  for (int i = 1; i <= 100; ++i) rows += sentinel("d", std::to_string(i), "s_down");
  CHECK(listed().size() == max_sentinels);
  rows += sentinel("u", "7");
  REQUIRE(listed().size() == max_sentinels);
  CHECK(listed().front() == RedisAddress{"u", 7});
  CHECK(listed().back() == RedisAddress{"d", 63});
  for (int i = 1; i <= 100; ++i) rows += sentinel("u", std::to_string(i));
  REQUIRE(listed().size() == max_sentinels);
  CHECK(listed().back() == RedisAddress{"u", 63});
}

TEST_CASE("ROLE is master, slave, sentinel, or nonsense", "[sentinel_replies]") {
  for (const std::string role : {"master", "slave", "sentinel"}) {
    CHECK(read_role(value("[" + role + " 0 []]")) == role);
    CHECK(read_role(value("[" + role + "]")) == role);
    CHECK(read_role(value(role)).empty());
    CHECK(read_role(value("[1 " + role + "]")).empty());
  }
  for (const std::string& reply :
       split("nil;[];[replica];['master '];[''];[[master]];-'NOPERM master'")) {
    CHECK(read_role(value(reply)).empty());
  }
}

TEST_CASE("the text of INFO states version, role, policy and evicted keys", "[redis][info]") {
  const std::string whole =
      "# Server\r\nredis_version:7.2.4\r\nredis_mode:standalone\r\n\r\n"
      "# Memory\r\nused_memory:1012345\r\nmaxmemory_policy:noeviction\r\n\r\n"
      "# Stats\r\nevicted_keys:42\r\nevicted_clients:7\r\n\r\n"
      "# Replication\r\nrole:master\r\nmaster_replid:8c5\r\n";
  const auto told = [](const std::string& text) {
    const InfoReply reply = read_info(text);
    std::string words;
    for (const auto part : {reply.version, reply.role, reply.maxmemory_policy}) {
      words += std::string(part) + " ";
    }
    return words + (reply.evicted_keys ? std::to_string(*reply.evicted_keys) : "");
  };
  CHECK(told(whole) == "7.2.4 master noeviction 42");
  CHECK(told("redis_version:7:x\r\n") == "7:x   ");
  CHECK(told("role:master\r\nrole:slave\nevicted_keys:1\nevicted_keys:2\n"
             "maxmemory_policy:allkeys-lru") == " master allkeys-lru 1");
  for (const char* text :
       {"", "\r\n", ":", "# role:master", "xrole:master\r\nrole_x:master\nevicted_keys\r\n",
        "evicted_keys:\r\nrole:\r\n", "evicted_keys:-1\r\n", "evicted_keys:4 2\r\n",
        "evicted_keys:18446744073709551616\r\n", "x:role:master\r\n"}) {
    CAPTURE(text);
    CHECK(told(text) == "   ");
  }

  Random random("the text of INFO states version, role, policy and evicted keys");
  CAPTURE(random.repeat());
  for (std::size_t round = 0; round < scaled(5'000, 500); ++round) {  // cut, or changed
    std::string text = whole.substr(0, random.below(whole.size() + 1));
    for (auto changes = random.below(6); changes > 0 && !text.empty(); --changes) {
      text[random.below(text.size())] = "\r\n:#0\0r\xff"[random.below(8)];
    }
    const InfoReply reply = read_info(text);
    for (const std::string_view part : {reply.version, reply.role, reply.maxmemory_policy}) {
      CHECK((part.empty() || (part.data() >= text.data() &&
                              part.data() + part.size() <= text.data() + text.size())));
      CHECK(part.find_first_of("\r\n") == std::string_view::npos);
    }
  }
}

TEST_CASE("the reply to HELLO is a map of texts, an error, some status, or nonsense", "[version]") {
  using Kind = Hello::Kind;
  const auto hello_of = [](const std::string& reply) {
    const ReplyValue read = value(reply);
    const Hello hello = read_hello(read);
    std::string words;
    for (const auto part : {hello.server, hello.version, hello.mode, hello.role, hello.error}) {
      words += std::string(part) + ";";
    }
    return std::pair(hello.kind, words);
  };
  CHECK(hello_of("[server redis version 7.2.4 proto 2 id 5 mode cluster role replica "
                 "modules [[version 1]]]") ==
        std::pair<Kind, std::string>(Kind::map, "redis;7.2.4;cluster;replica;;"));
  for (const std::string& reply : split("[];[version];[version nil];[version 7];"
                                        "[[version 7.0.0]];[x version 7.0.0]")) {
    CHECK(hello_of(reply) == std::pair<Kind, std::string>(Kind::map, ";;;;;"));
  }
  CHECK(hello_of("-'NOAUTH no'") == std::pair<Kind, std::string>(Kind::error, ";;;;NOAUTH no;"));
  CHECK(hello_of("+OK").first == Kind::other);
  for (const char* reply : {"nil", "1", "redis"}) CHECK(hello_of(reply).first == Kind::nonsense);
}

TEST_CASE("a redirection names a slot and a node, or is none", "[redirection]") {
  const auto told = [](const std::string& error) -> std::string {
    const auto found = read_redirection(error);
    if (!found) return "";
    return (found->is_ask ? "ASK " : "MOVED ") + std::to_string(found->slot) + " " +
           text_of(found->node);
  };
  for (const std::string& error :
       split("MOVED 3999 127.0.0.1:6381;ASK 3999 127.0.0.1:6381;MOVED 0 redis-1.example:1;"
             "ASK 16383 h:65535;MOVED 1 ::1:6381;ASK 1 2001:db8::7:8:6381;MOVED 3999 :6381;"
             "ASK 1 " +
             std::string(255, 'a') + ":2")) {
    CHECK(told(error) == error);
  }
  CHECK(told("MOVED 1 [::1]:6381") == "MOVED 1 ::1:6381");
  auto errors = split(
      ";MOVED;MOVED ;MOVED 1;MOVED 1 ;MOVED  1 h:1;MOVED 1  h:1; MOVED 1 h:1;moved 1 h:1;"
      "MOVEDX 1 h:1;ASKING 1 h:1;MOVED h:1 1;MOVED 1 h;MOVED 1 h:;MOVED 1 :;MOVED 1 h:1 x;"
      "MOVED 1 h:1 ;MOVED 1 h:0;MOVED 1 h:65536;MOVED 1 h:-1;MOVED 1 h:+1;MOVED 1 h:1x;"
      "MOVED 1 h:0x1;MOVED 16384 h:1;MOVED -1 h:1;MOVED +1 h:1;MOVED 65536 h:1;MOVED x h:1;"
      "MOVED 1x h:1;MOVED 1 []:1;MOVED 1 [:1;MOVED 1 [::1:1;MOVED 1 ::1]:1;MOVED 1 ?:1;"
      "MOVED 1 [::1];MOVED 1 a b:1;MOVED 1 a\r\n:1;ERR unknown command;"
      "MOVED 1 h:99999999999999999999;MOVED 1 a\x01:1;MOVED 1 a\x7f:1;MOVED 1 \xc3\xa4:1");
  errors.emplace_back("MOVED 1 a\0:1", 13);
  errors.push_back("MOVED 1 " + std::string(256, 'a') + ":1");
  for (const std::string& error : errors) {
    CAPTURE(error);
    CHECK(told(error).empty());
  }

  Random random("a redirection names a slot and a node, or is none");
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

TEST_CASE("the slot of a key is the remainder of its tag, or of all its bytes", "[hash_slot]") {
  CHECK(hash_slot("123456789") == 0x31c3);
  CHECK(hash_slot("foo") == 12'182);  // as Redis says
  for (const std::string key : {"{bar}", "app:{bar}:bucket", "foo{bar}{zap}", "}{bar}", "{bar}}"}) {
    CHECK(hash_slot(key) == 5'061);
  }
  CHECK(hash_slot("foo{{bar}}zap") == divided("{bar") % hash_slots);
  for (const std::string key : {"", "foo{}{bar}", "{}", "{", "}", "{bar", "bar}", "}bar{", "a{}"}) {
    CAPTURE(key);
    CHECK(hash_slot(key) == divided(key) % hash_slots);
  }
  Random random("the slot of a key is the remainder of its tag, or of all its bytes");
  CAPTURE(random.repeat());
  for (std::size_t i = 0; i < scaled(2'000); ++i) {
    std::string key;
    for (auto n = random.below(40); n > 0; --n) key += static_cast<char>(random.below(256));
    const bool is_tag = !key.empty() && key.find('}') == std::string::npos;
    const bool has_tag = key.find('{') != std::string::npos;
    if (!has_tag) CHECK(hash_slot(key) == divided(key) % hash_slots);
    if (is_tag) CHECK(hash_slot("x{" + key + "}y") == divided(key) % hash_slots);
  }
}

TEST_CASE("a map has ranges in the order of the slots, with their masters and perhaps gaps",
          "[cluster_map]") {
  for (const auto& [reply, expected] : Rows{
           {"[[10923 16383 [10.0.0.3 7003 id []]] [0 5460 [10.0.0.1 7001 id []] [10.0.0.4 7004] 5]"
            " [5461 10922 [::1 65535 id []]]]",  // replicas are not read
            "0-5460=10.0.0.1:7001 5461-10922=::1:65535 10923-16383=10.0.0.3:7003 "},
           {"[[0 16383 [a 1]]]", "0-16383=a:1 "},
           {"[[7 7 [a 1]]]", "7-7=a:1 "},
           {"[]", ""},
           {"[[3 4 [a 1]] [6 9 [b 2]]]", "3-4=a:1 6-9=b:2 "},
           // A host that is empty or null is the asked one, and an unknown one leaves a gap.
           {"[[0 1 ['' 7001]] [2 3 [nil 7002]]]", "0-1=asked.example:7001 2-3=asked.example:7002 "},
           {"[[0 1 [? 0]] [2 3 [a 1]] [4 5 [? 7001]]]", "2-3=a:1 "},
           {"[[0 1 [" + std::string(255, 'a') + " 1]]]", "0-1=" + std::string(255, 'a') + ":1 "}}) {
    CHECK(map_in(value(reply)) == expected);
  }
}

TEST_CASE("a reply of which any part is wrong is no map, and is told which", "[cluster_map]") {
  CHECK(map_in(value("-'ERR This instance has cluster support disabled'")) ==
        "ERR This instance has cluster support disabled");
  CHECK(map_in(value("-''")) == "an error without a text");
  const std::string shape = "a row must be an array of two slots and a master";
  const std::string of_node = "a node must be an array of a host and a port";
  const std::string of_slot = "a slot must be 0 to 16383, got ";
  const std::string of_port = "a port must be 1 to 65535, got ";
  for (const auto& [reply, expected] :
       Rows{{"nil", "the reply is no array"},
            {"+OK", "the reply is no array"},
            {"1", "the reply is no array"},
            {"''", "the reply is no array"},
            {"[1]", shape},
            {"[[]]", shape},
            {"[[0 1 [a 1]] [2 3]]", shape},
            {"[[0 16384 [a 1]]]", of_slot + "16384"},
            {"[[-1 1 [a 1]]]", of_slot + "-1"},
            {"[[65536 65537 [a 1]]]", of_slot + "65536"},
            {"[[0 9223372036854775807 [a 1]]]", of_slot + "9223372036854775807"},
            {"[[5 4 [a 1]]]", "the slots 5 to 4 are no range"},
            {"[['0' 1 [a 1]]]", "a slot must be an integer"},
            {"[[0 nil [a 1]]]", "a slot must be an integer"},
            {"[[0 1 a:1]]", of_node},
            {"[[0 1 [a]]]", of_node},
            {"[[0 1 [1 1]]]", "a host must be a string or null"},
            {"[[0 1 [+a 1]]]", "a host must be a string or null"},
            {"[[0 1 ['a b' 1]]]", "the host \"a b\" is no name"},
            {"[[0 1 ['a\n' 1]]]", "the host \"a\\x0a\" is no name"},
            {"[[0 1 [" + std::string(256, 'a') + " 1]]]",
             "the host \"" + std::string(64, 'a') + "...\" is no name"},
            {"[[0 1 [a 0]]]", of_port + "0"},
            {"[[0 1 [a 65536]]]", of_port + "65536"},
            {"[[0 1 [a -1]]]", of_port + "-1"},
            {"[[0 1 [a '1']]]", of_port + "no integer"},
            {"[[0 5 [a 1]] [5 9 [a 1]]]", "the slots 0 to 5 and 5 to 9 overlap"},
            {"[[5 9 [a 1]] [0 5 [a 1]]]", "the slots 0 to 5 and 5 to 9 overlap"},
            {"[[0 16383 [a 1]] [7 8 [a 1]]]", "the slots 0 to 16383 and 7 to 8 overlap"},
            {"[[3 3 [a 1]] [3 3 [a 1]]]", "the slots 3 to 3 and 3 to 3 overlap"}}) {
    CAPTURE(reply);
    CHECK(map_in(value(reply)) == "CLUSTER SLOTS: " + expected);
  }
}

TEST_CASE("a map has at most 16384 rows and 1024 masters", "[cluster_map]") {
  std::vector<ReplyValue> rows;
  for (int slot = 0; slot < 16'384; ++slot) rows.push_back(row(slot, slot));
  CHECK(read_cluster_map(array_value(rows), asked).ranges.size() == 16'384);
  rows.resize(100'000, row(0, 0));
  CHECK(map_in(array_value(rows)) ==
        "CLUSTER SLOTS: the reply must have at most 16384 rows, got 100000");

  rows.clear();
  for (int slot = 0; slot < static_cast<int>(max_masters); ++slot) {
    rows.push_back(row(slot, slot, "a", 1 + slot));
  }
  rows.push_back(row(2000, 2000));
  CHECK(read_cluster_map(array_value(rows), asked).ranges.size() == max_masters + 1);
  rows.push_back(row(2001, 2001, "b"));
  CHECK(map_in(array_value(rows)) == "CLUSTER SLOTS: the reply has more than 1024 masters");
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
        overlaps |= std::exchange(owner[static_cast<std::size_t>(slot)], port) != 0;
      }
      rows.push_back(row(first, last, "a", port));
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
