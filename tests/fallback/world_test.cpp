// A fleet of coroutines whose server goes away for two minutes, behind a network, in virtual time.
// Threading: single-threaded.
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <vector>

#include "sluice/asio/acquire.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/sim/world.hpp"
#include "tests/fallback/rig.hpp"

namespace sluice::test {
namespace {

void rethrow(const std::exception_ptr& error) {
  if (error) std::rethrow_exception(error);
}

/// Calls whenever it may, until `end`.
boost::asio::awaitable<void> worker(const TokenBucket& bucket, Time end, std::vector<Time>& calls) {
  for (;;) {
    const Reservation grant = co_await sluice::asio::async_acquire(bucket, "upstream", 1, end);
    if (!grant) co_return;
    calls.push_back(bucket.store().clock().now());
  }
}

/// Workers that live for six minutes, of which the server is away for two.
struct Fleet {
  explicit Fleet(const FailurePolicy& policy, int workers)
      : store(primary, breaker, policy), bucket(store, "api", Quota::per_second(20).burst(5)) {
    for (int i = 0; i < workers; ++i) {
      boost::asio::co_spawn(world, worker(bucket, start + 6min, calls), rethrow);
    }
    world.run_for(2min);
    primary.fail_all(dead);
    asked = primary.counts().calls;
    world.run_for(2min);
    asked = primary.counts().calls - asked;
    primary.heal();
    world.run_for(3min);
  }

  /// Calls between two times, counted from the start.
  [[nodiscard]] auto between(Span from, Span to) const {
    return std::ranges::count_if(calls,
                                 [&](Time at) { return at >= start + from && at < start + to; });
  }

  sim::World world{{.seed = 7}};
  Time start = world.clock().now();
  std::unique_ptr<Store> remote =
      world.connect(sim::Link{sim::Delay::log_normal(1ms, 5ms), sim::Delay::log_normal(1ms, 5ms)});
  FaultyStore primary{*remote};
  SeededRng rng{7};
  CircuitBreaker breaker{world.clock(), {.failures = 3, .rng = &rng}};
  std::vector<Time> calls;
  std::uint64_t asked = 0;  // during the outage
  FallbackStore store;
  TokenBucket bucket;
};

}  // namespace

TEST_CASE("coroutines behind closed stand still in an outage, ask little, and recover",
          "[fallback][waiting][C-036]") {
  const Fleet fleet(FailurePolicy::closed(), 50);
  CHECK(fleet.between(0s, 2min) >= 2'390);
  CHECK(fleet.between(2min + 5s, 4min) == 0);  // what was reserved before comes in its time
  CHECK(fleet.asked >= 10);
  CHECK(fleet.asked <= 3 + fleet.breaker.stats().probes);
  // The longest pause after the end, at the latest, all is as before.
  CHECK(fleet.between(4min + 11s, 5min + 11s) >= 1'195);
  CHECK(fleet.between(0s, 6min) <= 5 + 20 * 360);
}

}  // namespace sluice::test
