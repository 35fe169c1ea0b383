// Replies of Sentinels and to ROLE. Threading: single-threaded.
#include "backends/redis/protocol/sentinel_replies.hpp"

#include "tests/catch.hpp"
#include "tests/redis/protocol/reply_values.hpp"

using namespace sluice::test;
using sluice::RedisAddress;
using sluice::redis_detail::max_sentinels;
using sluice::redis_detail::NamedMaster;
using sluice::redis_detail::newest;
using sluice::redis_detail::read_epoch;
using sluice::redis_detail::read_master;
using sluice::redis_detail::read_role;
using sluice::redis_detail::read_sentinels;
using sluice::redis_detail::Vote;

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

std::string complaint(const ReplyValue& reply) {
  const NamedMaster master = read_master(reply);
  CHECK_FALSE(master.address);
  return master.error;
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
  CHECK(complaint(null_value()) == "the Sentinel knows no master of this name");
  CHECK(complaint(error_value("NOAUTH Authentication required.")) ==
        "NOAUTH Authentication required.");
  CHECK(complaint(error_value("")) == "an error without a text");
  const std::string shape = "the Sentinel's reply is no array of a host and a port";
  for (const ReplyValue& reply :
       {status_value("OK"), integer_value(1), string_value("10.0.0.1"), array_value({}),
        strings({"10.0.0.1"}), strings({"10.0.0.1", "1", "2"}),
        array_value({string_value("h"), integer_value(1)}),
        array_value({null_value(), string_value("1")}),
        array_value({string_value("h"), null_value()})}) {
    CHECK(complaint(reply) == shape);
  }
  CHECK(complaint(strings({"", "1"})) == "the Sentinel's host \"\" is no name");
  CHECK(complaint(strings({"a b", "1"})) == "the Sentinel's host \"a b\" is no name");
  CHECK(complaint(strings({"a\xff", "1"})) == "the Sentinel's host \"a\\xff\" is no name");
  for (const std::string port :
       {"0", "65536", "", "-1", "+1", "1x", " 1", "99999999999999999999"}) {
    CAPTURE(port);
    CHECK(complaint(strings({"h", port})) ==
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
