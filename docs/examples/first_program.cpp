#include <sluice/limiters/token_bucket.hpp>
#include <sluice/memory_store.hpp>

#include <iostream>

int main() {
  using namespace sluice;
  const TokenBucket bucket(make_memory_store(), "api", Quota::per_second(10).burst(3));
  for (int call = 1; call <= 4; ++call) {
    const Decision decision = bucket.try_acquire("alice");
    if (decision) std::cout << "go, " << decision.remaining << " left\n";
    if (!decision) std::cout << "wait " << decision.retry_after.count() << " us\n";
  }
}
