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
