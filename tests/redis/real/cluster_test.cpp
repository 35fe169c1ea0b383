// The store on a real Redis Cluster: every key is decided by its node, whatever moves meanwhile;
// lost scripts, request ids, stop requests, alternatives and rights, at each node as at a single
// server. Threading: as each test says.
#include "sluice/extend/subscription.hpp"
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/redis/events.hpp"
#include "tests/redis/fake/server.hpp"
#include "tests/redis/real/real.hpp"
#include "tests/redis/real/rights.hpp"
#include "tests/redis/real/scripts.hpp"
#include "tests/redis/traffic.hpp"
#include "tests/support/redis_cluster.hpp"

using namespace sluice::test;
using namespace sluice;

namespace {

const Quota quota = Quota::per(1, 30min).burst(1000);

/// `patience`: of an attempt to connect, and with a server that does not answer.
RedisOptions cluster_options(const RedisCluster& cluster, Span patience = 20s) {
  RedisOptions options;
  options.call_timeout = 20s;
  options.connect_timeout = patience;
  options.stall_timeout = patience;
  for (const std::uint16_t port : cluster.ports()) options.cluster.push_back({"127.0.0.1", port});
  return options;
}

RedisOptions options_for(const RedisCluster& cluster) { return cluster_options(cluster, 5s); }

std::string text_of(const std::map<std::string, int>& errors) {
  std::string text;
  for (const auto& [error, count] : errors) text += error + ": " + std::to_string(count) + "; ";
  return text;
}

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

/// The documented rights of a user in a cluster without those for wake-ups.
const Rights documented{"~rl:*",     "+evalsha", "+eval",          "+time",
                        "+get",      "+mget",    "+psetex",        "+getrange",
                        "+setrange", "+pexpire", "+cluster|slots", "+asking"};

/// The node with the slot of the tag, and another master.
std::pair<std::size_t, std::size_t> way_of(const RedisCluster& cluster, const std::string& tag) {
  const unsigned slot = cluster_slot(tag);
  return {cluster.master_of(slot),
          cluster.master_of((slot + RedisCluster::slots / 2) % RedisCluster::slots)};
}

/// Leaves the slot of the tag half way to another node. Its keys are still with the first.
void begin_move(const RedisCluster& cluster, const std::string& tag) {
  const auto [from, to] = way_of(cluster, tag);
  REQUIRE(from != to);
  const std::string slot = std::to_string(cluster_slot(tag));
  RedisClient source = cluster.client(from);
  RedisClient target = cluster.client(to);
  const std::string from_id = source({"CLUSTER", "MYID"}).text;
  const std::string to_id = target({"CLUSTER", "MYID"}).text;
  REQUIRE(target({"CLUSTER", "SETSLOT", slot, "IMPORTING", from_id}).text == "OK");
  REQUIRE(source({"CLUSTER", "SETSLOT", slot, "MIGRATING", to_id}).text == "OK");
}

class Limited {
 public:
  /// Gives the user these rights on each node, and no others.
  void grant(const Rights& rights) {
    for (std::size_t node = 0; node < RedisCluster::size; ++node) {
      test::grant(cluster.client(node), "limiter", rights);
    }
  }
  [[nodiscard]] RedisOptions options() const {
    RedisOptions options = options_of_limiter();
    options.cluster = cluster_options(cluster).cluster;
    return options;
  }
  RedisCluster cluster;
};

bool has_failed(const Events& events) {
  return events.count(RedisEvent::Kind::failed, RedisStep::discover) > 0;
}

}  // namespace

TEST_CASE("keys of a cluster are decided by their nodes, once", "[redis][cluster]") {
  RedisCluster cluster;
  const auto store = make_redis_store(options_for(cluster));

  {  // each node has the keys of its slots
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
  {  // a batch over all nodes
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
  {  // a plan of two tags names the step of the second, also in one slot
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
  {  // wake-ups reach another store, whichever nodes both are connected to
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
    const auto [from, to] = way_of(cluster, keys[i]);
    if (from != to) cluster.move_slot(cluster_slot(keys[i]), from, to);
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

TEST_CASE("scripts and functions are loaded at each node, once, and again when they are lost",
          "[redis][cluster]") {
  RedisCluster cluster;
  RedisOptions options = cluster_options(cluster);
  check_lost_scripts(masters_of(cluster), options, "SCRIPT", 500us, 3);
  options.key_prefix = "other:";  // fresh keys
  options.scripts = RedisScripts::functions;
  {
    const auto store = make_redis_store(options);
    const Bucket bucket(*store, quota);
    for (const std::string& key : numbered_keys(40)) CHECK_FALSE(bucket.error(key));
    CHECK(store->stats().scripts_loaded == 3);
  }
  check_lost_scripts(masters_of(cluster), options, "FUNCTION", 60ms, 3);  // as often as at one
}

TEST_CASE("a request id is charged once, also when its slot has moved", "[redis][cluster]") {
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
    if (tag == "key0") {
      const auto [from, to] = way_of(cluster, tag);
      cluster.move_slot(cluster_slot(tag), from, to);
    }
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
  const auto ask = [&](Word units) {
    std::vector<std::vector<Claim>> alternatives;
    for (const std::string& name : names) alternatives.push_back({{keys, name, units}});
    return acquire(first_of(std::move(alternatives)), 0s);
  };
  REQUIRE(keys.try_acquire(names[0], 2));  // one is left, and two are wanted
  const auto before = store->stats().decided;
  const Grants granted = ask(2);
  REQUIRE(granted);
  CHECK(granted.alternative() == 1);
  CHECK(store->stats().decided == before + 2);  // nobody has asked the third
  CHECK(left() == std::vector<Word>{1, 1, 3});
  CHECK(ask(2).alternative() == 2);
  CHECK(left() == std::vector<Word>{1, 1, 1});
  for (const std::size_t expected : {0U, 1U, 2U}) CHECK(ask(1).alternative() == expected);
  CHECK_FALSE(ask(1).decision().allowed);
}

TEST_CASE("an alternative whose node has failed is left out", "[redis][cluster][first_of]") {
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
  SECTION("it was killed") {
    cluster.kill(failed);
    CHECK(eventually([&] { return !store->health().connected; }));
  }
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

  const auto [from, to] = way_of(cluster, "key0");
  const std::string slot = std::to_string(cluster_slot("key0"));
  const std::string port = std::to_string(cluster.port(to));
  begin_move(cluster, "key0");
  RedisClient source = cluster.client(from);
  const auto keys = source({"CLUSTER", "GETKEYSINSLOT", slot, "10"}).elements;
  REQUIRE(keys.size() == 2);
  for (std::size_t moved = 0; moved <= keys.size(); ++moved) {
    CAPTURE(moved);
    if (moved > 0) {
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
  cluster.move_slot(cluster_slot("key0"), from, to);
  CHECK_FALSE(ask({"a", "b"}));
  CHECK_FALSE(ask({"a", "another"}));
  for (int i = 0; i < 2; ++i) CHECK_FALSE(ask({"a"}, {1, 2}));
  CHECK(bucket.peek(Key("key0", "a")).remaining == 1000 - 1 - 3 - 2 - 3);
}

TEST_CASE("a user with the documented rights can do everything in a cluster", "[redis][cluster]") {
  Limited it;

  {  // as documented
    it.grant(documented);
    RedisOptions options = it.options();
    Events events;
    options.on_event = events.listener();
    ask_all_rows(options, "a user with the documented rights can do everything in a cluster");
    const auto store = make_redis_store(options);
    const Bucket bucket(*store, quota);
    for (const std::string& key : numbered_keys(30)) CHECK_FALSE(bucket.error(key));
    CHECK_FALSE(has_failed(events));
    begin_move(it.cluster, "key0");
    CHECK_FALSE(bucket.error("key0"));              // the key is still there
    CHECK_FALSE(bucket.error(Key("key0", "new")));  // ASK
    CHECK(store->stats().failed_attempts == 0);
    const auto again = make_redis_store(options);
    CHECK((*Bucket(*again, quota)).peek(Key("key0", "new")).remaining == 999);
  }
  {  // without +asking, a new key of a slot that moves is refused
    it.grant(without(documented, "+asking"));
    const auto store = make_redis_store(it.options());
    const Bucket bucket(*store, quota);
    CHECK_FALSE(bucket.error("key2"));
    begin_move(it.cluster, "key2");
    CHECK_FALSE(bucket.error("key2"));
    const std::error_code error = bucket.error(Key("key2", "new"));
    CHECK((error == Errc::moved || error == Errc::ask));
    CHECK_FALSE(bucket.error("key3"));
  }
  {  // without +cluster|slots, calls are sent on, and the map stays unknown
    it.grant(without(documented, "+cluster|slots"));
    RedisOptions options = it.options();
    Events events;
    options.on_event = events.listener();
    const auto store = make_redis_store(options);
    const Bucket bucket(*store, quota);
    for (const std::string& key : numbered_keys(30)) CHECK_FALSE(bucket.error(key));
    CHECK(eventually([&] { return has_failed(events); }));
    for (const RedisEvent& event : events.all()) {
      CHECK(event.kind != RedisEvent::Kind::map_changed);
      if (event.step == RedisStep::discover) CHECK(event.cause.find("NOPERM") == 0);
    }
  }
}
