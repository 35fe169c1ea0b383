// What a real server says when it does not want to: each word is provoked, typed, and provably
// nothing was charged. Threading: the test's thread asks; a second client disturbs.
#include <filesystem>

#include "tests/catch.hpp"
#include "tests/redis/real/real.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const Quota quota = Quota::per_hour(10);

/// The word is heard while `provoke` holds, nothing is charged, and `heal` brings the store back.
void check_word(RedisServer& server, Errc code, const auto& provoke, const auto& heal) {
  const auto store = connect_socket(server);
  const Bucket bucket(*store, quota);
  CHECK_FALSE(bucket.error("a"));
  RedisClient admin(server.unix_socket());
  provoke(admin);
  for (int i = 0; i < 3; ++i) CHECK(bucket.error("a") == code);
  CHECK(make_error_code(code) == Failure::not_executed);
  heal(admin);
  REQUIRE(eventually([&] { return !bucket.error("b"); }));
  CHECK((*bucket).peek("a").remaining == 9);
}

/// The word is met while `provoke` holds, and nothing is charged; who asks for longer than that is
/// decided once `heal` has brought the server back.
void check_passing_word(RedisServer& server, Errc code, const auto& provoke, const auto& heal) {
  const auto store = connect_socket(server);
  const Bucket bucket(*store, quota);
  CHECK_FALSE(bucket.error("a"));
  RedisClient admin(server.unix_socket());
  provoke(admin);
  Asked patient;
  bucket.ask(patient, "b", 20s);
  CHECK(eventually([&] { return bucket.error("a", 150ms) == code; }));
  CHECK(make_error_code(code) == Failure::not_executed);
  CHECK(patient.answers == 0);
  heal(admin);
  CHECK_FALSE(patient.wait().error);
  CHECK((*bucket).peek("a").remaining == 9);
  CHECK((*bucket).peek("b").remaining == 9);
}

}  // namespace

TEST_CASE("a server without memory refuses before it charges", "[redis][C-087]") {
  if (redis_left_out()) return;
  RedisServer server;
  check_word(
      server, Errc::out_of_memory,
      [](auto& admin) {
        admin({"CONFIG", "SET", "maxmemory", "1"});
      },
      [](auto& admin) {
        admin({"CONFIG", "SET", "maxmemory", "0"});
      });
}

TEST_CASE("a master without enough replicas refuses before it charges", "[redis]") {
  if (redis_left_out()) return;
  RedisServer server;
  check_word(
      server, Errc::no_replicas,
      [](auto& admin) {
        admin({"CONFIG", "SET", "min-replicas-to-write", "1"});
      },
      [](auto& admin) {
        admin({"CONFIG", "SET", "min-replicas-to-write", "0"});
      });
}

TEST_CASE("a server that became a replica is left for one that is none", "[redis][C-087]") {
  if (redis_left_out()) return;
  RedisServer server;
  check_passing_word(
      server, Errc::read_only,
      [](auto& admin) {
        admin({"REPLICAOF", "127.0.0.1", "1"});
      },
      [](auto& admin) {
        admin({"REPLICAOF", "NO", "ONE"});
      });
}

TEST_CASE("a replica without its master says so", "[redis]") {
  if (redis_left_out()) return;
  RedisServer server({"replica-serve-stale-data no"});
  check_passing_word(
      server, Errc::master_down,
      [](auto& admin) {
        admin({"REPLICAOF", "127.0.0.1", "1"});
      },
      [](auto& admin) {
        admin({"REPLICAOF", "NO", "ONE"});
      });
}

TEST_CASE("a server that cannot save refuses before it charges", "[redis]") {
  if (redis_left_out()) return;
  RedisServer server({"enable-protected-configs yes"});
  const std::string folder = server.folder() + "/gone";
  std::filesystem::create_directory(folder);
  check_word(
      server, Errc::misconfigured,
      [&](auto& admin) {
        admin({"CONFIG", "SET", "dir", folder});
        std::filesystem::remove(folder);
        admin({"CONFIG", "SET", "save", "3600 1"});
        admin({"BGSAVE"});
        REQUIRE(eventually([&] { return info(admin, "rdb_last_bgsave_status") == "err"; }));
      },
      [&](auto& admin) {
        admin({"CONFIG", "SET", "stop-writes-on-bgsave-error", "no"});
      });
}

TEST_CASE("a server that is busy with another script says so, and recovers", "[redis]") {
  if (redis_left_out()) return;
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

TEST_CASE("calls that meet a server which is loading its data are decided when it has", "[redis]") {
  if (redis_left_out()) return;
  RedisServer server({"enable-debug-command yes", "key-load-delay 1000", "rdbcompression no",
                      "loading-process-events-interval-bytes 1024"});
  const auto store = connect_socket(server);
  const Bucket bucket(*store, quota);
  RedisClient admin(server.unix_socket());
  admin({"EVAL", "for i = 1, 300 do redis.call('SET', 'k' .. i, ARGV[1]) end", "0",
         std::string(500, 'x')});  // several intervals of events
  std::atomic<bool> over{false};
  std::string reply;
  std::thread reload([&] {
    reply = admin({"DEBUG", "RELOAD"}).text;
    over = true;
  });
  std::size_t wrong = 0;
  while (!over) wrong += bucket.error("a") ? 1U : 0U;
  reload.join();
  CHECK(reply == "OK");
  CHECK(info(admin, "errorstat_LOADING") != "");
  CHECK(wrong == 0);
  CHECK_FALSE(bucket.error("b"));
}

TEST_CASE("a cluster's redirections are typed errors", "[redis][C-013]") {
  if (redis_left_out()) return;
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
