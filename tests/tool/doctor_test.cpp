// What doctor says of the replies of a server.
#include "tool/doctor.hpp"

#include "tests/catch.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using namespace sluice::tool;

TEST_CASE("INFO is read into its fields", "[doctor]") {
  const Info info = read_info("# Server\r\nrole:master\r\n\r\nmaxmemory:5\r\nnothing\r\na:b:c");
  CHECK(info == Info{{"role", "master"}, {"maxmemory", "5"}, {"a", "b:c"}});
}

TEST_CASE("a replica and a server that loads are no masters", "[doctor]") {
  CHECK(check_role({{"role", "master"}, {"loading", "0"}}).is_fine);
  CHECK_FALSE(check_role({{"role", "slave"}}).is_fine);
  CHECK_FALSE(check_role({{"role", "master"}, {"loading", "1"}}).is_fine);
}

TEST_CASE("a policy that evicts keys is found, and what it has done", "[doctor]") {
  const auto check = [](const char* policy, const char* maxmemory, const char* evicted) {
    return check_eviction(
        {{"maxmemory_policy", policy}, {"maxmemory", maxmemory}, {"evicted_keys", evicted}});
  };
  CHECK(check("noeviction", "0", "0").is_fine);
  CHECK(check("noeviction", "1000", "0").is_fine);
  CHECK_FALSE(check("noeviction", "1000", "3").is_fine);
  CHECK_THAT(check("noeviction", "1000", "3").text, contains_text("3 keys evicted"));
  CHECK_FALSE(check("allkeys-lru", "1000", "0").is_fine);
  CHECK_FALSE(check("volatile-ttl", "1000", "0").is_fine);  // every state has an expiry
  CHECK_FALSE(check("volatile-ttl", "0", "0").is_fine);
  CHECK_THAT(check("allkeys-lru", "0", "0").text, contains_text("without effect"));
}

TEST_CASE("memory that is nearly full is found", "[doctor]") {
  CHECK(check_memory({{"used_memory", "9000000"}}).is_fine);
  CHECK(check_memory({{"used_memory", "8900000"}, {"maxmemory", "10000000"}}).is_fine);
  CHECK_FALSE(check_memory({{"used_memory", "9000000"}, {"maxmemory", "10000000"}}).is_fine);
}

TEST_CASE("a server that forgets, or cannot write, is found", "[doctor]") {
  CHECK(check_persistence({{"aof_enabled", "1"}}, "everysec").text ==
        "append-only file, appendfsync everysec");
  CHECK_FALSE(check_persistence({{"aof_enabled", "0"}}, "").is_fine);
  CHECK_FALSE(
      check_persistence({{"aof_enabled", "1"}, {"aof_last_write_status", "err"}}, "").is_fine);
  CHECK_FALSE(
      check_persistence({{"aof_enabled", "1"}, {"rdb_last_bgsave_status", "err"}}, "").is_fine);
}

TEST_CASE("replicas need a master that notices that it is alone", "[doctor]") {
  CHECK(check_replicas({{"connected_slaves", "0"}}, "0").is_fine);
  CHECK_FALSE(check_replicas({{"connected_slaves", "2"}}, "0").is_fine);
  CHECK(check_replicas({{"connected_slaves", "2"}}, "1").is_fine);
  CHECK(check_replicas({{"connected_slaves", "2"}}, "").is_fine);
}

TEST_CASE("clocks that differ and long ways are found, one tick to either side", "[doctor]") {
  CHECK(check_clock(500ms).is_fine);
  CHECK(check_clock(-500ms).is_fine);
  CHECK_FALSE(check_clock(500ms + Span{1}).is_fine);
  CHECK_FALSE(check_clock(-500ms - Span{1}).is_fine);
  CHECK_THAT(check_clock(-2s).text, contains_text("behind"));
  CHECK(check_latency(50ms, 1s).is_fine);
  CHECK_FALSE(check_latency(50ms + Span{1}, 1s).is_fine);
}

TEST_CASE("rights that lack are named", "[doctor]") {
  const Check all = check_rights("app", Denied{});
  CHECK(all.is_fine);
  CHECK(all.text == "app may do all that the store does");
  const Check scripts = check_rights("app", Denied{{"EVAL", "GET"}, {"PUBLISH"}, {}});
  CHECK_FALSE(scripts.is_fine);
  CHECK(scripts.text == "app lacks EVAL, GET");
  CHECK_THAT(scripts.advice, contains_text("--functions"));
  const Check others = check_rights("app", Denied{{"GET"}, {}, {}});
  CHECK_FALSE(others.is_fine);
  CHECK(others.advice.find("--functions") == std::string::npos);
  const Check waiters = check_rights("app", Denied{{}, {"PUBLISH"}, {}});
  CHECK_FALSE(waiters.is_fine);
  CHECK_THAT(waiters.text, contains_text("app lacks PUBLISH") && contains_text("not woken"));
  const Check loading = check_rights("app", Denied{{}, {}, {"FUNCTION"}});
  CHECK(loading.is_fine);
  CHECK_THAT(loading.text, contains_text("another user loads the library of functions"));
}

TEST_CASE("what a server does not tell is looked at, with the right that it takes", "[doctor]") {
  CHECK(check_version("7.0.15").is_fine);
  for (const Check& each :
       {check_role({}), check_eviction({}), check_memory({}), check_persistence({}, "always"),
        check_replicas({}, "1"), check_version("")}) {
    INFO(each.name);
    CHECK_FALSE(each.is_fine);
    CHECK(each.text == "not told");
    CHECK_THAT(each.advice, contains_text("Grant the user +info"));
  }
  const Check clock = check_clock(std::nullopt);
  CHECK_FALSE(clock.is_fine);
  CHECK_THAT(clock.advice, contains_text("Grant the user +time"));
  const Check rights = check_rights("app", std::nullopt);
  CHECK_FALSE(rights.is_fine);
  CHECK_THAT(rights.advice, contains_text("+acl|dryrun"));
}

TEST_CASE("what is found has an advice, and what is fine has none", "[doctor]") {
  for (const Check& each :
       {check_role({{"role", "slave"}}), check_role({}), check_memory({}), check_clock(9s),
        check_latency(9s, 9s), check_rights("a", Denied{{"GET"}, {}, {}}),
        check_rights("a", Denied{{}, {"PUBLISH"}, {}}), check_rights("a", Denied{}),
        check_role({{"role", "master"}}), check_version("7.0.15"),
        check_eviction({{"maxmemory_policy", "allkeys-lru"}}), check_replicas({}, ""),
        check_persistence({{"aof_enabled", "0"}}, "")}) {
    INFO(each.name << ": " << each.text);
    CHECK(each.advice.empty() == each.is_fine);
  }
}

}  // namespace
}  // namespace sluice::test
