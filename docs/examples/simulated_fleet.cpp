// An hour of 200 workers that call an API with a limit, without a limiter and with one.
#include <sluice/sim/fleet.hpp>

#include <iostream>

using namespace sluice::sim;

void simulate(const char* name, Limiting limiting) {
  Fleet fleet({.limiting = limiting, .seed = 7});
  fleet.run_for(std::chrono::hours{1});
  const FleetResult result = fleet.result();
  std::cout << name << ": " << result.successes << " successes, " << result.rejected
            << " calls refused by the API, " << result.ideal_successes << " possible\n";
}

int main() {
  simulate("no limiter", Limiting::none);
  simulate("one shared limiter", Limiting::shared);
}
