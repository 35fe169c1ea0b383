#include <sluice/redis/redis_store.hpp>
#include <sluice/sluice.hpp>

#include <exception>
#include <iostream>

using namespace sluice;

void call_api(const StoreHandle& store) {
  const TokenBucket bucket{store, "api", Quota::per_second(10).burst(3)};
  for (int call = 1; call <= 4; ++call) {
    const Decision decision = bucket.try_acquire("alice");
    if (decision) std::cout << "go, " << decision.remaining << " left\n";
    if (!decision) std::cout << "wait " << decision.retry_after.count() << " us\n";
  }
}

int main(int argc, char** argv) try {
  VirtualClock clock;
  call_api(make_memory_store());        // one process
  call_api(make_virtual_store(clock));  // a unit test, in which time stands still
  call_api(make_redis_store({.unix_socket = argc > 1 ? argv[1] : ""}));  // a whole fleet
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
