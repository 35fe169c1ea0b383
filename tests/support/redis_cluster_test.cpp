// The cluster and the Sentinels that other tests rely on. Threading: single-threaded.
#include "tests/support/redis_cluster.hpp"

#include "tests/catch.hpp"
#include "tests/support/redis_sentinels.hpp"

using namespace sluice::test;

TEST_CASE("slots of keys are those of the specification", "[support]") {
  CHECK(cluster_slot("123456789") == 0x31c3U % RedisCluster::slots);
  CHECK(cluster_slot("{user1000}.following") == cluster_slot("{user1000}.followers"));
  CHECK(cluster_slot("foo{}{bar}") != cluster_slot("bar"));
  CHECK(cluster_slot("foo{{bar}}zap") == cluster_slot("{bar"));
}

TEST_CASE("a cluster serves all slots, moves them, and replaces masters", "[support][redis]") {
  if (redis_left_out()) return;
  RedisCluster cluster;
  const unsigned slot = cluster_slot("key");
  const std::size_t first = cluster.master_of(slot);
  CHECK(cluster.slots_of(first).size() > RedisCluster::slots / 4);
  CHECK(cluster.client(first)({"SET", "key", "value"}).text == "OK");

  const std::size_t other = cluster.master_of(slot < 8'000 ? 16'383 : 0);
  REQUIRE(other != first);
  cluster.move_slot(slot, first, other);
  CHECK(cluster.master_of(slot) == other);
  CHECK(cluster.client(other)({"GET", "key"}).text == "value");
  CHECK(cluster.client(first)({"GET", "key"}).text ==
        "MOVED " + std::to_string(slot) + " 127.0.0.1:" + std::to_string(cluster.port(other)));

  const std::size_t replica = cluster.replicas_of(other).at(0);
  cluster.failover(replica);
  await("the replica serves", [&] { return cluster.master_of(slot) == replica; });
  CHECK(cluster.client(replica)({"GET", "key"}).text == "value");
  cluster.await_ok();

  cluster.kill(replica);
  await("the former master serves", [&] { return cluster.master_of(slot) == other; });
  CHECK(cluster.client(other)({"GET", "key"}).text == "value");
  cluster.restart(replica);
  cluster.await_ok();
  CHECK_FALSE(cluster.is_master(replica));

  cluster.suspend(other);
  await("the node that came back serves", [&] { return cluster.master_of(slot) == replica; });
  cluster.resume(other);
  cluster.await_ok();
}

TEST_CASE("Sentinels name another master when they are told to, and when it dies",
          "[support][redis]") {
  if (redis_left_out()) return;
  const Certificates certificates;
  RedisSentinels group(
      {.password = "secret", .sentinel_password = "another", .tls = &certificates});
  CHECK(group.master() == 0);
  RedisClient client = group.client(0);
  CHECK(client({"SET", "key", "value"}).text == "OK");
  CHECK(client({"WAIT", "2", "5000"}).integer == 2);

  const std::size_t second = group.fail_over();
  CHECK(second != 0);
  CHECK(group.await_new_master(0) == second);
  CHECK(group.client(second)({"GET", "key"}).text == "value");
  group.await_ok();

  CHECK(group.kill_master() == second);
  const std::size_t third = group.await_new_master(second);
  CHECK(third != second);
  CHECK(group.client(third)({"GET", "key"}).text == "value");
  group.restart(second);
  group.await_ok();
  CHECK(group.client(second)({"ROLE"}).elements.at(0).text == "slave");
}
