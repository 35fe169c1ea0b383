// CLUSTER SLOTS: maps, with gaps and unknown hosts, and replies that are no map. Threading:
// single-threaded.
#include "backends/redis/topology/cluster_map.hpp"

#include <algorithm>

#include "tests/catch.hpp"
#include "tests/redis/protocol/reply_values.hpp"
#include "tests/support/seed.hpp"

using namespace sluice::test;
using sluice::RedisAddress;
using sluice::redis_detail::ClusterMap;
using sluice::redis_detail::max_masters;
using sluice::redis_detail::read_cluster_map;

namespace {

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
