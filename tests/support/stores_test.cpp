// One body on every store. Threading: single-threaded.
#include "tests/support/stores.hpp"

#include <set>

#include "sluice/limiters/token_bucket.hpp"
#include "tests/catch.hpp"
#include "tests/support/redis_server.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

TEST_CASE("a body runs once on each store, with its clock", "[support][redis]") {
  std::set<Source> seen;
  std::size_t runs = 0;
  for_each_store([&](Store& store, VirtualClock& clock) {
    const TokenBucket bucket(store, "t", Quota::per_second(1).burst(1));
    CHECK(&store.clock() == &clock);
    CHECK(clock.now() == VirtualClock::default_start);
    const Decision d = bucket.try_acquire("a");
    CHECK(d.allowed);  // nothing is left of the body before
    CHECK(d.at == clock.now());
    seen.insert(d.source);
    ++runs;
  });
  const Stores chosen = chosen_stores();
  const bool redis = chosen != Stores::local && !without_redis();
  const std::size_t stores = (chosen == Stores::redis_and_virtual ? 1U : 2U) + (redis ? 1U : 0U);
  CHECK(runs == stores);
  CHECK(seen.size() == stores);
}

TEST_CASE("the token bucket decides by the same integers on every store",
          "[support][redis][token_bucket]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const TokenBucket bucket(store, "t", Quota::per_second(10).burst(5));
    const auto check = [&](Word cost, bool allowed, Word remaining, Span retry, Span reset) {
      const Decision d = bucket.try_acquire("a", cost);
      CHECK(d.allowed == allowed);
      CHECK(d.remaining == remaining);
      CHECK(d.retry_after == retry);
      CHECK(d.reset_after == reset);
      CHECK(d.at == clock.now());
    };
    check(5, true, 0, 0us, 500ms);
    check(1, false, 0, 100ms, 500ms);
    clock.advance(100ms - 1us);
    check(1, false, 0, 1us, 400'001us);
    clock.advance(1us);
    check(1, true, 0, 0us, 500ms);
    clock.advance(-24h);  // the stamp is given up: one request passes, and time restarts
    check(1, true, 0, 0us, 500ms);
    check(1, false, 0, 100ms, 500ms);
    clock.advance(100ms);
    check(1, true, 0, 0us, 500ms);
    clock.advance(2h);  // whether or not the state was collected
    check(5, true, 0, 0us, 500ms);
  });
}
