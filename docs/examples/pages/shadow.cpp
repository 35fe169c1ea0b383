#include <sluice/calls/acquire.hpp>
#include <sluice/limiters/token_bucket.hpp>
#include <sluice/metrics.hpp>
#include <sluice/observed_store.hpp>
#include <sluice/shadow_store.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;
  const VirtualClock::AutoAdvance moving(clock);  // time passes while all threads wait
  Metrics metrics;
  const auto inner = make_virtual_store(clock);
  ShadowStore trial(*inner, metrics, {"api-50"});
  ObservedStore store(trial, metrics);

  const TokenBucket now(store, "api", Quota::per_second(100));
  const TokenBucket next(store, "api-50", Quota::per_second(50));
  const auto a_minute_of_calls = [&] {
    const Time begin = clock.now();
    for (int i = 0; i < 4'500; ++i) (void)acquire({{now, "partner"}, {next, "partner"}}, 1h);
    const auto taken = std::chrono::duration_cast<std::chrono::seconds>(clock.now() - begin);
    std::cout << "4500 calls in " << taken.count() << " s, "
              << metrics.counts("api-50").shadow_refusals << " would have been refused\n";
  };
  a_minute_of_calls();
  trial.set_shadows({});  // from now on it is obeyed
  a_minute_of_calls();
}
