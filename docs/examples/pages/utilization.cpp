#include <sluice/limiters/sampler.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>
#include <vector>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;
  SeededRng rng(1);  // draws which calls are shed; by default a generator of the thread
  const UtilizationShedder shedder(make_virtual_store(clock), "api",
                                   {.most_critical_first = {"payments", "analytics", "test"}}, rng);
  BusyWorkers workers(2);
  Sampler sampler(shedder, workers, {.period = 8s, .jitter = false});

  const auto first = workers.begin();  // held by a worker while it serves a call
  const auto second = workers.begin();
  for (int seconds = 0; seconds <= 160; seconds += 8) {
    sampler.poke();  // in each call; takes a sample when one is due
    if (seconds % 40 == 0) {
      int admitted = 0;
      for (int call = 0; call < 1000; ++call) admitted += shedder.try_acquire("test") ? 1 : 0;
      const std::vector<double> shed = shedder.report().probabilities;
      std::cout << seconds << " s: shed " << shed[2] << " of test, " << shed[1] << " of analytics, "
                << shed[0] << " of payments; " << admitted << " of 1000 test calls admitted\n";
    }
    clock.advance(8s);
  }
}
