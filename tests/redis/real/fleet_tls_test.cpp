// TLS and logins on a real cluster and behind real Sentinels. Threading: the test's thread.
#include "sluice/extend/subscription.hpp"
#include "sluice/redis/redis_url.hpp"
#include "tests/catch.hpp"
#include "tests/redis/events.hpp"
#include "tests/redis/real/real.hpp"
#include "tests/redis/traffic.hpp"
#include "tests/support/redis_cluster.hpp"
#include "tests/support/redis_sentinels.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const Quota quota = Quota::per(1, 30min).burst(1000);

/// "127.0.0.1:1,127.0.0.1:2"
std::string hosts(const std::vector<std::uint16_t>& ports) {
  std::string text;
  for (const std::uint16_t port : ports) {
    text += (text.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(port);
  }
  return text;
}

RedisOptions patient(RedisOptions options) {
  options.call_timeout = 20s;
  options.connect_timeout = 5s;
  options.stall_timeout = 5s;
  return options;
}

RedisOptions cluster_options(const RedisCluster& cluster, const Certificates& files,
                             const std::string& login = "") {
  return patient(parse_redis_url("rediss+cluster://" + login + hosts(cluster.ports()) +
                                 "?ca_file=" + files.file("ca.pem")));
}

RedisOptions sentinel_options(const RedisSentinels& group, const Certificates& files) {
  return patient(parse_redis_url("rediss+sentinel://" + hosts(group.ports()) + "/" +
                                 RedisSentinels::group + "?ca_file=" + files.file("ca.pem")));
}

std::error_code ask(const RedisOptions& options, Span within = 20s) {
  const auto store = make_redis_store(options);
  return Bucket(*store, quota).error("key0", within);
}

/// No attempt got further than the handshake, and each says why.
void check_refused(RedisOptions options, const std::string& cause, Errc code) {
  CAPTURE(cause);
  Events events;
  options.on_event = events.listener();
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  CHECK(eventually(
      [&] { return events.count(RedisEvent::Kind::failed, RedisStep::tls, cause) > 0; }));
  CHECK(bucket.error("key0", 2s) == code);
  CHECK(store->stats().connections == 0);
}

}  // namespace

TEST_CASE("every node of a cluster is verified under its own host", "[redis][tls][cluster]") {
  if (redis_left_out()) return;
  const Certificates files;
  RedisCluster cluster({.tls = &files});
  RedisOptions options = cluster_options(cluster, files);
  {
    const auto store = make_redis_store(options);
    const Bucket bucket(*store, quota);
    for (const std::string& key : numbered_keys(40)) CHECK_FALSE(bucket.error(key));
    CHECK(store->stats().connections == 3);
    CHECK(store->stats().failed_attempts == 0);
    const unsigned slot = cluster_slot("key0");
    const std::size_t from = cluster.master_of(slot);
    const std::size_t replica = cluster.replicas_of(from).at(0);
    cluster.failover(replica);
    CHECK_FALSE(bucket.error("key0"));
    CHECK((*bucket).peek("key0").remaining == 998);
  }
  options.tls->server_name = "redis.test";
  CHECK_FALSE(ask(options));
  options.tls->server_name = "other.test";
  check_refused(options, "hostname mismatch", Errc::tls_failed);
  options.tls->server_name.clear();
  // The certificate is for 127.0.0.1, and not for this name of it.
  for (RedisAddress& node : options.cluster) node.host = "localhost";
  check_refused(options, "hostname mismatch", Errc::tls_failed);
  options.cluster.push_back({"127.0.0.1", cluster.port(1)});
  CHECK_FALSE(ask(options));
  options.tls->ca_file = files.file("other_ca.pem");
  check_refused(options, "the certificate is refused: self", Errc::tls_failed);
}

TEST_CASE("wake-ups in a cluster travel by TLS", "[redis][tls][cluster]") {
  if (redis_left_out()) return;
  const Certificates files;
  RedisCluster cluster({.tls = &files});
  const auto store = make_redis_store(cluster_options(cluster, files));
  std::atomic<int> heard{0};
  const Key key("key0", "jobs");
  const auto watch = store->subscribe(key, [&] { ++heard; });
  REQUIRE(eventually([&] { return store->stats().subscriptions > 0; }));
  CHECK_FALSE(Bucket(*store, quota).error("key0"));
  store->notify(key);
  CHECK(eventually([&] { return heard > 0; }));
}

TEST_CASE("credentials are asked for at the login at each node", "[redis][tls][cluster]") {
  if (redis_left_out()) return;
  const Certificates files;
  RedisCluster cluster({.tls = &files});
  const auto set_password = [&](std::string_view password) {
    for (std::size_t node = 0; node < RedisCluster::size; ++node) {
      const std::string rule = ">" + std::string(password);
      RedisClient admin = cluster.client(node);
      REQUIRE(admin({"ACL", "SETUSER", "app", "on", "resetpass", rule, "~*", "&*", "+@all"}).text ==
              "OK");
    }
  };
  std::atomic<bool> is_second{false};
  std::atomic<int> asked{0};
  RedisOptions options = cluster_options(cluster, files);
  options.credentials = [&]() -> RedisCredentials {
    ++asked;
    return {"app", is_second ? "second-c4n4ry" : "first-c4n4ry"};
  };
  set_password("first-c4n4ry");
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  const auto keys = numbered_keys(40);
  CHECK_FALSE(bucket.error(keys[0]));
  const std::size_t first = cluster.master_of(cluster_slot(keys[0]));
  const auto connections = store->stats().connections;
  set_password("second-c4n4ry");
  is_second = true;
  const int before = asked;
  for (const std::string& key : keys) {
    CAPTURE(key, first);
    CHECK_FALSE(bucket.error(key));  // those of the first node stay logged in
  }
  const auto more = store->stats().connections - connections;
  CHECK(more >= 1);
  CHECK(asked >= before + static_cast<int>(more));
}

TEST_CASE("a user and a password in the URL are used at each node", "[redis][tls][cluster]") {
  if (redis_left_out()) return;
  const Certificates files;
  RedisCluster cluster({.password = "c4n4ry", .tls = &files});
  CHECK_FALSE(ask(cluster_options(cluster, files, ":c4n4ry@")));
  CHECK(ask(cluster_options(cluster, files, ":wrong-c4n4ry@"), 3s) == Errc::wrong_password);
  CHECK(ask(cluster_options(cluster, files), 3s) == Errc::no_auth);
}

TEST_CASE("Sentinels and servers are verified, each under its own host", "[redis][tls][sentinel]") {
  if (redis_left_out()) return;
  const Certificates files;
  RedisSentinels group({.tls = &files});
  const RedisOptions options = sentinel_options(group, files);
  {
    const auto store = make_redis_store(options);
    const Bucket bucket(*store, quota);
    REQUIRE_FALSE(bucket.error("key0"));
    CHECK(store->stats().failed_attempts == 0);
    group.fail_over();
    CHECK(eventually([&] { return !bucket.error("key0", 1s) && store->stats().connections > 1; }));
  }
  RedisOptions other = options;
  other.tls->server_name = "redis.test";
  CHECK_FALSE(ask(other));
  other.tls->server_name = "other.test";
  check_refused(other, "hostname mismatch", Errc::tls_failed);

  other = options;
  other.sentinel->tls->server_name = "redis.test";
  CHECK_FALSE(ask(other));
  other.sentinel->tls->server_name = "other.test";
  check_refused(other, "hostname mismatch", Errc::not_connected);

  // The Sentinels are reached under their name, and name the server by its address.
  other = options;
  for (RedisAddress& sentinel : other.sentinel->sentinels) sentinel.host = "localhost";
  check_refused(other, "hostname mismatch", Errc::not_connected);
  other.sentinel->tls->server_name = "127.0.0.1";
  CHECK_FALSE(ask(other));
}
