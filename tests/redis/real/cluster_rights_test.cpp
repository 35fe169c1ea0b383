// What a user needs on the nodes of a cluster, and what is missed without each right.
// Threading: the test's thread.
#include "sluice/extend/subscription.hpp"
#include "tests/catch.hpp"
#include "tests/redis/events.hpp"
#include "tests/redis/real/cluster.hpp"
#include "tests/redis/real/rights.hpp"
#include "tests/redis/real/scripts.hpp"
#include "tests/redis/traffic.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const Quota quota = Quota::per(1, 30min).burst(1000);

/// The documented rights of a user in a cluster without those for wake-ups.
const Rights documented{"~rl:*",     "+evalsha", "+eval",          "+time",
                        "+get",      "+mget",    "+psetex",        "+getrange",
                        "+setrange", "+pexpire", "+cluster|slots", "+asking"};

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
  /// Leaves the slot of the tag half way to another node. Its keys are still with the first.
  void begin_move(const std::string& tag) {
    const unsigned slot = cluster_slot(tag);
    const std::size_t from = cluster.master_of(slot);
    const std::size_t to =
        cluster.master_of((slot + RedisCluster::slots / 2) % RedisCluster::slots);
    REQUIRE(from != to);
    const std::string number = std::to_string(slot);
    RedisClient source = cluster.client(from);
    RedisClient target = cluster.client(to);
    const std::string from_id = source({"CLUSTER", "MYID"}).text;
    const std::string to_id = target({"CLUSTER", "MYID"}).text;
    REQUIRE(target({"CLUSTER", "SETSLOT", number, "IMPORTING", from_id}).text == "OK");
    REQUIRE(source({"CLUSTER", "SETSLOT", number, "MIGRATING", to_id}).text == "OK");
  }

  RedisCluster cluster;
};

bool has_failed(const Events& events) {
  return events.count(RedisEvent::Kind::failed, RedisStep::discover) > 0;
}

}  // namespace

TEST_CASE("a user with the documented rights can do everything in a cluster", "[redis][cluster]") {
  if (redis_left_out()) return;
  Limited it;
  Events events;

  SECTION("as documented") {
    it.grant(documented);
    RedisOptions options = it.options();
    options.on_event = events.listener();
    ask_all_rows(options, "a user with the documented rights can do everything in a cluster");
    const auto store = make_redis_store(options);
    const Bucket bucket(*store, quota);
    for (const std::string& key : numbered_keys(30)) CHECK_FALSE(bucket.error(key));
    CHECK_FALSE(has_failed(events));
    it.begin_move("key0");
    CHECK_FALSE(bucket.error("key0"));              // the key is still there
    CHECK_FALSE(bucket.error(Key("key0", "new")));  // ASK
    CHECK(store->stats().failed_attempts == 0);
    const auto again = make_redis_store(options);
    CHECK((*Bucket(*again, quota)).peek(Key("key0", "new")).remaining == 999);
  }
  SECTION("without +asking, a new key of a slot that moves is refused") {
    it.grant(without(documented, "+asking"));
    const auto store = make_redis_store(it.options());
    const Bucket bucket(*store, quota);
    CHECK_FALSE(bucket.error("key0"));
    it.begin_move("key0");
    CHECK_FALSE(bucket.error("key0"));
    const std::error_code error = bucket.error(Key("key0", "new"));
    CHECK((error == Errc::moved || error == Errc::ask));
    CHECK_FALSE(bucket.error("key1"));
  }
  SECTION("without +cluster|slots, calls are sent on, and the map stays unknown") {
    it.grant(without(documented, "+cluster|slots"));
    RedisOptions options = it.options();
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
  SECTION("without a right to decide, calls fail at each node") {
    const std::string_view missing =
        GENERATE(std::string_view("+psetex"), std::string_view("+time"));
    CAPTURE(missing);
    it.grant(without(documented, missing));
    const auto store = make_redis_store(it.options());
    const Bucket bucket(*store, quota);
    for (const std::string& key : numbered_keys(10)) {
      CHECK(bucket.error(key) == Errc::no_permission);
    }
  }
  SECTION("a key outside of its pattern is refused") {
    it.grant(documented);
    RedisOptions options = it.options();
    options.key_prefix = "other:";
    const auto store = make_redis_store(options);
    CHECK(Bucket(*store, quota).error("key0") == Errc::no_permission);
  }
}

TEST_CASE("wake-ups in a cluster need the rights for channels", "[redis][cluster]") {
  if (redis_left_out()) return;
  Limited it;
  Rights rights = documented;
  for (const auto right : {"+publish", "+subscribe", "+unsubscribe", "&rl:*"}) {
    rights.emplace_back(right);
  }
  it.grant(rights);
  const auto store = make_redis_store(it.options());
  const auto other = make_redis_store(it.options());
  const Bucket bucket(*store, quota);
  std::atomic<int> heard{0};
  const Key key("key0", "jobs");
  const auto watch = other->subscribe(key, [&] { ++heard; });
  REQUIRE(eventually([&] { return other->stats().subscriptions == 1; }));
  REQUIRE_FALSE(bucket.error("key0"));
  store->notify(key);
  CHECK(eventually([&] { return heard > 0; }));

  it.grant(documented);
  const auto deaf = make_redis_store(it.options());
  const auto none = deaf->subscribe(key, [] {});
  CHECK_FALSE(Bucket(*deaf, quota).error("key0"));
  CHECK(deaf->stats().subscriptions == 0);
}
