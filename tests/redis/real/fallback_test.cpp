// A real server that hangs or dies behind a breaker: how many calls reach the store, and what they
// are told. The breaker's time is the test's. Threading: the test's thread asks and disturbs.
#include "sluice/fallback_store.hpp"
#include "sluice/memory_store.hpp"
#include "sluice/virtual_clock.hpp"
#include "tests/catch.hpp"
#include "tests/redis/real/real.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

/// Calls that the Redis store has been handed while `ask` ran.
std::uint64_t reached(const RedisStore& redis, const auto& ask) {
  const auto before = redis.stats().calls;
  ask();
  return redis.stats().calls - before;
}

}  // namespace

TEST_CASE("calls to a server that hangs or died are answered without it after the trip",
          "[redis][fallback][C-036]") {
  if (redis_left_out()) return;
  const bool hangs = GENERATE(true, false);
  RedisServer server;
  RedisOptions options = socket_options(server);
  options.reconnect_max = 10ms;
  options.stall_timeout = 200ms;
  const auto redis = make_redis_store(options);
  const auto local = make_memory_store();
  VirtualClock time;
  SeededRng rng{5};
  CircuitBreaker breaker(time,
                         {.failures = 3, .first_pause = 1s, .longest_pause = 1s, .rng = &rng});
  const Span patience = 400ms;  // what a loaded machine needs to answer at all
  FallbackStore open(*redis, breaker, FailurePolicy::open(), patience);
  FallbackStore closed(*redis, breaker, FailurePolicy::closed(), patience);
  FallbackStore alone(*redis, breaker, FailurePolicy::local(*local, 2), patience);
  const auto bucket = [](Store& store) {
    return TokenBucket(store, "api", Quota::per_hour(1).burst(100));
  };
  REQUIRE(bucket(open).try_acquire("a", 40).source == Source::redis);

  hangs ? server.suspend() : server.kill();
  const auto tripping = reached(*redis, [&] {
    while (breaker.state() == CircuitBreaker::State::closed) {
      CHECK(bucket(open).try_acquire("a").source == Source::policy);
    }
  });
  CHECK(tripping == 3);
  const auto after = reached(*redis, [&] {
    for (int i = 0; i < 1000; ++i) CHECK(bucket(open).try_acquire("a"));
    for (int i = 0; i < 1000; ++i) CHECK_FALSE(bucket(closed).try_acquire("a"));
    int admitted = 0;
    for (int i = 0; i < 1000; ++i) admitted += bucket(alone).try_acquire("a") ? 1 : 0;
    CHECK(admitted == 50);
  });
  CHECK(after == 0);

  time.advance(1s);
  const auto probing = reached(*redis, [&] {
    for (int i = 0; i < 100; ++i) (void)bucket(open).try_acquire("a");
  });
  CHECK(probing == 1);

  hangs ? server.resume() : server.start();
  Decision decision;
  CHECK(eventually([&] {
    time.advance(1s);
    decision = bucket(open).try_acquire("a");
    return decision.source == Source::redis;
  }));
  CHECK(breaker.state() == CircuitBreaker::State::closed);
  // What was admitted meanwhile was not charged, but for the calls that reached a hanging server.
  if (hangs) CHECK(decision.remaining >= 59 - static_cast<Word>(redis->stats().unknown));
}
