#include <sluice/fallback_store.hpp>
#include <sluice/limiters/token_bucket.hpp>
#include <sluice/memory_store.hpp>
#include <sluice/redis/redis_url.hpp>

#include <exception>
#include <iostream>
#include <memory>

using namespace sluice;

/// The service. It does not know where its limits are kept.
void serve(const StoreHandle& store) {
  const TokenBucket bucket(store, "api", Quota::per_hour(60).burst(20));
  int admitted = 0;
  int alone = 0;
  for (int request = 1; request <= 25; ++request) {
    const Decision decision = bucket.try_acquire("alice");
    if (decision) ++admitted;
    if (decision && is_degraded(decision.source)) ++alone;
  }
  std::cout << admitted << " of 25 admitted, " << alone << " of them without Redis\n";
}

int main(int argc, char** argv) try {
  const std::shared_ptr<Store> memory = make_memory_store();
  if (argc < 2) {  // one process
    serve(memory);
    return 0;
  }
  // A fleet of four processes. While Redis is away, each decides in memory by a quarter.
  const std::shared_ptr<Store> redis = make_redis_store(parse_redis_url(argv[1]));
  CircuitBreaker breaker(redis->clock());
  serve(std::make_shared<FallbackStore>(redis, breaker, FailurePolicy::local(memory, 4)));
} catch (const std::exception& error) {  // a URL that is wrong
  std::cerr << error.what() << '\n';
  return 1;
}
