// What a user needs behind Sentinels, on the servers and on the Sentinels, and what is missed
// without each right. Threading: the test's thread.
#include "tests/catch.hpp"
#include "tests/redis/events.hpp"
#include "tests/redis/real/real.hpp"
#include "tests/redis/real/rights.hpp"
#include "tests/redis/real/scripts.hpp"
#include "tests/support/redis_sentinels.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const Quota quota = Quota::per(1, 30min).burst(1000);

const Rights of_servers{"~rl:*", "+evalsha", "+eval",     "+time",     "+get",
                        "+mget", "+psetex",  "+getrange", "+setrange", "+pexpire"};
const Rights of_sentinels{"+sentinel|get-master-addr-by-name", "+sentinel|master",
                          "+sentinel|sentinels", "+subscribe", "&+switch-master"};

struct Limited {
  explicit Limited(RedisSentinels::Options options = {}) : group(std::move(options)) {}

  void grant_servers(const Rights& rights) {
    for (std::size_t i = 0; i < RedisSentinels::size; ++i) {
      grant(group.client(i), "limiter", rights);
    }
  }
  void grant_sentinels(const Rights& rights) {
    for (std::size_t i = 0; i < RedisSentinels::size; ++i) {
      grant(group.sentinel_client(i), "watcher", rights);
    }
  }
  /// Knows the first Sentinel only.
  [[nodiscard]] RedisOptions options() const {
    RedisOptions options = options_of_limiter();
    options.sentinel = RedisSentinel{.master = RedisSentinels::group,
                                     .sentinels = {{"127.0.0.1", group.ports()[0]}},
                                     .username = "watcher",
                                     .password = "secret"};
    return options;
  }
  /// The first Sentinel ends, and the others name another master.
  void leave_to_the_others() {
    group.sentinel(0).kill();
    group.fail_over();
  }

  RedisSentinels group;
};

/// The Sentinel has a subscriber that is the store.
bool is_watched(const RedisSentinels& group) {
  const std::string list = group.sentinel_client(0)({"CLIENT", "LIST"}).text;
  std::istringstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" user=watcher ") != std::string::npos &&
        line.find(" sub=1 ") != std::string::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("users with the documented rights can do everything behind Sentinels",
          "[redis][sentinel]") {
  if (redis_left_out()) return;
  Limited it;
  it.grant_servers(of_servers);

  SECTION("as documented, with Sentinels that are learnt") {
    it.grant_sentinels(of_sentinels);
    ask_all_rows(it.options(),
                 "users with the documented rights can do everything behind Sentinels");
    const auto store = make_redis_store(it.options());
    const Bucket bucket(*store, quota);
    REQUIRE_FALSE(bucket.error("a"));
    REQUIRE(eventually([&] { return is_watched(it.group); }));
    CHECK(store->stats().failed_attempts == 0);
    it.leave_to_the_others();
    CHECK(eventually([&] { return !bucket.error("a", 1s) && store->stats().connections > 1; }));
  }
  SECTION("without +sentinel|sentinels, no other Sentinel is known") {
    it.grant_sentinels(without(of_sentinels, "+sentinel|sentinels"));
    const auto store = make_redis_store(it.options());
    const Bucket bucket(*store, quota);
    REQUIRE_FALSE(bucket.error("a"));
    it.leave_to_the_others();
    CHECK(eventually([&] { return bucket.error("a", 300ms) == Errc::read_only; }));
  }
  SECTION("without +sentinel|master, a failover is followed as well") {
    it.grant_sentinels(without(of_sentinels, "+sentinel|master"));
    const auto store = make_redis_store(it.options());
    const Bucket bucket(*store, quota);
    REQUIRE_FALSE(bucket.error("a"));
    CHECK(store->stats().failed_attempts == 0);
    it.group.fail_over();
    CHECK(eventually([&] { return !bucket.error("a", 1s) && store->stats().connections > 1; }));
  }
  SECTION("without +sentinel|get-master-addr-by-name, there is no master") {
    it.grant_sentinels(without(of_sentinels, "+sentinel|get-master-addr-by-name"));
    const auto store = make_redis_store(it.options());
    CHECK(Bucket(*store, quota).error("a", 300ms) == Errc::not_connected);
    REQUIRE(eventually([&] { return store->stats().last_failure.has_value(); }));
    const auto last = store->stats().last_failure;
    CHECK(last->step == RedisStep::discover);
    CHECK(last->cause.find("NOPERM") == 0);
  }
  SECTION("without the rights to subscribe, nothing is heard of a switch") {
    const std::string_view missing =
        GENERATE(std::string_view("+subscribe"), std::string_view("&+switch-master"));
    CAPTURE(missing);
    it.grant_sentinels(without(of_sentinels, missing));
    const auto store = make_redis_store(it.options());
    const Bucket bucket(*store, quota);
    REQUIRE_FALSE(bucket.error("a"));
    REQUIRE(eventually([&] {
      return !it.group.sentinel_client(0)({"ACL", "LOG"}).elements.empty();
    }));
    CHECK_FALSE(is_watched(it.group));
    it.group.fail_over();  // the old master sends its clients away
    CHECK(eventually([&] { return !bucket.error("a", 1s) && store->stats().connections > 1; }));
  }
}

TEST_CASE("a server that does not answer HELLO is asked for its role", "[redis][sentinel]") {
  if (redis_left_out()) return;
  Limited it({.config = {"rename-command HELLO \"\""}});
  it.grant_sentinels(of_sentinels);
  it.grant_servers(of_servers);
  {
    const auto store = make_redis_store(it.options());
    const Bucket bucket(*store, quota);
    CHECK(eventually([&] { return bucket.error("a", 300ms) == Errc::no_permission; }));
  }
  Rights rights = of_servers;
  rights.emplace_back("+role");
  it.grant_servers(rights);
  const auto store = make_redis_store(it.options());
  CHECK_FALSE(Bucket(*store, quota).error("a"));
}
