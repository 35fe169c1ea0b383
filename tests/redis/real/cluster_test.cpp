// The store on a real Redis Cluster: every key is decided by its node, whatever moves meanwhile.
// Threading: as each test says.
#include "tests/redis/real/cluster.hpp"
#include "sluice/extend/subscription.hpp"
#include "sluice/limiters/concurrency_limiter.hpp"
#include "tests/catch.hpp"
#include "tests/redis/events.hpp"
#include "tests/redis/fake/server.hpp"
#include "tests/redis/real/real.hpp"
#include "tests/redis/traffic.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const Quota quota = Quota::per(1, 30min).burst(1000);

RedisOptions options_for(const RedisCluster& cluster) { return cluster_options(cluster, 5s); }

/// A key, of many, whose slot the node has.
std::size_t key_on(const RedisCluster& cluster, const std::vector<std::string>& keys,
                   std::size_t node) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (cluster.master_of(cluster_slot(keys[i])) == node) return i;
  }
  throw std::runtime_error("no key is on the node");
}

std::string text_of(const std::map<std::string, int>& errors) {
  std::string text;
  for (const auto& [error, count] : errors) text += error + ": " + std::to_string(count) + "; ";
  return text;
}

}  // namespace

TEST_CASE("keys of a cluster are decided by their nodes, once", "[redis][cluster]") {
  if (redis_left_out()) return;
  RedisCluster cluster;
  const auto store = make_redis_store(options_for(cluster));

  SECTION("each node has the keys of its slots") {
    const Bucket bucket(*store, quota);
    for (const std::string& key : numbered_keys(100)) CHECK_FALSE(bucket.error(key));
    std::size_t keys = 0;
    for (std::size_t node = 0; node < RedisCluster::size; ++node) {
      if (!cluster.is_master(node)) continue;
      RedisClient client = cluster.client(node);
      const auto here = static_cast<std::size_t>(client({"DBSIZE"}).integer);
      CHECK(here > 10);
      keys += here;
    }
    CHECK(keys == 100);
    CHECK(store->stats().connections == 3);
  }
  SECTION("a batch over all nodes") {
    const TokenBucket bucket(*store, "api", quota);
    Crowd crowd(300);
    std::vector<Step> steps;
    std::vector<Plan> plans;
    std::vector<Completion> done;
    const auto keys = numbered_keys(crowd.size());
    for (std::size_t i = 0; i < crowd.size(); ++i) {
      steps.push_back(bucket.acquire_step(keys[i]));
      done.push_back(crowd[i].completion());
    }
    for (const Step& step : steps) plans.emplace_back(step);
    store->execute_batch(plans, done);
    CHECK(crowd.wait());
    CHECK(crowd.count([](const Asked& asked) { return !asked.error; }) == crowd.size());
  }
  SECTION("a plan of two tags names the step of the second, also in one slot") {
    const TokenBucket bucket(*store, "api", quota);
    std::string twin;  // another tag of the same slot
    for (int i = 0; twin.empty(); ++i) {
      const std::string other = "t" + std::to_string(i);
      if (cluster_slot(other) == cluster_slot("alice")) twin = other;
    }
    for (const std::string& other : {std::string("bob"), twin}) {
      CAPTURE(other);
      const auto before = store->stats().connections;
      const std::array steps{bucket.acquire_step(Key("alice", "a")),
                             bucket.acquire_step(Key("alice", "b")),
                             bucket.acquire_step(Key(other, "c"))};
      Asked asked;
      store->execute(Plan(steps), asked.completion());
      CHECK(asked.answers == 1);
      CHECK(asked.error == Errc::cross_slot);
      CHECK(asked.decision.step == 2);
      CHECK(store->stats().connections == before);
    }
    const std::array steps{bucket.acquire_step(Key("alice", "a")),
                           bucket.acquire_step(Key("alice", "b"))};
    Asked asked;
    store->execute(Plan(steps), asked.completion());
    CHECK_FALSE(asked.wait().error);
  }
  SECTION("wake-ups reach another store, whichever nodes both are connected to") {
    const auto other = make_redis_store(options_for(cluster));
    for (const std::string& tag : numbered_keys(12)) {
      CAPTURE(tag);
      std::atomic<int> heard{0};
      const auto before = other->stats().subscriptions;
      const auto watch = other->subscribe(Key(tag, "jobs"), [&] { ++heard; });
      REQUIRE(eventually([&] { return other->stats().subscriptions > before; }));
      const Bucket bucket(*store, quota);
      CHECK_FALSE(bucket.error(tag));  // connects to the node
      store->notify(Key(tag, "jobs"));
      CHECK(eventually([&] { return heard > 0; }));
    }
  }
}

TEST_CASE("a cluster is found by any of the nodes that are named", "[redis][cluster]") {
  if (redis_left_out()) return;
  RedisCluster cluster;
  const std::uint16_t closed = FakeServer([](Peer&, int) {}).port();
  RedisOptions options = options_for(cluster);
  options.cluster = {{"127.0.0.1", closed}, {"127.0.0.1", cluster.port(5)}};
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  for (const std::string& key : numbered_keys(20)) CHECK_FALSE(bucket.error(key));
  CHECK(store->stats().failed_attempts > 0);
}

TEST_CASE("callers notice no failover on request, and no slot that moves", "[redis][cluster]") {
  if (redis_left_out()) return;
  RedisCluster cluster;
  Events events;
  RedisOptions options = cluster_options(cluster);  // a master holds its answers back for 5 s
  options.on_event = events.listener();
  const auto store = make_redis_store(options);
  const auto keys = numbered_keys(60);
  Traffic traffic(*store, keys, 8, 20s);  // under load, nodes pause for seconds to fail over
  REQUIRE(traffic.goes_on());
  for (int round = 0; round < 2; ++round) {
    for (std::size_t node = 0; node < RedisCluster::size; ++node) {
      if (cluster.is_master(node)) continue;
      cluster.await_ok();
      cluster.failover(node);
      REQUIRE(traffic.goes_on());
    }
  }
  for (std::size_t i = 0; i < 10; ++i) {
    const unsigned slot = cluster_slot(keys[i]);
    const std::size_t from = cluster.master_of(slot);
    const std::size_t other = key_on(cluster, keys, from) == 0 ? 1 : 0;
    std::size_t to = cluster.master_of(cluster_slot(keys[other]));
    for (std::size_t k = 0; to == from; ++k) to = cluster.master_of(cluster_slot(keys[k]));
    cluster.move_slot(slot, from, to);
    REQUIRE(traffic.goes_on());
  }
  traffic.stop();
  CHECK(traffic.miscounted() == "");
  const auto all = events.all();
  for (const RedisEvent& event : all) {
    UNSCOPED_INFO(static_cast<int>(event.kind) << " " << event.text());
  }
  CHECK(text_of(traffic.errors()) == "");
  CHECK(std::ranges::any_of(
      all, [](const RedisEvent& event) { return event.kind == RedisEvent::Kind::map_changed; }));
}

TEST_CASE("a killed master costs only its own keys, until its replica is promoted",
          "[redis][cluster]") {
  if (redis_left_out()) return;
  RedisCluster cluster;
  const auto store = make_redis_store(options_for(cluster));
  const auto keys = numbered_keys(40);
  const Bucket bucket(*store, quota);
  for (const std::string& key : keys) REQUIRE_FALSE(bucket.error(key));
  const std::size_t victim = cluster.master_of(cluster_slot(keys[0]));
  std::vector<std::string> others;
  for (const std::string& key : keys) {
    if (cluster.master_of(cluster_slot(key)) != victim) others.push_back(key);
  }
  Traffic unaffected(*store, others, 4, 2s);
  REQUIRE(unaffected.goes_on());
  cluster.kill(victim);
  // A call that was sent before the end of the connection was noticed is unknown.
  CHECK(eventually([&] { return !bucket.error(keys[0], 20s); }));
  REQUIRE(unaffected.goes_on());
  cluster.restart(victim);
  cluster.await_ok();
  REQUIRE(unaffected.goes_on());
  unaffected.stop();
  CHECK(text_of(unaffected.errors()) == "");
  CHECK(unaffected.miscounted() == "");
}
