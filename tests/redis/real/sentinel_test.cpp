// The store behind real Sentinels: it serves from the master that they name; what users need on the
// servers and on the Sentinels. Threading: the test's thread.
#include "tests/catch.hpp"
#include "tests/redis/events.hpp"
#include "tests/redis/fake/server.hpp"
#include "tests/redis/real/real.hpp"
#include "tests/redis/real/rights.hpp"
#include "tests/redis/real/scripts.hpp"
#include "tests/support/redis_sentinels.hpp"

using namespace sluice::test;
using namespace sluice;

namespace {

const Quota quota = Quota::per(1, 30min).burst(1000);

RedisOptions options_for(const RedisSentinels& group) {
  RedisOptions options;
  options.call_timeout = 20s;
  options.connect_timeout = 5s;
  options.stall_timeout = 5s;
  options.sentinel.emplace();
  options.sentinel->master = RedisSentinels::group;
  for (const std::uint16_t port : group.ports()) {
    options.sentinel->sentinels.push_back({"127.0.0.1", port});
  }
  return options;
}

std::size_t count(const Events& events, RedisEvent::Kind kind) {
  const auto all = events.all();
  return static_cast<std::size_t>(
      std::ranges::count_if(all, [&](const RedisEvent& event) { return event.kind == kind; }));
}

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

TEST_CASE("the master that Sentinels name decides, before and after failovers",
          "[redis][sentinel]") {
  RedisSentinels group;
  Events events;
  RedisOptions options = options_for(group);
  options.on_event = events.listener();
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  REQUIRE_FALSE(bucket.error("alice"));
  CHECK(events.all().back().address == "127.0.0.1:" + std::to_string(group.master_port()));

  group.fail_over();
  CHECK(eventually([&] { return count(events, RedisEvent::Kind::switched) > 0; }));
  REQUIRE(eventually([&] {
    const std::string master = "127.0.0.1:" + std::to_string(group.master_port());
    return !bucket.error("alice") && events.all().back().address == master;
  }));
}

TEST_CASE("a Sentinel that names a replica is passed over", "[redis][sentinel]") {
  RedisSentinels group;
  const std::uint16_t master = group.master_port();
  const std::string replica = std::to_string(
      group.server(0).port() == master ? group.server(1).port() : group.server(0).port());
  FakeServer liar([&](Peer& peer, int) {
    while (const auto asked = peer.read_behind_login()) {
      if (!peer.send("*2\r\n" + bulk("127.0.0.1") + bulk(replica))) return;
    }
  });
  RedisOptions options = options_for(group);
  options.sentinel->sentinels.insert(options.sentinel->sentinels.begin(),
                                     RedisAddress{"127.0.0.1", liar.port()});
  const auto store = make_redis_store(options);
  CHECK_FALSE(Bucket(*store, quota).error("alice"));

  options.sentinel->sentinels = {{"127.0.0.1", liar.port()}};
  const auto misled = make_redis_store(options);
  const Bucket other(*misled, quota);
  CHECK(eventually([&] { return other.error("alice", 300ms) == Errc::read_only; }));
  CHECK(misled->stats().last_failure->cause.find("not master") != std::string::npos);
}

TEST_CASE("users with the documented rights can do everything behind Sentinels",
          "[redis][sentinel]") {
  Limited it;
  it.grant_servers(of_servers);
  {
    it.grant_sentinels(without(of_sentinels, "+sentinel|get-master-addr-by-name"));
    const auto store = make_redis_store(it.options());
    CHECK(Bucket(*store, quota).error("a", 300ms) == Errc::not_connected);
    REQUIRE(eventually([&] { return store->stats().last_failure.has_value(); }));
    const auto last = store->stats().last_failure;
    CHECK(last->step == RedisStep::discover);
    CHECK(last->cause.find("NOPERM") == 0);
  }
  {
    it.grant_sentinels(of_sentinels);
    RedisOptions options = it.options();
    options.sentinel->password = Secret("canary");  // that of servers is another
    const auto store = make_redis_store(options);
    CHECK(Bucket(*store, quota).error("a", 300ms) == Errc::not_connected);
    REQUIRE(eventually([&] { return store->stats().last_failure.has_value(); }));
    CHECK(store->stats().last_failure->text().find("canary") == std::string::npos);
  }
  // Without one of these a failover is followed as well: the old master sends its clients away.
  for (const char* missing : {"+subscribe", "&+switch-master", "+sentinel|master"}) {
    CAPTURE(missing);
    const bool hears = missing == std::string("+sentinel|master");
    it.group.sentinel_client(0)({"ACL", "LOG", "RESET"});
    it.grant_sentinels(without(of_sentinels, missing));
    const auto store = make_redis_store(it.options());
    const Bucket bucket(*store, quota);
    REQUIRE_FALSE(bucket.error("a"));
    if (!hears) {
      REQUIRE(eventually([&] {
        return !it.group.sentinel_client(0)({"ACL", "LOG"}).elements.empty();
      }));
      CHECK_FALSE(is_watched(it.group));
    }
    CHECK((!hears || store->stats().failed_attempts == 0));
    it.group.fail_over();
    CHECK(eventually([&] { return !bucket.error("a", 1s) && store->stats().connections > 1; }));
    it.group.await_ok();
  }
  it.grant_sentinels(of_sentinels);
  ask_all_rows(it.options(), "users with the documented rights can do everything behind Sentinels");
  const auto store = make_redis_store(it.options());
  const Bucket bucket(*store, quota);
  REQUIRE_FALSE(bucket.error("a"));
  REQUIRE(eventually([&] { return is_watched(it.group); }));
  CHECK(store->stats().failed_attempts == 0);
  it.leave_to_the_others();
  CHECK(eventually([&] { return !bucket.error("a", 1s) && store->stats().connections > 1; }));
}

TEST_CASE("without +sentinel|sentinels, no other Sentinel is known", "[redis][sentinel]") {
  Limited it;
  it.grant_servers(of_servers);
  it.grant_sentinels(without(of_sentinels, "+sentinel|sentinels"));
  const auto store = make_redis_store(it.options());
  const Bucket bucket(*store, quota);
  REQUIRE_FALSE(bucket.error("a"));
  it.leave_to_the_others();
  CHECK(eventually([&] { return bucket.error("a", 300ms) == Errc::read_only; }));
}

TEST_CASE("a server that does not answer HELLO is asked for its role", "[redis][sentinel]") {
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
