// A name with a replica and a master behind it, and what real servers say at login. Threading: the
// test's thread.
#include <boost/asio/local/stream_protocol.hpp>

#include "backends/redis/client.hpp"
#include "tests/catch.hpp"
#include "tests/redis/events.hpp"
#include "tests/redis/protocol/pipeline_world.hpp"
#include "tests/redis/real/real.hpp"

using namespace sluice;
using namespace sluice::test;
using redis_detail::Client;
using redis_detail::Found;

namespace {

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

const Quota quota = Quota::per_hour(10);

/// What an attempt that fails is told as.
std::string failure_with(const RedisOptions& options) {
  const auto store = make_redis_store(options);
  REQUIRE(eventually([&] { return store->stats().failed_attempts > 0; }));
  return store->stats().last_failure->text();
}

}  // namespace

TEST_CASE("behind a name with a replica and a master the master decides, also after a failover",
          "[redis][endpoints]") {
  if (redis_left_out()) return;
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

TEST_CASE("functions on a replica without the library lead to the master, which is given it",
          "[redis][endpoints][functions]") {
  if (redis_left_out()) return;
  Pair pair;
  RedisOptions options;
  options.scripts = RedisScripts::functions;
  const auto client = pair.client(options);
  CHECK(eventually([&] { return decides(*client); }));
  CHECK(client->stats().scripts_loaded == 1);
  CHECK(client->stats().connections == 2);
  for (int i = 0; i < 20; ++i) CHECK(decides(*client));
  client->stop();
}

TEST_CASE("what real servers say at login is told", "[redis][reason]") {
  if (redis_left_out()) return;
  const RedisServer server;
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
  if (redis_left_out()) return;
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
