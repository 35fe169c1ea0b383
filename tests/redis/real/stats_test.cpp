// What a store tells of its calls and its servers; a name with a replica and a master behind it.
// Threading: the tests'.
#include <boost/asio/local/stream_protocol.hpp>
#include <mutex>

#include "backends/redis/client.hpp"
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/redis/events.hpp"
#include "tests/redis/protocol/pipeline_world.hpp"
#include "tests/redis/real/real.hpp"

using namespace sluice::test;
using namespace sluice;
using redis_detail::Client;
using redis_detail::Found;

namespace {

const Quota quota = Quota::per_second(10).burst(5);

/// Waits for a reply to INFO.
RedisNodeHealth informed(RedisStore& store) {
  RedisNodeHealth node;
  REQUIRE(eventually([&] {
    const RedisHealth health = store.health();
    if (health.nodes.size() != 1 || !health.nodes[0].evicted_keys) return false;
    node = health.nodes[0];
    return health.connected;
  }));
  return node;
}

/// Two servers behind one name, the first a replica of the second.
struct Pair {
  RedisServer first;
  RedisServer second;
  RedisClient first_admin{first.unix_socket()};
  RedisClient second_admin{second.unix_socket()};

  Pair() { follow(first_admin, second); }

  void follow(RedisClient& replica, const RedisServer& master) {
    REQUIRE_FALSE(replica({"REPLICAOF", "127.0.0.1", std::to_string(master.port())}).is_error());
    REQUIRE(eventually([&] { return info(replica, "master_link_status") == "up"; }));
  }

  [[nodiscard]] std::shared_ptr<Client> client(RedisOptions options) const {
    using boost::asio::local::stream_protocol;
    options.host = "pair.test";
    Found found;
    for (const RedisServer* server : {&first, &second}) {
      found.endpoints.emplace_back(stream_protocol::endpoint(server->unix_socket()));
    }
    auto client = std::make_shared<Client>(
        options, 1, [found](const std::string&, std::uint16_t) { return found; });
    client->start();
    return client;
  }
};

bool decides(Client& client) {
  Asked asked;
  CallPtr call = make_call(asked, client.next_nonce(), client.clock().now() + 20s);
  client.submit({&call, 1});
  return !asked.wait().error;
}

/// What an attempt that fails is told as.
std::string failure_with(const RedisOptions& options) {
  const auto store = make_redis_store(options);
  REQUIRE(eventually([&] { return store->stats().failed_attempts > 0; }));
  return store->stats().last_failure->text();
}

}  // namespace

TEST_CASE("each call counts once, by its end", "[redis][stats]") {
  RedisServer server;
  RedisOptions options = tcp_options(server);
  options.max_in_flight = 2;
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  REQUIRE_FALSE(bucket.error("alice"));
  REQUIRE_FALSE(bucket.error("alice"));

  server.suspend();
  Crowd crowd(3);
  for (std::size_t i = 0; i < 3; ++i) bucket.ask(crowd[i], "alice", 100ms);
  RedisStats stats = store->stats();
  CHECK(stats.calls == 5);
  CHECK(stats.decided == 2);
  CHECK(stats.not_executed == 1);
  CHECK(crowd[2].wait().error == Errc::queue_full);
  CHECK(crowd.wait());
  stats = store->stats();
  CHECK(stats.unknown == 2);
  CHECK(stats.in_flight == 0);
  CHECK(stats.reconnects == 0);
  REQUIRE(stats.nodes.size() == 1);
  CHECK(stats.nodes[0].in_flight == 2);
  CHECK(stats.nodes[0].address == "127.0.0.1:" + std::to_string(server.port()));
  CHECK(stats.nodes[0].decided == 2);
  CHECK(stats.nodes[0].unknown == 2);
  CHECK(stats.reply_times.replies >= 2);
  CHECK(stats.reply_times.p50 > Span{0});
  CHECK(stats.reply_times.p99 >= stats.reply_times.p50);

  server.resume();
  REQUIRE(eventually([&] { return store->stats().late_replies == 2; }));
  server.restart();
  REQUIRE_FALSE(bucket.error("alice"));
  CHECK(store->stats().reconnects == 1);
  CHECK(store->stats().nodes[0].connections == 2);
}

TEST_CASE("the health of a server is what it says of itself", "[redis][stats]") {
  RedisServer server({"maxmemory 100mb", "maxmemory-policy allkeys-lru"});
  const auto store = connect_tcp(server);
  const RedisNodeHealth node = informed(*store);
  CHECK(node.connected);
  CHECK(node.role == RedisRole::master);
  CHECK_FALSE(node.version.empty());
  CHECK(node.maxmemory_policy == "allkeys-lru");
  CHECK(node.evicted_keys == 0U);
  server.kill();
  CHECK(eventually([&] { return !store->health().connected; }));
}

TEST_CASE("a user who may not use INFO has calls all the same, and a health without its policy",
          "[redis][stats]") {
  RedisServer server;
  RedisClient admin("127.0.0.1", server.port());
  admin({"ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all", "-info"});
  RedisOptions options = tcp_options(server);
  options.username = "app";
  options.password = Secret("secret");
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  for (int i = 0; i < 3; ++i) {
    const RedisHealth health = store->health();
    CHECK_FALSE(bucket.error("alice"));
    for (const RedisNodeHealth& node : health.nodes) CHECK(node.maxmemory_policy.empty());
  }
  CHECK(store->stats().connections == 1);
  CHECK(store->stats().protocol_errors == 0);
}

TEST_CASE("an observer is told of the connections of a store, and what it throws is ignored",
          "[redis][stats][observe]") {
  struct Told final : Observer {
    void connection_changed(const ConnectionEvent& event) override {
      const std::lock_guard lock(mutex);
      seen.push_back(event.change);
      if (event.store != "redis" || event.server.empty()) seen.push_back({});
      if (event.change == ConnectionEvent::Change::lost)
        has_cause = event.error && !event.cause.empty();
      throw 7;
    }
    [[nodiscard]] auto changes() const {
      const std::lock_guard lock(mutex);
      return seen;
    }
    mutable std::mutex mutex;
    std::vector<ConnectionEvent::Change> seen;
    bool has_cause = false;
  } told;
  RedisServer server;
  RedisOptions options = tcp_options(server);
  options.on_event = observe_connections(told, "redis");
  const auto store = make_redis_store(options);
  CHECK_FALSE(Bucket(*store, quota).error("alice"));
  server.kill();
  REQUIRE(eventually([&] { return told.changes().size() >= 3; }));
  using enum ConnectionEvent::Change;
  const auto changes = told.changes();
  CHECK((changes[0] == connected && changes[1] == lost && changes[2] == failed));
  CHECK(told.has_cause);
}

TEST_CASE("behind a name with a replica and a master the master decides, also after a failover",
          "[redis][endpoints]") {
  Pair pair;
  RedisOptions options;
  options.scripts = GENERATE(RedisScripts::eval, RedisScripts::functions);
  const auto client = pair.client(options);
  CHECK(eventually([&] { return decides(*client); }));
  pair.first_admin({"REPLICAOF", "NO", "ONE"});
  pair.follow(pair.second_admin, pair.first);
  CHECK(eventually([&] { return decides(*client); }));
  CHECK(info(pair.first_admin, "role") == "master");
  client->stop();
}

TEST_CASE_METHOD(SharedServer, "what real servers say at login is told", "[redis][reason]") {
  RedisOptions options = tcp_options(server);
  const std::string address = "127.0.0.1:" + std::to_string(server.port());
  options.database = 99;
  CHECK(failure_with(options) == "SELECT at " + address + ": ERR DB index is out of range");
  options.database = 0;
  options.password = "c4n4ry";
  CHECK(failure_with(options).starts_with("login at " + address +
                                          ": ERR AUTH <password> called without any password"));
  options.username = "nobody";
  CHECK(failure_with(options).starts_with("login at " + address + ": WRONGPASS invalid"));
}

TEST_CASE("a user without any right but to decide is let in, and the server's version is known",
          "[redis][version]") {
  const RedisServer redis;
  const auto valkey = valkey_server();
  for (const RedisServer* server : {&redis, static_cast<const RedisServer*>(valkey.get())}) {
    if (server == nullptr) continue;
    RedisClient admin(server->unix_socket());
    REQUIRE(
        admin({"ACL", "SETUSER", "app", "on", ">secret", "resetkeys", "~*", "-@all", "+evalsha",
               "+eval", "+time", "+get", "+mget", "+psetex", "+setrange", "+getrange", "+pexpire"})
            .text == "OK");
    RedisClient user(server->unix_socket());
    REQUIRE(user({"AUTH", "app", "secret"}).text == "OK");
    CHECK(user({"INFO", "server"}).text.starts_with("NOPERM"));
    const RedisReply hello = user({"HELLO", "2"});
    REQUIRE(hello.elements.size() >= 4);
    CHECK(hello.elements[2].text == "version");
    CHECK(hello.elements[3].text >= "7.0");
    RedisOptions options = socket_options(*server);
    options.username = "app";
    options.password = "secret";
    const auto store = make_redis_store(options);
    CHECK_FALSE(Bucket(*store, quota).error("a"));
  }
}
