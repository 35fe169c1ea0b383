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

/// What is found is told with this text, and with an advice unless it is fine.
void check(const Check& found, const std::string& text, const std::string& advice = "") {
  INFO(found.name << ": " << found.text << ". " << found.advice);
  CHECK(found.is_fine == advice.empty());
  CHECK(found.advice.empty() == found.is_fine);
  CHECK_THAT(found.text, contains_text(text));
  CHECK_THAT(found.advice, contains_text(advice));
}

TEST_CASE("a server that is no master, forgets, or cannot write is found", "[doctor]") {
  check(check_role({{"role", "master"}, {"loading", "0"}}), "master");
  check(check_role({{"role", "slave"}}), "a replica", "Name the master");
  check(check_role({{"role", "master"}, {"loading", "1"}}), "loads its data", "Wait");
  check(check_persistence({{"aof_enabled", "1"}}, "everysec"),
        "append-only file, appendfsync everysec");
  check(check_persistence({{"aof_enabled", "0"}}, ""), "no append-only file", "appendonly yes");
  for (const char* const status : {"aof_last_write_status", "rdb_last_bgsave_status"}) {
    check(check_persistence({{"aof_enabled", "1"}, {status, "err"}}, ""), "is err", "at its disk");
  }
  check(check_replicas({{"connected_slaves", "0"}}, "0"), "");
  check(check_replicas({{"connected_slaves", "2"}}, "0"), "cut off", "min-replicas-to-write 1");
  check(check_replicas({{"connected_slaves", "2"}}, "1"), "2 replicas, min-replicas-to-write 1");
  check(check_replicas({{"connected_slaves", "2"}}, ""), "2 replicas");
}

TEST_CASE("a policy that evicts keys, what it has done, and memory that is nearly full are found",
          "[doctor]") {
  const auto eviction = [](const char* policy, const char* maxmemory, const char* evicted) {
    return check_eviction(
        {{"maxmemory_policy", policy}, {"maxmemory", maxmemory}, {"evicted_keys", evicted}});
  };
  check(eviction("noeviction", "0", "0"), "no key evicted");
  check(eviction("noeviction", "1000", "0"), "no key evicted");
  check(eviction("noeviction", "1000", "1"), "1 key evicted", "more memory");
  check(eviction("allkeys-lru", "1000", "0"), "starts anew", "Set maxmemory-policy noeviction.");
  check(eviction("allkeys-lru", "0", "0"), "without effect", "before somebody sets maxmemory");
  // Every state has an expiry.
  check(eviction("volatile-ttl", "1000", "0"), "starts anew", "noeviction");
  check(eviction("volatile-ttl", "0", "0"), "starts anew", "noeviction");
  check(check_memory({{"used_memory", "9000000"}}), "9 MB used, without a bound");
  check(check_memory({{"used_memory", "8900000"}, {"maxmemory", "10000000"}}), "8 MB of 10 MB");
  check(check_memory({{"used_memory", "9000000"}, {"maxmemory", "10000000"}}), "out_of_memory",
        "Raise maxmemory");
}

TEST_CASE("clocks that differ and long ways are found, one tick to either side", "[doctor]") {
  check(check_clock(500ms), "500 ms ahead of this");
  check(check_clock(-500ms), "500 ms behind this");
  check(check_clock(500ms + Span{1}), "ahead of", "NTP");
  check(check_clock(-500ms - Span{1}), "behind", "NTP");
  check(check_latency(50ms, 1s), "50.0 ms at the median, 1.00 s at most");
  check(check_latency(50ms + Span{1}, 1s), "at the median", "Move the server nearer");
}

TEST_CASE("rights that lack are named", "[doctor]") {
  check(check_rights("app", Denied{}), "app may do all that the store does");
  CHECK(check_rights("app", Denied{}).text == "app may do all that the store does");
  check(check_rights("app", Denied{{"EVAL", "GET"}, {"PUBLISH"}, {}}), "app lacks EVAL, GET",
        "--functions");
  check(check_rights("app", Denied{{"GET"}, {}, {}}), "app lacks GET", "ACL SETUSER: docs");
  check(check_rights("app", Denied{{}, {"PUBLISH"}, {}}),
        "app lacks PUBLISH: waiters are not woken", "if calls wait");
  check(check_rights("app", Denied{{}, {}, {"FUNCTION"}}),
        "another user loads the library of functions");
}

TEST_CASE("what a server does not tell is looked at, with the right that it takes", "[doctor]") {
  check(check_version("7.0.15"), "7.0.15");
  for (const Check& each :
       {check_role({}), check_eviction({}), check_memory({}), check_persistence({}, "always"),
        check_replicas({}, "1"), check_version("")}) {
    check(each, "not told", "Grant the user +info");
  }
  check(check_clock(std::nullopt), "not told", "Grant the user +time");
  check(check_rights("app", std::nullopt), "not told", "+acl|dryrun");
}

}  // namespace
}  // namespace sluice::test
