// Many threads through one FallbackStore while the primary comes and goes.
#include <atomic>
#include <thread>

#include "sluice/limiters/token_bucket.hpp"
#include "sluice/memory_store.hpp"
#include "tests/fallback/rig.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

TEST_CASE("each call of many threads is answered once while the primary comes and goes",
          "[fallback]") {
  const auto server = make_memory_store();
  const auto local = make_memory_store();
  FaultyStore primary(*server);
  VirtualClock time;
  std::atomic<int> changes{0};
  CircuitBreaker breaker(time, {.failures = 3, .first_pause = 1ms, .longest_pause = 1ms},
                         [&](State, State) { ++changes; });
  FallbackStore store(primary, breaker, FailurePolicy::local(*local, 2));
  const TokenBucket bucket(store, "b", Quota::per_second(1'000).burst(100));

  const std::size_t each = scaled(20'000, 500);
  std::atomic<std::size_t> answered{0}, errors{0}, over{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&, i] {
      for (std::size_t call = 0; call < each; ++call) {
        decide_then(store, bucket.acquire_step(i % 2),
                    [&](const std::error_code& error, const Decision&) {
                      ++answered;
                      if (error) ++errors;
                    });
      }
      ++over;
    });
  }
  std::size_t outages = 0;
  while (over < 4 || outages == 0) {
    primary.fail_all(dead);
    for (int i = 0; i < 50; ++i) (void)bucket.try_acquire("0");
    primary.heal();
    while (breaker.state() != State::closed) {
      time.advance(1ms);
      (void)bucket.try_acquire("0");
    }
    ++outages;
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(answered == 4 * each);
  CHECK(errors == 0);
  const auto stats = store.stats();
  CHECK(stats.primary == primary.counts().calls);
  CHECK(stats.degraded_grants + stats.degraded_refusals > 0);
  CHECK(breaker.stats().trips >= outages);
  CHECK(breaker.state() == State::closed);
  CHECK(changes >= 3 * static_cast<int>(outages));
}

}  // namespace sluice::test
