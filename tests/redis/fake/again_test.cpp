// What a server says that will pass, and a connection that ends between two calls: calls and
// connections are tried again. Threading: as calls_test.cpp.
#include "sluice/circuit_breaker.hpp"
#include "sluice/fallback_store.hpp"
#include "tests/catch.hpp"
#include "tests/redis/asking.hpp"
#include "tests/redis/fake/server.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const Quota quota = Quota::per_second(10);

RedisOptions options_for(const FakeServer& server) {
  RedisOptions options;
  options.port = server.port();
  options.connect_timeout = 5s;
  options.stall_timeout = 1h;
  return options;
}

struct Said {
  const char* reply;
  Errc code;
};

/// What passes.
const std::vector<Said> passing{{"-LOADING wait\r\n", Errc::loading},
                                {"-READONLY a replica\r\n", Errc::read_only},
                                {"-MASTERDOWN link\r\n", Errc::master_down},
                                {"-TRYAGAIN later\r\n", Errc::try_again},
                                {"-CLUSTERDOWN slot\r\n", Errc::cluster_down}};

/// Refuses calls with a word as long as the test wants, and counts them.
struct Refusing {
  std::string reply;
  std::atomic<bool> refuses{true};
  std::atomic<int> refused{0};
  FakeServer server{[this](Peer& peer, int) {
    for (Word at = 1; const auto call = peer.read_call(); ++at) {
      const bool no = refuses;
      if (no) ++refused;
      if (!peer.send(no ? reply : allowing(*call, at))) return;
    }
  }};
};

}  // namespace

TEST_CASE("a call that meets what will pass is tried again and decided", "[fake]") {
  for (const auto& [reply, code] : passing) {
    CAPTURE(reply);
    Refusing it{reply};
    const auto store = make_redis_store(options_for(it.server));
    const Bucket bucket(*store, quota);
    Asked asked;
    bucket.ask(asked, "a", 1h);
    REQUIRE(eventually([&] { return it.refused >= 4; }));
    CHECK(asked.answers == 0);
    it.refuses = false;
    CHECK_FALSE(asked.wait().error);
    CHECK(asked.answers == 1);
    CHECK(store->stats().unknown == 0);
  }
}

TEST_CASE("a call that meets nothing else until its deadline ends with what it met", "[fake]") {
  for (const Said& said : passing) {
    CAPTURE(said.reply);
    const Errc code = said.code;
    Refusing it{said.reply};
    it.refuses = false;
    const auto store = make_redis_store(options_for(it.server));
    const Bucket bucket(*store, quota);
    REQUIRE_FALSE(bucket.error("a", 1h));
    it.refuses = true;
    CHECK(eventually([&] {
      it.refused = 0;
      const Time since = store->clock().now();
      const auto error = bucket.error("a", 200ms);
      CHECK(store->clock().now() - since >= Span{200ms});
      CHECK(it.refused <= 40);  // pauses of 5 ms and more
      // An attempt that is under way when the time is over leaves the call unknown: rare, and true.
      if (it.refused > 0) CHECK((error == code || error == Errc::unknown));
      return error == code && it.refused >= 2;
    }));
  }
}

TEST_CASE("what a server says for good ends a call at once", "[fake]") {
  const std::vector<Said> lasting{{"-OOM x\r\n", Errc::out_of_memory},
                                  {"-NOREPLICAS x\r\n", Errc::no_replicas},
                                  {"-MISCONF x\r\n", Errc::misconfigured},
                                  {"-BUSY x\r\n", Errc::busy},
                                  {"-NOPERM x\r\n", Errc::no_permission}};
  for (const auto& [reply, code] : lasting) {
    CAPTURE(reply);
    Refusing it{reply};
    const auto store = make_redis_store(options_for(it.server));
    CHECK(Bucket(*store, quota).error("a", Span::max()) == code);
    CHECK(it.refused == 1);
  }
}

TEST_CASE("a stop request and the end of the store end a call in its pause, as not executed",
          "[fake]") {
  // A call that is under way just then is unknown: not in every round.
  std::size_t cancelled = 0;
  std::size_t shut_down = 0;
  CHECK(eventually([&] {
    Refusing it{"-LOADING wait\r\n"};
    Asked stopped, shut;
    auto store = make_redis_store(options_for(it.server));
    const Bucket bucket(*store, quota);
    std::stop_source stop;
    bucket.ask(stopped, "a", Span::max(), stop.get_token());
    bucket.ask(shut, "a", Span::max());
    REQUIRE(eventually([&] { return it.refused >= 8; }));
    // Its words are heard well before the shortest pause of 5 ms is over.
    const Time heard = store->clock().now() + 2ms;
    REQUIRE(eventually([&] { return store->clock().now() >= heard; }));
    stop.request_stop();
    CHECK((stopped.wait().error == Errc::cancelled || stopped.error == Errc::unknown));
    store.reset();
    CHECK(shut.answers == 1);
    CHECK((shut.error == Errc::shut_down || shut.error == Errc::unknown));
    cancelled += stopped.error == Errc::cancelled ? 1U : 0U;
    shut_down += shut.error == Errc::shut_down ? 1U : 0U;
    return cancelled > 0 && shut_down > 0;
  }));
}

TEST_CASE("calls in their pauses count as in flight", "[fake]") {
  Refusing it{"-LOADING wait\r\n"};
  RedisOptions options = options_for(it.server);
  options.max_in_flight = 3;
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  Crowd crowd(3);
  for (std::size_t i = 0; i < crowd.size(); ++i) bucket.ask(crowd[i], "a", 1h);
  REQUIRE(eventually([&] { return it.refused >= 6; }));
  for (int i = 0; i < 10; ++i) CHECK(bucket.error("a", 1h) == Errc::queue_full);
  it.refuses = false;
  REQUIRE(crowd.wait());
  CHECK(crowd.count([](const Asked& call) { return !call.error; }) == 3);
  CHECK_FALSE(bucket.error("a", 1h));
}

TEST_CASE("behind a fallback store a server that is loading costs a call its patience, and no more",
          "[fake][fallback]") {
  Refusing it{"-LOADING wait\r\n"};
  const auto redis = make_redis_store(options_for(it.server));
  CircuitBreaker breaker(redis->clock(), {.failures = 1000});
  FallbackStore store(*redis, breaker, FailurePolicy::open());
  const TokenBucket bucket(store, "api", quota);
  // On a busy machine the first call may end before there is a connection.
  CHECK(eventually([&] {
    CHECK(bucket.try_acquire("a").source == Source::policy);
    return it.refused >= 1;
  }));
  CHECK(store.stats().failures >= 1);
  it.refuses = false;
  CHECK(eventually([&] { return bucket.try_acquire("a").source == Source::redis; }));
}

TEST_CASE("a connection that decided a call was a good one, however short", "[fake]") {
  FakeServer server([](Peer& peer, int number) {
    const auto call = peer.read_call();
    if (call) peer.send(allowing(*call, number + 1));
  });
  RedisOptions options = options_for(server);
  // Pauses that grew would be longer than the test's patience by far.
  options.reconnect_min = 1ms;
  options.reconnect_max = 24h;
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  // A call that meets the end of the connection may be unknown.
  for (int decided = 0; decided < 60;) decided += bucket.error("a", 1h) ? 0 : 1;
  CHECK(store->stats().connections >= 60);
}

TEST_CASE("a connection that only refused is come back to by the back-off", "[fake]") {
  FakeServer server([](Peer& peer, int) {
    while (peer.read_call()) {
      if (!peer.send("-READONLY a replica\r\n")) return;
    }
  });
  RedisOptions options = options_for(server);
  Crowd crowd(100);
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  const SystemClock clock;
  const Time begin = clock.now();
  for (std::size_t i = 0; i < crowd.size(); ++i) bucket.ask(crowd[i], "a", 1h);
  REQUIRE(eventually([&] { return server.connections() >= 16; }));
  // The pauses are drawn from [0, 10 ms * 2^n), at most 250 ms: that 15 of them take less than
  // 200 ms is less likely than 2^-28.
  CHECK(clock.now() - begin > 200ms);
}
