#include <sluice/limiters/token_bucket.hpp>
#include <sluice/memory_store.hpp>
#include <sluice/virtual_clock.hpp>

#include <iostream>
#include <string>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;  // by default, the store has the system's clock
  SeededRng rng(1);    // and draws the secret of its hash by chance
  const auto store = make_memory_store({.max_keys = 1000, .clock = &clock, .rng = &rng});
  const TokenBucket bucket(*store, "logins", Quota::per_minute(10));
  const auto print = [&](const char* when) {
    const MemoryStats stats = store->stats();
    std::cout << when << ": " << stats.keys << " keys, " << stats.evicted_idle << " evicted, "
              << stats.overflowed << " decisions in shared buckets; alice has "
              << bucket.peek("alice").remaining << " left\n";
  };

  (void)bucket.try_acquire("alice", 7);
  print("a key");

  int admitted = 0;
  for (int i = 0; i < 100'000; ++i) {
    if (bucket.try_acquire("flood-" + std::to_string(i), 5)) ++admitted;
  }
  print("a flood of 100,000 keys");
  std::cout << admitted << " of them were admitted\n";

  clock.advance(1min);  // all buckets are full again: their slots serve new keys
  for (int i = 0; i < 1000; ++i) (void)bucket.try_acquire("new-" + std::to_string(i), 5);
  print("a minute later, 1000 new keys");
}
