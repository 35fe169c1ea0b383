// Calls on a real cluster: lost scripts, functions, request ids, stop requests and alternatives, at
// each node as at a single server. Threading: the test's thread asks; a second one disturbs the
// nodes.
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/redis/real/cluster.hpp"
#include "tests/redis/real/scripts.hpp"
#include "tests/redis/traffic.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const Quota quota = Quota::per(1, 30min).burst(1000);

Servers masters_of(RedisCluster& cluster) {
  Servers masters;
  for (std::size_t node = 0; node < RedisCluster::size; ++node) {
    if (cluster.is_master(node)) masters.push_back(&cluster.server(node));
  }
  return masters;
}

/// The first of the keys whose slot the node has, or has not.
std::string find_key(const RedisCluster& cluster, std::size_t node, bool has) {
  for (const std::string& key : numbered_keys(100)) {
    if ((cluster.master_of(cluster_slot(key)) == node) == has) return key;
  }
  throw std::runtime_error("no such key");
}

/// A key of each master, in the order of the nodes.
std::vector<std::string> key_of_each(const RedisCluster& cluster) {
  std::vector<std::string> keys;
  for (std::size_t node = 0; node < RedisCluster::size; ++node) {
    if (cluster.is_master(node)) keys.push_back(find_key(cluster, node, true));
  }
  return keys;
}

}  // namespace

TEST_CASE("scripts lost at every node are loaded again and no caller sees it", "[redis][cluster]") {
  if (redis_left_out()) return;
  RedisCluster cluster;
  check_lost_scripts(masters_of(cluster), cluster_options(cluster), "SCRIPT", 500us, 3);
}

TEST_CASE("functions are loaded at each node of a cluster", "[redis][cluster]") {
  if (redis_left_out()) return;
  RedisCluster cluster;
  RedisOptions options = cluster_options(cluster);
  options.scripts = RedisScripts::functions;

  SECTION("once") {
    const auto store = make_redis_store(options);
    const Bucket bucket(*store, quota);
    for (const std::string& key : numbered_keys(40)) CHECK_FALSE(bucket.error(key));
    CHECK(store->stats().scripts_loaded == 3);
  }
  SECTION("again and again") {
    check_lost_scripts(masters_of(cluster), options, "FUNCTION", 60ms, 3);  // as often as at one
  }
}

TEST_CASE("a request id is charged once, also when its slot has moved", "[redis][cluster]") {
  if (redis_left_out()) return;
  RedisCluster cluster;
  const auto store = make_redis_store(cluster_options(cluster));
  const auto other = make_redis_store(cluster_options(cluster));
  const TokenBucket bucket(*store, "api", quota);
  for (const std::string& tag : numbered_keys(12)) {
    CAPTURE(tag);
    std::array steps{bucket.acquire_step(Key(tag, "a")), bucket.acquire_step(Key(tag, "b"))};
    for (Step& step : steps) step.store = nullptr;  // of either store
    const Plan plan = Plan(steps).within(20s).idempotent({1, 2});
    const Decision first = decide(*store, plan);
    CHECK(first.remaining == 999);
    const unsigned slot = cluster_slot(tag);
    const std::size_t from = cluster.master_of(slot);
    const std::size_t to =
        cluster.master_of((slot + RedisCluster::slots / 2) % RedisCluster::slots);
    if (tag == "key0") cluster.move_slot(slot, from, to);
    for (auto* again : {other.get(), store.get()}) {
      const Decision repeated = decide(*again, plan);
      CHECK(repeated.remaining == 999);
      CHECK(repeated.at == first.at);
    }
    CHECK(bucket.peek(Key(tag, "a")).remaining == 999);
  }
  CHECK(store->stats().protocol_errors == 0);
}

TEST_CASE("one stop request ends calls at a node that hangs and at others, each once",
          "[redis][cluster]") {
  if (redis_left_out()) return;
  // Its replica is to stay one.
  RedisCluster cluster({.config = {"cluster-replica-no-failover yes"}});
  const auto store = make_redis_store(cluster_options(cluster));
  const Bucket bucket(*store, quota);
  const std::size_t node = cluster.master_of(0);
  const std::string hung = find_key(cluster, node, true);
  const std::string served = find_key(cluster, node, false);
  REQUIRE_FALSE(bucket.error(hung));
  REQUIRE_FALSE(bucket.error(served));
  cluster.suspend(node);
  std::stop_source stop;
  Crowd crowd(500);
  for (std::size_t i = 0; i < crowd.size(); ++i) {
    bucket.ask(crowd[i], i % 2 == 0 ? hung : served, 20s, stop.get_token());
  }
  stop.request_stop();
  CHECK(crowd.wait());
  CHECK(crowd.count([](const Asked& call) {
    return !call.error || call.error == Errc::cancelled || call.error == Errc::unknown;
  }) == crowd.size());
  CHECK(crowd.count([](const Asked& call) { return bool(call.error); }) >= crowd.size() / 2);
  cluster.resume(node);
  CHECK_FALSE(bucket.error(hung, 20s));
  CHECK(store->stats().connections == 2);
}

TEST_CASE("of alternatives on several nodes the first that grants is charged, and no other",
          "[redis][cluster][first_of]") {
  if (redis_left_out()) return;
  RedisCluster cluster;
  const auto store = make_redis_store(cluster_options(cluster));
  const TokenBucket keys(*store, "keys", Quota::per(1, 1h).burst(3));
  const auto names = key_of_each(cluster);
  REQUIRE(names.size() == 3);
  const auto left = [&] {
    std::vector<Word> all;
    for (const std::string& name : names) all.push_back(keys.peek(name).remaining);
    return all;
  };
  const auto drain = [&](std::size_t of, Word amount) {
    REQUIRE(keys.try_acquire(names[of], amount));
  };
  const auto ask = [&](std::array<Word, 3> costs, std::array<std::size_t, 3> order = {0, 1, 2}) {
    std::vector<std::vector<Claim>> alternatives;
    for (const std::size_t i : order) alternatives.push_back({{keys, names[i], costs[i]}});
    return acquire(first_of(std::move(alternatives)), 0s);
  };

  SECTION("the second, if the first is exhausted") {
    drain(0, 2);  // one is left, and two are wanted
    const auto before = store->stats().decided;
    const Grants granted = ask({2, 2, 2});
    REQUIRE(granted);
    CHECK(granted.alternative() == 1);
    CHECK(store->stats().decided == before + 2);  // nobody has asked the third
    CHECK(left() == std::vector<Word>{1, 1, 3});
    CHECK(ask({2, 2, 2}).alternative() == 2);
    CHECK(left() == std::vector<Word>{1, 1, 1});
    CHECK(ask({1, 1, 1}).alternative() == 0);
    CHECK(left() == std::vector<Word>{0, 1, 1});
  }
  SECTION("the second, if one limit of the first is exhausted") {
    const TokenBucket tokens(*store, "tokens", Quota::per(1, 1h).burst(3));
    REQUIRE(tokens.try_acquire(names[0], 3));
    const Grants granted = acquire(
        first_of({{{keys, names[0]}, {tokens, names[0]}}, {{keys, names[1]}, {tokens, names[1]}}}),
        0s);
    REQUIRE(granted);
    CHECK(granted.alternative() == 1);
    CHECK(left() == std::vector<Word>{3, 2, 3});
    CHECK(tokens.peek(names[1]).remaining == 2);
  }
  SECTION("none, if all are exhausted: the refusal is that of the one that is granted first") {
    for (std::size_t i = 0; i < 3; ++i) drain(i, 3);
    for (const std::array<std::size_t, 3> order :
         {std::array<std::size_t, 3>{0, 1, 2}, std::array<std::size_t, 3>{1, 2, 0},
          std::array<std::size_t, 3>{2, 0, 1}}) {
      const Grants refused = ask({3, 1, 2}, order);
      CHECK_FALSE(refused);
      CHECK(order.at(refused.alternative()) == 1);
      CHECK(refused.decision().retry_after > 55min);
      CHECK(refused.decision().retry_after <= 1h);
    }
    CHECK(left() == std::vector<Word>{0, 0, 0});
  }
}

TEST_CASE("an alternative whose node has failed is left out", "[redis][cluster][first_of]") {
  if (redis_left_out()) return;
  // The other nodes go on without it, and its replica stays one.
  RedisCluster cluster(
      {.config = {"cluster-replica-no-failover yes", "cluster-require-full-coverage no"}});
  RedisOptions options = cluster_options(cluster);
  options.call_timeout = 2s;  // of each alternative
  const auto store = make_redis_store(options);
  const TokenBucket keys(*store, "keys", Quota::per(1, 1h).burst(1));
  const auto names = key_of_each(cluster);
  REQUIRE(names.size() == 3);
  for (const std::string& name : names) static_cast<void>(keys.peek(name));  // connects
  const auto all = first_of({{{keys, names[0]}}, {{keys, names[1]}}, {{keys, names[2]}}});
  const std::size_t failed = cluster.master_of(cluster_slot(names[0]));
  SECTION("it was killed") { cluster.kill(failed); }
  SECTION("it hangs") { cluster.suspend(failed); }

  for (const std::size_t expected : {1U, 2U}) {
    const Grants granted = acquire(all, 0s);
    REQUIRE(granted);
    CHECK(granted.alternative() == expected);
  }
  // Of two refusals and a failure, the call fails.
  CHECK_THROWS_AS(acquire(all, 0s), std::system_error);
  CHECK(keys.peek(names[1]).remaining == 0);
  CHECK(keys.peek(names[2]).remaining == 0);
}

TEST_CASE("while a slot moves, calls on one key go on; those on several wait for what is missing",
          "[redis][cluster]") {
  if (redis_left_out()) return;
  RedisCluster cluster;
  const auto store = make_redis_store(cluster_options(cluster));
  const TokenBucket bucket(*store, "api", quota);
  const auto ask = [&](const std::vector<std::string>& names, RequestId id = {}) {
    std::vector<Step> steps;
    for (const std::string& name : names) steps.push_back(bucket.acquire_step(Key("key0", name)));
    const Plan plan = Plan(steps).within(200ms);
    std::error_code error;
    static_cast<void>(decide(*store, id == RequestId{} ? plan : plan.idempotent(id), error));
    return error;
  };
  // Unknown: the deadline passed while it was asked again.
  const auto has_waited = [](const std::error_code& error) {
    return error == Errc::try_again || error == Errc::unknown;
  };
  REQUIRE_FALSE(ask({"a", "b"}));

  const unsigned slot = cluster_slot("key0");
  const std::string number = std::to_string(slot);
  const std::size_t from = cluster.master_of(slot);
  const std::size_t to = cluster.master_of((slot + RedisCluster::slots / 2) % RedisCluster::slots);
  RedisClient source = cluster.client(from);
  RedisClient target = cluster.client(to);
  const std::string from_id = source({"CLUSTER", "MYID"}).text;
  const std::string to_id = target({"CLUSTER", "MYID"}).text;
  REQUIRE(target({"CLUSTER", "SETSLOT", number, "IMPORTING", from_id}).text == "OK");
  REQUIRE(source({"CLUSTER", "SETSLOT", number, "MIGRATING", to_id}).text == "OK");
  const auto keys = source({"CLUSTER", "GETKEYSINSLOT", number, "10"}).elements;
  REQUIRE(keys.size() == 2);
  for (std::size_t moved = 0; moved <= keys.size(); ++moved) {
    CAPTURE(moved);
    if (moved > 0) {
      const std::string port = std::to_string(cluster.port(to));
      REQUIRE_FALSE(
          source({"MIGRATE", "127.0.0.1", port, keys[moved - 1].text, "0", "5000"}).is_error());
    }
    CHECK_FALSE(ask({"a"}));
    CHECK_FALSE(ask({"b"}));
    CHECK_FALSE(ask({"new " + std::to_string(moved)}));
    const std::error_code error = ask({"a", "b"});
    CHECK((moved == 1 ? has_waited(error) : !error));
    CHECK(has_waited(ask({"a", "another"})));
    CHECK(has_waited(ask({"a"}, {1, 2})));
  }
  cluster.move_slot(slot, from, to);
  CHECK_FALSE(ask({"a", "b"}));
  CHECK_FALSE(ask({"a", "another"}));
  for (int i = 0; i < 2; ++i) CHECK_FALSE(ask({"a"}, {1, 2}));
  CHECK(bucket.peek(Key("key0", "a")).remaining == 1000 - 1 - 3 - 2 - 3);
}
