// The program with a cluster, with Sentinels and with a server that has a password.
#include <set>

#include "backends/redis/connection/tls_session.hpp"
#include "sluice/redis/redis_url.hpp"
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/redis_cluster.hpp"
#include "tests/support/redis_sentinels.hpp"
#include "tests/tool/program.hpp"

namespace sluice::test {
namespace {

/// Uses a limit for each of these users, and looks for all of them.
void check_all_seen(const std::string& url) {
  const auto store = make_redis_store(parse_redis_url(url));
  const TokenBucket bucket(*store, "api", Quota::per_day(5));
  std::set<std::string> keys;
  for (int i = 0; i < 50; ++i) {
    const std::string user = "user" + std::to_string(i);
    REQUIRE(bucket.try_acquire(user, 2).allowed);
    keys.insert("{" + user + "}:api:5/day");
  }
  const Ran listed = sluice_tool(url, "keys --json");
  INFO(listed.output);
  for (const auto& line : json_lines(listed.output)) {
    if (line.contains("key")) CHECK(keys.erase(line["key"]) == 1);
  }
  CHECK(keys.empty());
  for (int i = 0; i < 8; ++i) {
    const std::string key = "'{user" + std::to_string(i) + "}:api:5/day'";
    CHECK(json_lines(sluice_tool(url, "show --json " + key).output).at(0)["used"] == 2);
    CHECK(sluice_tool(url, "reset --yes " + key).code == 0);
    CHECK(sluice_tool(url, "show " + key).code == 2);
  }
}

TEST_CASE("a cluster is scanned on all of its masters", "[redis]") {
  if (redis_left_out()) return;
  const RedisCluster cluster;
  const std::string url =
      "redis+cluster://127.0.0.1:1,127.0.0.1:" + std::to_string(cluster.port(0));
  check_all_seen(url);
  // The first and the last slot of each master.
  const auto store = make_redis_store(parse_redis_url(url));
  const TokenBucket bucket(*store, "edge", Quota::per_day(5));
  std::set<unsigned> edges;
  for (std::size_t node = 0; node < RedisCluster::size; ++node) {
    const std::vector<unsigned> slots = cluster.slots_of(node);
    if (!slots.empty()) edges.insert({slots.front(), slots.back()});
  }
  CHECK(edges.size() == 6);
  for (int i = 0; !edges.empty(); ++i) {
    const std::string tag = "tag" + std::to_string(i);
    if (edges.erase(cluster_slot("{" + tag + "}")) == 0) continue;
    REQUIRE(bucket.try_acquire(tag).allowed);
    CHECK(sluice_tool(url, "show '{" + tag + "}:edge:5/day'").code == 0);
  }
  const Ran ran = sluice_tool(url, "doctor --json");
  INFO(ran.output);
  CHECK(json_lines(ran.output).size() >= 3);
}

TEST_CASE("Sentinels name the server", "[redis]") {
  if (redis_left_out()) return;
  const RedisSentinels sentinels;
  std::string url = "redis+sentinel://127.0.0.1:1";
  for (const std::uint16_t port : sentinels.ports()) url += ",127.0.0.1:" + std::to_string(port);
  check_all_seen(url + "/mymaster");
  CHECK(sluice_tool(url + "/another", "keys").code == 3);
}

TEST_CASE("TLS is that of the store", "[redis]") {
  if (redis_left_out()) return;
  if (!redis_detail::has_tls()) return;
  RedisServer server;
  const Certificates certificates;
  const std::string url =
      "rediss://127.0.0.1:" + std::to_string(listen_for_tls(server, certificates, "server.pem",
                                                            {"tls-auth-clients", "no"}));
  const std::string trusting = url + "/0?ca_file=" + certificates.file("ca.pem");
  check_all_seen(trusting);
  CHECK_THAT(sluice_tool(trusting, "doctor").output, contains_text(", TLS"));
  const Ran refused = sluice_tool(url, "doctor");
  CHECK(refused.code == 3);
  CHECK_THAT(refused.output, contains_text("the certificate is refused"));
}

TEST_CASE("a change does not print the password", "[redis]") {
  if (redis_left_out()) return;
  RedisServer server({.password = "hunter2hunter2"});
  const std::string url =
      "redis://:hunter2hunter2@127.0.0.1:" + std::to_string(server.port()) + "/0";
  const auto store = make_redis_store(parse_redis_url(url));
  REQUIRE(TokenBucket(*store, "api", Quota::per_day(5)).try_acquire("a").allowed);
  for (const char* const words : {"reset '{a}:api:5/day' </dev/null", "reset '{a}:api:5/day' --yes",
                                  "close '{a}:b=c' --for 1s --yes", "doctor"}) {
    const Ran ran = sluice_tool(url, words);
    INFO(ran.output);
    CHECK_THAT(ran.output, contains_text("127.0.0.1:"));
    CHECK(ran.output.find("hunter") == std::string::npos);
  }
}

}  // namespace
}  // namespace sluice::test
