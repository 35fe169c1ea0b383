// Stores that reach a real server, a cluster or Sentinels by TLS: what is verified, what is told
// when it fails, logins, and full sockets. Threading: stated per test.
#include <fstream>
#include <vector>

#include "sluice/extend/subscription.hpp"
#include "sluice/redis/redis_url.hpp"
#include "tests/catch.hpp"
#include "tests/redis/events.hpp"
#include "tests/redis/fake/server.hpp"
#include "tests/redis/real/real.hpp"
#include "tests/redis/traffic.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/redis_cluster.hpp"
#include "tests/support/redis_sentinels.hpp"

using namespace sluice::test;
using namespace sluice;

namespace {

const Quota quota = Quota::per(1, 30min).burst(1000);

struct TlsServer {
  explicit TlsServer(const std::string& certificate = "server.pem",
                     const std::vector<std::string>& settings = {"tls-auth-clients", "no"})
      : port(listen_for_tls(server, files, certificate, settings)) {}

  [[nodiscard]] RedisOptions options() const {
    RedisOptions options = tcp_options(server);
    options.port = port;
    options.tls = RedisTls{.ca_file = files.file("ca.pem")};
    return options;
  }

  Certificates files;
  RedisServer server;
  std::uint16_t port;
};

std::error_code ask(const RedisOptions& options, Span within = 20s) {
  const auto store = make_redis_store(options);
  return Bucket(*store, quota).error("key0", within);
}

/// Waits for an attempt that failed in `step` for a cause that holds `cause`; the call, too, ends
/// with what it means.
void check_refused(const RedisOptions& options, const std::string& cause,
                   RedisStep step = RedisStep::tls, Errc code = Errc::tls_failed) {
  CAPTURE(cause);
  const auto store = make_redis_store(options);
  std::string last;
  const bool seen = eventually([&] {
    const auto failure = store->stats().last_failure;
    if (failure) last = failure->text();
    return failure && failure->step == step && failure->cause.find(cause) != std::string::npos;
  });
  CAPTURE(last);
  REQUIRE(seen);
  CHECK(Bucket(*store, quota).error("a", 20ms) == code);
  CHECK(store->stats().calls == 1);
}

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

/// No attempt got further than the handshake, and each says why.
void check_fleet_refused(RedisOptions options, const std::string& cause, Errc code) {
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

TEST_CASE("a store decides by TLS, and the certificate must be the server's", "[redis][tls]") {
  const TlsServer server;
  RedisOptions options = server.options();
  CHECK_FALSE(ask(options));
  options.tls->server_name = "redis.test";
  CHECK_FALSE(ask(options));
  options.tls->server_name = "other.test";
  check_refused(options, "the certificate is refused: hostname mismatch");
  options.tls->server_name = "127.0.0.2";
  check_refused(options, "the certificate is refused: IP address mismatch");
  options.tls->verify = TlsVerify::chain;
  CHECK_FALSE(ask(options));
  options.tls->ca_file = server.files.file("other_ca.pem");
  check_refused(options, "the certificate is refused: self");
  options.tls->ca_file.clear();  // the system's
  check_refused(options, "the certificate is refused: self");
  options.tls->verify = TlsVerify::none;
  CHECK_FALSE(ask(options));
  options.tls->ca_file = "/nowhere.pem";
  options.tls->verify = TlsVerify::full;
  check_refused(options, "ca_file /nowhere.pem: No such file or directory");
}

TEST_CASE("an expired certificate is refused", "[redis][tls]") {
  const TlsServer server("expired.pem");
  check_refused(server.options(), "the certificate is refused: certificate has expired");
}

TEST_CASE("a server that asks for a client's certificate gets it", "[redis][tls]") {
  const TlsServer server("server.pem", {"tls-auth-clients", "yes"});
  RedisOptions options = server.options();
  check_refused(options, "certificate required", RedisStep::login);
  options.tls->certificate_file = server.files.file("client.pem");
  options.tls->key_file = server.files.file("client.key");
  CHECK_FALSE(ask(options));
}

TEST_CASE("a plain server and a plain store are told apart, and no password is sent",
          "[redis][tls]") {
  const TlsServer server;
  RedisOptions options = server.options();
  options.password = "c4n4ry";
  {
    const FakeServer plain([&](Peer& peer, int) {
      peer.send("-ERR unknown command\r\n");
      peer.wait_for_close();
    });
    options.port = plain.port();
    check_refused(options, "the server does not speak TLS");
  }
  // Redis waits for the end of a line, which never comes.
  options.port = server.server.port();
  options.connect_timeout = 100ms;
  check_refused(options, "no answer within 100 ms");
  CHECK(server.server.log().find("c4n4ry") == std::string::npos);
  options.tls.reset();
  options.password = {};
  options.port = server.port;
  options.connect_timeout = 20s;
  check_refused(options, "", RedisStep::login, Errc::not_connected);  // "reset by peer"
}

TEST_CASE("credentials are asked for at each login", "[redis][tls]") {
  TlsServer server;
  RedisClient admin(server.server.unix_socket());
  admin({"ACL", "SETUSER", "app", "on", ">first-c4n4ry", "~*", "&*", "+@all"});
  std::atomic<int> asked{0};
  std::atomic<bool> throws{false};
  RedisOptions options = server.options();
  options.credentials = [&]() -> RedisCredentials {
    if (throws) throw std::runtime_error("c4n4ry");
    return {"app", ++asked == 1 ? "first-c4n4ry" : "second-c4n4ry"};
  };
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  CHECK_FALSE(bucket.error("a", 20s));
  CHECK(asked == 1);
  admin({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  CHECK(eventually([&] { return bucket.error("a", 100ms) == Errc::wrong_password; }));
  CHECK(store->stats().last_failure->text().find("c4n4ry") == std::string::npos);
  admin({"ACL", "SETUSER", "app", ">second-c4n4ry"});
  CHECK(eventually([&] { return !bucket.error("a", 100ms); }));
  throws = true;
  admin({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  CHECK(eventually([&] {
    const auto failure = store->stats().last_failure;
    return failure && failure->cause == "RedisOptions::credentials threw an exception";
  }));
}

TEST_CASE("what a full socket does not take by TLS follows there, or on the next connection",
          "[redis][tls]") {
  const bool ends = GENERATE(false, true);
  TlsServer server;
  RedisOptions options = server.options();
  if (ends) options.stall_timeout = 2s;
  options.max_in_flight = 100'000;
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  REQUIRE_FALSE(bucket.error("a", 20s));
  server.server.suspend();
  Crowd crowd(40'000);
  for (std::size_t i = 0; i < crowd.size(); ++i) bucket.ask(crowd[i], "a", 1h);
  if (ends) REQUIRE(eventually([&] { return store->stats().unknown > 0; }));
  server.server.resume();
  CHECK(crowd.wait());
  const std::size_t decided = crowd.count([](const Asked& call) { return !call.error; });
  CHECK((ends ? decided > 0 : decided == crowd.size()));
  CHECK(store->stats().connections == (ends ? 2 : 1));
  CHECK(store->stats().failed_attempts == 0);
}

TEST_CASE("wake-ups travel by TLS", "[redis][tls]") {
  const TlsServer server;
  const auto store = make_redis_store(server.options());
  std::atomic<int> seen{0};
  const Key key("tag", "name");
  const auto watch = store->subscribe(key, [&] { ++seen; });
  CHECK(eventually([&] { return store->stats().subscriptions == 1; }));
  CHECK(eventually([&] {
    store->notify(key);
    return seen > 0;
  }));
}

TEST_CASE("a certificate that was replaced is used from the next connection on", "[redis][tls]") {
  const TlsServer server;
  RedisOptions options = server.options();
  const std::string copy = server.files.file("copy.pem");
  const auto use = [&](const std::string& name) {
    std::ofstream(copy) << std::ifstream(server.files.file(name)).rdbuf();
  };
  use("other_ca.pem");
  options.tls->ca_file = copy;
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  CHECK(eventually([&] { return bucket.error("a", 100ms) == Errc::tls_failed; }));
  use("ca.pem");
  CHECK(eventually([&] { return !bucket.error("a", 100ms); }));
}

TEST_CASE("every node of a cluster is verified under its own host", "[redis][tls][cluster]") {
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
  check_fleet_refused(options, "hostname mismatch", Errc::tls_failed);
  options.tls->server_name.clear();
  // The certificate is for 127.0.0.1, and not for this name of it.
  for (RedisAddress& node : options.cluster) node.host = "localhost";
  check_fleet_refused(options, "hostname mismatch", Errc::tls_failed);
  options.cluster.push_back({"127.0.0.1", cluster.port(1)});
  CHECK_FALSE(ask(options));
  options.tls->ca_file = files.file("other_ca.pem");
  check_fleet_refused(options, "the certificate is refused: self", Errc::tls_failed);
}

TEST_CASE("a user and a password in the URL are used at each node", "[redis][tls][cluster]") {
  const Certificates files;
  RedisCluster cluster({.password = "c4n4ry", .tls = &files});
  CHECK_FALSE(ask(cluster_options(cluster, files, ":c4n4ry@")));
  CHECK(ask(cluster_options(cluster, files, ":wrong-c4n4ry@"), 3s) == Errc::wrong_password);
  CHECK(ask(cluster_options(cluster, files), 3s) == Errc::no_auth);
}

TEST_CASE("Sentinels and servers are verified, each under its own host", "[redis][tls][sentinel]") {
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
  check_fleet_refused(other, "hostname mismatch", Errc::tls_failed);

  other = options;
  other.sentinel->tls->server_name = "redis.test";
  CHECK_FALSE(ask(other));
  other.sentinel->tls->server_name = "other.test";
  check_fleet_refused(other, "hostname mismatch", Errc::not_connected);

  // The Sentinels are reached under their name, and name the server by its address.
  other = options;
  for (RedisAddress& sentinel : other.sentinel->sentinels) sentinel.host = "localhost";
  check_fleet_refused(other, "hostname mismatch", Errc::not_connected);
  other.sentinel->tls->server_name = "127.0.0.1";
  CHECK_FALSE(ask(other));
}
