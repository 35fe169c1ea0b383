// Wake-ups through a real server: they arrive elsewhere, and whatever becomes of them, calls go on.
// Threading: as each test says.
#include <algorithm>

#include "sluice/extend/subscription.hpp"
#include "sluice/limiters/concurrency_limiter.hpp"
#include "tests/catch.hpp"
#include "tests/redis/real/real.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const Key key{"a", "jobs"};
const Quota quota = Quota::per(1, 30min).burst(1'000'000);

/// Counts the wake-ups of a key.
struct Ears {
  explicit Ears(RedisStore& store, const Key& of = key)
      : watch(store.subscribe(of, [count = count] { ++*count; })) {}
  [[nodiscard]] int heard() const { return *count; }

  std::shared_ptr<std::atomic<int>> count = std::make_shared<std::atomic<int>>(0);
  std::unique_ptr<Subscription> watch;
};

bool subscribed(const RedisStore& store, std::uint64_t times = 1) {
  return eventually([&] { return store.stats().subscriptions >= times; });
}

/// Connections that listen.
int listeners(RedisClient& admin) {
  const std::string list = admin({"CLIENT", "LIST", "TYPE", "pubsub"}).text;
  return static_cast<int>(std::ranges::count(list, '\n'));
}

/// Somebody at the store `there` who waits for the lease that is held at `here`.
struct WaitingElsewhere {
  WaitingElsewhere(Store& here, Store& there, Span recheck)
      : mine(here, "jobs", 1, {.ttl = 10min}), theirs(there, "jobs", 1, {.ttl = 10min}) {
    WaitQueueOptions line{.across_processes = true, .ticket_ttl = 1min};
    line.recheck = recheck;
    mine.set_wait_queue(line);
    theirs.set_wait_queue(line);
    held = mine.try_acquire("a");
    waiter = std::thread([this] {
      std::error_code error;
      const Lease lease = theirs.acquire("a", 1, Deadline::never(), {}, error);
      granted = !error && lease;
    });
  }
  WaitingElsewhere(const WaitingElsewhere&) = delete;
  WaitingElsewhere& operator=(const WaitingElsewhere&) = delete;
  ~WaitingElsewhere() {
    theirs.cancel_waits();
    waiter.join();
  }

  ConcurrencyLimiter mine;
  ConcurrencyLimiter theirs;
  Lease held;
  std::atomic<bool> granted{false};
  std::thread waiter;
};

Word subscriptions_of(RedisClient& admin, const std::string& channel) {
  return admin({"PUBSUB", "NUMSUB", channel}).elements.at(1).integer;
}

}  // namespace

TEST_CASE_METHOD(SharedServer, "a wake-up arrives in another store, for its key alone",
                 "[redis][watch]") {
  RedisOptions options = socket_options(server);
  options.key_prefix = "app:";
  const auto here = make_redis_store(options);
  const auto there = make_redis_store(options);
  const Ears ears(*here);
  const Ears other(*here, {"a", "other"});
  REQUIRE(subscribed(*here, 2));
  REQUIRE_FALSE(Bucket(*there, quota).error("a"));  // it has a connection
  there->notify(key);
  CHECK(eventually([&] { return ears.heard() == 1; }));
  here->notify(key);  // its own as well
  CHECK(eventually([&] { return ears.heard() == 2; }));
  there->notify({"a", "other"});
  CHECK(eventually([&] { return other.heard() == 1; }));
  CHECK(ears.heard() == 2);
  CHECK(subscriptions_of(admin, "app:{a}:jobs") == 1);
}

TEST_CASE_METHOD(
    SharedStore,
    "watches of one key share a subscription, and the connection is there while one lives",
    "[redis][watch]") {
  REQUIRE_FALSE(Bucket(*store, quota).error("a"));
  CHECK(listeners(admin) == 0);
  Ears first(*store);
  Ears second(*store);
  REQUIRE(subscribed(*store));
  store->notify(key);
  CHECK(eventually([&] { return first.heard() == 1 && second.heard() == 1; }));
  CHECK(store->stats().subscriptions == 1);
  CHECK(subscriptions_of(admin, "{a}:jobs") == 1);
  first.watch.reset();
  store->notify(key);
  CHECK(eventually([&] { return second.heard() == 2; }));
  CHECK(first.heard() == 1);
  second.watch.reset();
  CHECK(eventually([&] { return subscriptions_of(admin, "{a}:jobs") == 0; }));
  CHECK(eventually([&] { return listeners(admin) == 0; }));
  const Ears again(*store);
  CHECK(eventually([&] { return subscriptions_of(admin, "{a}:jobs") == 1; }));
}

TEST_CASE_METHOD(SharedServer, "without the rights for wake-ups, calls go on and nothing is heard",
                 "[redis][watch]") {
  const auto rule = [&](std::initializer_list<std::string_view> more) {
    std::vector<std::string_view> words{
        "ACL",   "SETUSER",  "app",   "reset", "on",   ">secret", "~app:*",  "resetchannels",
        "-@all", "+evalsha", "+eval", "+time", "+get", "+mget",   "+psetex", "+setrange"};
    words.insert(words.end(), more);
    REQUIRE(admin.command(words).text == "OK");
  };
  RedisOptions options = tcp_options(server);
  options.username = "app";
  options.password = "secret";
  options.key_prefix = "app:";

  rule({});
  {
    const auto store = make_redis_store(options);
    const Ears ears(*store);
    for (int i = 0; i < 50; ++i) {
      store->notify(key);
      REQUIRE_FALSE(Bucket(*store, quota).error("a"));
    }
    CHECK(store->stats().connections == 1);
    CHECK(store->stats().protocol_errors == 0);
    CHECK(store->stats().subscriptions == 0);
    CHECK(ears.heard() == 0);
  }
  rule({"+publish", "+subscribe", "+unsubscribe", "&app:*"});
  {
    const auto store = make_redis_store(options);
    const Ears ears(*store);
    REQUIRE(subscribed(*store));
    REQUIRE_FALSE(Bucket(*store, quota).error("a"));
    store->notify(key);
    CHECK(eventually([&] { return ears.heard() == 1; }));
    CHECK(store->stats().protocol_errors == 0);
  }
}

TEST_CASE("a watch may outlive its store, and a store its watches", "[redis][watch]") {
  RedisServer server;
  for (int i = 0; i < 30; ++i) {
    auto store = i % 2 == 0 ? connect_socket(server) : connect_tcp(server);
    std::vector<Ears> all;
    for (int k = 0; k < 20; ++k) all.emplace_back(*store, KeyArg{"a", std::to_string(k)});
    if (i % 3 == 0) REQUIRE(subscribed(*store));
    for (int k = 0; k < 20; ++k) store->notify(KeyArg{"a", std::to_string(k)});
    if (i % 5 == 0) all.clear();
    store.reset();
  }
}

TEST_CASE_METHOD(SharedServer, "who is woken may end its watch and its store", "[redis][watch]") {
  struct Ending {
    std::unique_ptr<RedisStore> store;
    std::unique_ptr<Subscription> watch;
    std::atomic<bool> over{false};
  };
  for (int round = 0; round < 10; ++round) {
    const auto ending = std::make_shared<Ending>();
    ending->store = connect_socket(server);
    RedisStore& store = *ending->store;
    ending->watch = store.subscribe(key, [ending] {
      if (ending->over) return;
      ending->watch.reset();
      ending->store.reset();
      ending->over = true;
    });
    REQUIRE(subscribed(store));
    const auto other = connect_socket(server);
    REQUIRE_FALSE(Bucket(*other, quota).error("a"));
    other->notify(key);
    CHECK(eventually([&] { return ending->over.load(); }));
  }
}

TEST_CASE_METHOD(SharedStore, "threads watch, wake and leave while calls are decided",
                 "[redis][watch]") {
  const TokenBucket bucket(*store, "api", quota);
  const Ears all(*store, {"k", "0"});
  std::atomic<std::size_t> errors{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = scaled(300, 30); i > 0; --i) {
        const std::string name = std::to_string(i % 3);
        const Ears ears(*store, {"k", name});
        store->notify({"k", name});
        std::error_code error;
        static_cast<void>(bucket.try_acquire(std::to_string(t), error));
        if (error) ++errors;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(errors == 0);
  CHECK(subscribed(*store));
  CHECK(eventually([&] {
    store->notify({"k", "0"});
    return all.heard() > 0;
  }));
  CHECK(store->stats().connections == 1);
  CHECK(store->stats().protocol_errors == 0);
}

TEST_CASE_METHOD(
    SharedServer,
    "a lease that comes back wakes who waits for it at another store, without being asked",
    "[redis][watch][waiting]") {
  for (int round = 0; round < 3; ++round) {
    const auto here = connect_socket(server);
    const auto there = connect_socket(server);
    WaitingElsewhere world(*here, *there, 1h);
    CHECK(subscribed(*there));
    CHECK_FALSE(world.granted);
    CHECK(world.held.release());
    CHECK(eventually([&] { return world.granted.load(); }));
  }
}
