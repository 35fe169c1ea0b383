// From the options to a connection, and what a real server says when it does not want to: each word
// is provoked, typed, and provably nothing was charged. Threading: the test's thread asks; a second
// client disturbs.
#include <filesystem>
#include <functional>

#include "tests/catch.hpp"
#include "tests/redis/real/real.hpp"

using namespace sluice::test;
using namespace sluice;

namespace {

const Quota quota = Quota::per_hour(10);
const std::string canary = "c4n4ry-p4ssw0rd";

std::error_code error_with(const RedisOptions& options, Span within = std::chrono::seconds{10}) {
  const auto store = make_redis_store(options);
  return Bucket(*store, quota).error("a", within);
}

using Provoke = std::function<void(RedisClient& admin)>;

Provoke setting(const char* name, const char* value) {
  return [=](RedisClient& admin) { admin({"CONFIG", "SET", name, value}); };
}
Provoke replica_of(const char* host, const char* port) {
  return [=](RedisClient& admin) { admin({"REPLICAOF", host, port}); };
}

/// The word is met while `provoke` holds, and nothing is charged, until `heal` brings the server
/// back. Who asks for longer is decided then if the word passes, and else told at once.
void check_word(const RedisServer& server, Errc code, bool passes, const Provoke& provoke,
                const Provoke& heal) {
  const auto store = connect_socket(server);
  const Bucket bucket(*store, quota);
  CHECK_FALSE(bucket.error("a"));
  RedisClient admin(server.unix_socket());
  provoke(admin);
  Asked patient;
  bucket.ask(patient, "b", 20s);
  if (!passes) CHECK(patient.wait().error == code);
  CHECK(eventually([&] { return bucket.error("a", 150ms) == code; }));
  CHECK(make_error_code(code) == Failure::not_executed);
  CHECK(patient.answers == (passes ? 0 : 1));
  heal(admin);
  if (passes) CHECK_FALSE(patient.wait().error);
  REQUIRE(eventually([&] { return !bucket.error("c"); }));
  CHECK((*bucket).peek("a").remaining == 9);
  CHECK((*bucket).peek("b").remaining == (passes ? 9 : 10));
}

}  // namespace

TEST_CASE("a password is needed, must be right, and is then accepted", "[redis]") {
  const RedisServer server({"requirepass " + canary, "user other on >" + canary + "2 ~* +@all"});
  RedisOptions options = tcp_options(server);
  CHECK(error_with(options, 2s) == Errc::no_auth);
  options.password = "wrong";
  CHECK(error_with(options, 2s) == Errc::wrong_password);
  options.password = canary;
  CHECK_FALSE(error_with(options));
  options.username = "other";
  CHECK(error_with(options, 2s) == Errc::wrong_password);
  options.password = canary + "2";
  CHECK_FALSE(error_with(options));
  options.username = "nobody";
  CHECK(error_with(options, 2s) == Errc::wrong_password);
}

TEST_CASE("the reason of a failed login is known at any time, not only between attempts",
          "[redis]") {
  const RedisServer server({"requirepass " + canary});
  RedisOptions options = socket_options(server);
  options.reconnect_max = 1ms;
  options.reconnect_min = 1ms;
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  CHECK(bucket.error("a", 2s) == Errc::no_auth);
  for (int i = 0; i < 30; ++i) CHECK(bucket.error("a", 1ms) == Errc::no_auth);
}

TEST_CASE_METHOD(SharedServer, "a database and a prefix of one's own keep keys apart", "[redis]") {
  RedisOptions options = socket_options(server);
  options.database = 3;
  options.key_prefix = "app1:";
  CHECK_FALSE(error_with(options));
  CHECK(admin({"DBSIZE"}).integer == 0);
  admin({"SELECT", "3"});
  CHECK(admin({"KEYS", "*"}).elements.at(0).text == "app1:{a}:api:10/h");
  options.database = 99;
  CHECK(error_with(options, 300ms) == Errc::not_connected);
}

TEST_CASE_METHOD(SharedServer, "a client name that the server does not like is done without",
                 "[redis]") {
  RedisOptions options = socket_options(server);
  options.client_name = "not allowed\r\n";
  CHECK_FALSE(error_with(options));
}

TEST_CASE("a full server is an error of its own, until it has room", "[redis]") {
  const RedisServer server({"maxclients 1"});
  auto occupant = std::make_unique<RedisClient>(server.unix_socket());
  // The fixture's own client may still be leaving.
  REQUIRE(eventually([&] {
    try {
      return (*occupant)({"PING"}).text == "PONG";
    } catch (const std::runtime_error&) {
      occupant = std::make_unique<RedisClient>(server.unix_socket());
      return false;
    }
  }));
  const auto by_socket = connect_socket(server);
  const auto by_tcp = connect_tcp(server);
  for (const auto* store : {&by_socket, &by_tcp}) {
    CHECK(Bucket(**store, quota).error("a", 200ms) == Errc::too_many_clients);
  }
  occupant.reset();
  Asked first;
  Asked second;
  Bucket(*by_socket, quota).ask(first, "a");
  Bucket(*by_tcp, quota).ask(second, "a");
  CHECK(eventually([&] { return first.answers + second.answers > 0; }));
  CHECK((first.answers > 0 ? first : second).error == std::error_code());
}

TEST_CASE(
    "a server without memory, replicas or a disk refuses before it charges; a replica is left",
    "[redis][C-087]") {
  {
    const RedisServer server({"enable-protected-configs yes"});
    check_word(server, Errc::out_of_memory, false, setting("maxmemory", "1"),
               setting("maxmemory", "0"));
    RedisClient(server.unix_socket())({"FLUSHALL"});
    check_word(server, Errc::no_replicas, false, setting("min-replicas-to-write", "1"),
               setting("min-replicas-to-write", "0"));
    RedisClient(server.unix_socket())({"FLUSHALL"});
    check_word(server, Errc::read_only, true, replica_of("127.0.0.1", "1"),
               replica_of("NO", "ONE"));
    RedisClient(server.unix_socket())({"FLUSHALL"});
    const std::string folder = server.folder() + "/gone";
    std::filesystem::create_directory(folder);
    check_word(
        server, Errc::misconfigured, false,
        [&](RedisClient& admin) {
          admin({"CONFIG", "SET", "dir", folder});
          std::filesystem::remove(folder);
          admin({"CONFIG", "SET", "save", "3600 1"});
          admin({"BGSAVE"});
          REQUIRE(eventually([&] { return info(admin, "rdb_last_bgsave_status") == "err"; }));
        },
        setting("stop-writes-on-bgsave-error", "no"));
  }
  const RedisServer replica({"replica-serve-stale-data no"});
  check_word(replica, Errc::master_down, true, replica_of("127.0.0.1", "1"),
             replica_of("NO", "ONE"));
}

TEST_CASE("a server that is busy with another script says so, and recovers", "[redis]") {
  RedisServer server({"busy-reply-threshold 20"});
  const auto store = connect_socket(server);
  const Bucket bucket(*store, quota);
  CHECK_FALSE(bucket.error("a"));
  RedisClient looping(server.unix_socket());
  looping.append({"EVAL", "while true do end", "0"});
  std::thread loop([&] { looping.read(); });  // answered when it is killed
  RedisClient admin(server.unix_socket());
  REQUIRE(eventually([&] { return admin({"PING"}).text.rfind("BUSY", 0) == 0; }));
  CHECK(bucket.error("a") == Errc::busy);
  CHECK(admin({"SCRIPT", "KILL"}).text == "OK");
  loop.join();
  REQUIRE(eventually([&] { return !bucket.error("b"); }));
  CHECK((*bucket).peek("a").remaining == 9);
}

TEST_CASE("a cluster's redirections are typed errors", "[redis][C-013]") {
  RedisServer server({"cluster-enabled yes", "cluster-config-file nodes.conf",
                      "cluster-require-full-coverage no"});
  RedisClient admin(server.unix_socket());
  const auto store = connect_socket(server);
  const Bucket bucket(*store, quota);
  const auto is_down = [&] { return bucket.error("a", 150ms) == Errc::cluster_down; };
  CHECK(eventually(is_down));
  // Half of the slots are ours; "a" is in the upper half (15495), "b" in the lower (3300).
  admin({"CLUSTER", "ADDSLOTSRANGE", "0", "8191"});
  REQUIRE(eventually([&] { return !bucket.error("b"); }));
  CHECK(eventually(is_down));
  Asked two, patient;
  bucket.ask(patient, "a", 20s);
  const TokenBucket& plain = *bucket;
  admin({"CLUSTER", "ADDSLOTSRANGE", "8192", "16383"});
  CHECK_FALSE(patient.wait().error);
  store->execute(Plan({plain.acquire_step("a"), plain.acquire_step("b")}).within(20s),
                 two.completion());
  CHECK(two.wait().error == Errc::cross_slot);
  // Keys with one tag live together.
  Asked together;
  store->execute(
      Plan({plain.acquire_step(Key{"a", "x"}), plain.acquire_step(Key{"a", "y"})}).within(20s),
      together.completion());
  CHECK_FALSE(together.wait().error);
}
