// A limit that still holds while its store is away, by a circuit breaker and a policy.
#include <sluice/sluice.hpp>
#include <sluice/testing/faulty_store.hpp>

#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

// Production code. `redis` is the store that the fleet shares, `memory` this client's own.
void serve(Store& redis, Store& memory, int requests) {
  CircuitBreaker breaker(redis.clock(), {.failures = 3});
  FallbackStore store(redis, breaker, FailurePolicy::local(memory, 4));  // one of four clients
  const TokenBucket bucket(store, "api", Quota::per_minute(60).burst(20));
  int admitted = 0;
  int alone = 0;
  for (int i = 0; i < requests; ++i) {
    const Decision decision = bucket.try_acquire("alice");
    if (!decision) continue;
    ++admitted;
    if (is_degraded(decision.source)) ++alone;
  }
  std::cout << admitted << " admitted, " << alone << " of them without the server, which was asked "
            << store.stats().primary << " times\n";
}

int main() {
  VirtualClock clock;
  const auto server = make_virtual_store(clock);
  const auto memory = make_virtual_store(clock);
  testing::FaultyStore redis(*server);
  serve(redis, *memory, 100);
  clock.advance(1h);
  redis.fail_all(testing::Fault::not_executed(Errc::timed_out));  // it hangs
  serve(redis, *memory, 100);
}
