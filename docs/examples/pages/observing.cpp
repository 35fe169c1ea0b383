#include <sluice/limiters/token_bucket.hpp>
#include <sluice/metrics.hpp>
#include <sluice/observed_store.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>
#include <sstream>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;
  const VirtualClock::AutoAdvance moving(clock);  // time passes while all threads wait
  Metrics metrics({.sample = 1, .clock = &clock});
  ObservedStore store(make_virtual_store(clock), metrics);

  const TokenBucket bucket(store, "api", Quota::per_second(10).burst(5));
  for (int i = 0; i < 8; ++i) (void)bucket.try_acquire(i < 7 ? "alice" : "bob");
  (void)bucket.acquire("alice", 1, 1s);  // waits for 100 ms

  std::istringstream page(metrics.text());  // a program sends it to Prometheus
  for (std::string line; std::getline(page, line);) {
    if (line[0] != '#' && line.find("_bucket") == std::string::npos) std::cout << line << '\n';
  }
  for (const BusyKey& busy : metrics.busiest(Metrics::Busy::refused)) {
    std::cout << busy.limiter << " refused " << busy.key << " " << busy.count << " times\n";
  }
}
