// The conformance suite on the Redis store and a real server, over both kinds of socket.
// Threading: the suite's.
#include "sluice/redis/redis_store.hpp"
#include "tests/conformance/check.hpp"
#include "tests/support/redis_client.hpp"
#include "tests/support/redis_server.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

// A loaded machine must not fail a test about decisions.
constexpr Span patient = std::chrono::seconds{30};

void check_server(const RedisServer& server, RedisOptions options) {
  options.port = server.port();
  options.call_timeout = patient;
  options.stall_timeout = patient;
  const auto store = make_redis_store(options);
  check_store(*store);
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
  const auto store = make_redis_store({.unix_socket = server.unix_socket(),
                                       .call_timeout = patient,
                                       .stall_timeout = patient,
                                       .scripts = RedisScripts::functions});
  check_store(*store, nullptr, 0.2);
}

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
