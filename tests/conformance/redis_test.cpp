// The conformance suite on the Redis store and a real server, over both kinds of socket and TLS,
// behind Sentinels, and on a cluster.
// Threading: the suite's.
#include "sluice/redis/redis_store.hpp"
#include "tests/conformance/check.hpp"
#include "tests/support/redis_client.hpp"
#include "tests/support/redis_cluster.hpp"
#include "tests/support/redis_sentinels.hpp"
#include "tests/support/redis_server.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

// A loaded machine must not fail a test about decisions.
constexpr Span patient = std::chrono::seconds{30};

void check_options(RedisOptions options, double share = 1) {
  options.call_timeout = patient;
  options.stall_timeout = patient;
  const auto store = make_redis_store(options);
  check_store(*store, nullptr, share);
}

void check_server(const RedisServer& server, RedisOptions options) {
  options.port = server.port();
  check_options(std::move(options));
}

std::vector<RedisAddress> addresses(const std::vector<std::uint16_t>& ports) {
  std::vector<RedisAddress> result;
  for (const std::uint16_t port : ports) result.push_back({"127.0.0.1", port});
  return result;
}

}  // namespace

TEST_CASE("the Redis store keeps every promise of a store over a unix socket",
          "[conformance][redis][C-001][C-003][C-005][C-020][C-021][C-022][C-024][C-025][C-027]") {
  if (redis_left_out()) return;
  const RedisServer server;
  check_server(server, {.unix_socket = server.unix_socket()});
}

TEST_CASE("the Redis store keeps every promise of a store over TCP",
          "[conformance][redis][C-001][C-003][C-005][C-020][C-021][C-022][C-024][C-025][C-027]") {
  if (redis_left_out()) return;
  const RedisServer server;
  check_server(server, {.key_prefix = "app:"});
}

TEST_CASE("the Redis store keeps every promise of a store by functions", "[conformance][redis]") {
  if (redis_left_out()) return;
  const RedisServer server;
  check_options({.unix_socket = server.unix_socket(), .scripts = RedisScripts::functions}, 0.2);
}

TEST_CASE("the Redis store keeps every promise of a store on a cluster", "[conformance][redis]") {
  if (redis_left_out()) return;
  RedisCluster cluster;
  RedisOptions options;
  options.cluster = addresses(cluster.ports());
  SECTION("by scripts") { check_options(options, 0.2); }
  SECTION("by functions") {
    options.scripts = RedisScripts::functions;
    check_options(options, 0.05);
  }
}

TEST_CASE("the Redis store keeps every promise of a store behind Sentinels",
          "[conformance][redis]") {
  if (redis_left_out()) return;
  RedisSentinels group;
  RedisOptions options;
  options.sentinel =
      RedisSentinel{.master = RedisSentinels::group, .sentinels = addresses(group.ports())};
  check_options(options, 0.2);
}

#ifdef SLUICE_TEST_TLS
TEST_CASE("the Redis store keeps every promise of a store over TLS", "[conformance][redis]") {
  if (redis_left_out()) return;
  const Certificates files;
  RedisOptions options;
  options.tls = RedisTls{.ca_file = files.file("ca.pem")};
  SECTION("on one server") {
    const RedisServer server;
    options.port = listen_for_tls(server, files, "server.pem", {"tls-auth-clients", "no"});
    check_options(options, 0.2);
  }
  SECTION("on a cluster") {
    RedisCluster cluster({.tls = &files});
    options.cluster = addresses(cluster.ports());
    check_options(options, 0.05);
  }
}
#endif

TEST_CASE("the Redis store keeps every promise of a store while its server's clock is moved",
          "[conformance][redis][C-001][C-003][C-005][C-020][C-021][C-022][C-024][C-025][C-027]") {
  for_each_store([](Store& store, VirtualClock& clock) { check_store(store, &clock, 0.2); },
                 Stores::redis);
}

TEST_CASE("every key that the Redis store wrote has a time to live",
          "[conformance][redis][C-032]") {
  if (redis_left_out()) return;
  const RedisServer server;
  check_server(server, {.unix_socket = server.unix_socket()});
  RedisClient client(server.unix_socket());
  std::size_t keys = 0;
  std::string cursor = "0";
  do {
    const RedisReply page = client({"SCAN", cursor, "COUNT", "1000"});
    cursor = page.elements.at(0).text;
    for (const RedisReply& key : page.elements.at(1).elements) client.append({"PTTL", key.text});
    for (std::size_t i = 0; i < page.elements.at(1).elements.size(); ++i, ++keys) {
      CHECK(client.read().integer != -1);  // -2: it has just expired; 0: it is about to
    }
  } while (cursor != "0");
  CHECK(keys > 0);
}
