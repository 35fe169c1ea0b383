#include <sluice/limiters/token_bucket.hpp>
#include <sluice/prefetch_store.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);  // in production a Redis store
  PrefetchStore prefetch(*store, {.hold = 500ms, .most = 200});
  const TokenBucket bucket(prefetch, "api", Quota::per_second(1000).burst(1000));

  int granted = 0;
  for (int i = 0; i < 10'000; ++i) {
    if (bucket.try_acquire("hot")) ++granted;
    clock.advance(2ms);
  }
  const PrefetchStats busy = prefetch.stats();
  std::cout << granted << " granted, " << busy.trips << " trips\n";

  const Decision decision = bucket.try_acquire("hot");
  std::cout << to_string(decision.source) << ": " << decision.remaining << " left\n";

  clock.advance(1s);  // nobody asks: what is held goes back, or lapses
  const PrefetchStats idle = prefetch.stats();
  const auto held = idle.taken - idle.returned - idle.lapsed - 10'001;
  std::cout << "held after a second without calls: " << held << '\n';
}
