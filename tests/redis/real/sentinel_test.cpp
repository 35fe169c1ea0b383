// The store behind real Sentinels: it serves from the master that they name.
// Threading: as each test says.
#include "tests/catch.hpp"
#include "tests/redis/events.hpp"
#include "tests/redis/fake/server.hpp"
#include "tests/redis/real/real.hpp"
#include "tests/redis/traffic.hpp"
#include "tests/support/redis_sentinels.hpp"

using namespace sluice;
using namespace sluice::test;

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

bool all_name(RedisSentinels& group, std::size_t server) {
  for (std::size_t i = 0; i < RedisSentinels::size; ++i) {
    RedisClient client = group.sentinel_client(i);
    const RedisReply reply = client({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", RedisSentinels::group});
    if (reply.elements.at(1).text != std::to_string(group.server(server).port())) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("the master that Sentinels name decides, before and after failovers",
          "[redis][sentinel]") {
  if (redis_left_out()) return;
  RedisSentinels group;
  Events events;
  RedisOptions options = options_for(group);
  options.on_event = events.listener();
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  REQUIRE_FALSE(bucket.error("alice"));
  CHECK(events.all().back().address == "127.0.0.1:" + std::to_string(group.master_port()));

  SECTION("a failover on request") {
    group.fail_over();
    CHECK(eventually([&] { return count(events, RedisEvent::Kind::switched) > 0; }));
    REQUIRE(eventually([&] {
      const std::string master = "127.0.0.1:" + std::to_string(group.master_port());
      return !bucket.error("alice") && events.all().back().address == master;
    }));
  }
  SECTION("a killed master, which comes back as one and is not believed") {
    const std::size_t old = group.kill_master();
    CHECK(eventually([&] { return !bucket.error("alice", 20s); }));
    const std::size_t now = group.await_new_master(old);
    // One that has not heard of the failover yet names the old one for a second or two.
    REQUIRE(eventually([&] { return all_name(group, now); }));
    group.restart(old);
    CHECK(eventually([&] { return !bucket.error("alice", 20s); }));
    const auto fresh = make_redis_store(options_for(group));
    const Bucket other(*fresh, quota);
    CHECK_FALSE(other.error("bob", 20s));
    const std::string old_address = "127.0.0.1:" + std::to_string(group.server(old).port());
    for (const RedisNodeStats& node : fresh->stats().nodes) CHECK(node.address != old_address);
  }
}

TEST_CASE("Sentinels that are down, wrong or unknown to the configuration", "[redis][sentinel]") {
  if (redis_left_out()) return;
  RedisSentinels group;
  const std::uint16_t closed = FakeServer([](Peer&, int) {}).port();

  SECTION("one of two is there, the others are learnt from it") {
    RedisOptions options = options_for(group);
    options.sentinel->sentinels = {{"127.0.0.1", closed}, {"127.0.0.1", group.ports()[0]}};
    Events events;
    options.on_event = events.listener();
    const auto store = make_redis_store(options);
    const Bucket bucket(*store, quota);
    REQUIRE_FALSE(bucket.error("alice"));
    group.sentinel(0).kill();
    group.fail_over();
    REQUIRE(eventually([&] { return !bucket.error("alice"); }));
    CHECK(eventually([&] { return count(events, RedisEvent::Kind::switched) > 0; }));
  }
  SECTION("a name that no Sentinel knows") {
    RedisOptions options = options_for(group);
    options.sentinel->master = "nobody";
    const auto store = make_redis_store(options);
    const Bucket bucket(*store, quota);
    CHECK(bucket.error("alice", 300ms) == Errc::not_connected);
    REQUIRE(eventually([&] { return store->stats().last_failure.has_value(); }));
    const auto last = store->stats().last_failure;
    CHECK(last->step == RedisStep::discover);
    CHECK(last->cause.find("nobody") != std::string::npos);
  }
  SECTION("one that names a replica is passed over") {
    const std::uint16_t replica = [&] {
      const std::uint16_t master = group.master_port();
      return group.server(0).port() == master ? group.server(1).port() : group.server(0).port();
    }();
    FakeServer liar([&](Peer& peer, int) {
      while (const auto asked = peer.read_behind_login()) {
        const std::string port = std::to_string(replica);
        if (!peer.send("*2\r\n$9\r\n127.0.0.1\r\n$" + std::to_string(port.size()) + "\r\n" + port +
                       "\r\n")) {
          return;
        }
      }
    });
    RedisOptions options = options_for(group);
    options.sentinel->sentinels.insert(options.sentinel->sentinels.begin(),
                                       RedisAddress{"127.0.0.1", liar.port()});
    const auto store = make_redis_store(options);
    const Bucket bucket(*store, quota);
    CHECK_FALSE(bucket.error("alice"));

    options.sentinel->sentinels = {{"127.0.0.1", liar.port()}};
    const auto misled = make_redis_store(options);
    const Bucket other(*misled, quota);
    CHECK(eventually([&] { return other.error("alice", 300ms) == Errc::read_only; }));
    CHECK(misled->stats().last_failure->cause.find("not master") != std::string::npos);
  }
}

TEST_CASE("Sentinels have a login of their own", "[redis][sentinel]") {
  if (redis_left_out()) return;
  RedisSentinels group({.password = "canary-of-servers", .sentinel_password = "canary-of-guards"});
  RedisOptions options = options_for(group);
  options.password = Secret("canary-of-servers");

  options.sentinel->password = Secret("canary-of-guards");
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  CHECK_FALSE(bucket.error("alice"));

  options.sentinel->password = Secret("canary-wrong");
  Events events;
  options.on_event = events.listener();
  const auto stranger = make_redis_store(options);
  const Bucket other(*stranger, quota);
  CHECK(other.error("alice", 300ms) == Errc::not_connected);
  for (const RedisEvent& event : events.all()) {
    CHECK(event.text().find("canary") == std::string::npos);
  }
}
