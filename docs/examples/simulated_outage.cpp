// An outage of the store, under two failure policies.
#include <sluice/sim/run.hpp>

#include <iostream>

using namespace sluice::sim;
using namespace std::chrono_literals;

void rehearse_outage(const char* name, StoreOptions::OnFailure policy) {
  Scenario scenario;
  scenario.duration = 3min;
  scenario.arrivals.rate = {80, 1s};
  scenario.limiter.limit = {100, 1s};
  scenario.store.on_failure = policy;
  scenario.faults = {{.kind = FaultPlan::Kind::store_down, .at = 1min, .length = 30s}};
  const RunResult result = run(scenario, {.recovery = 5s});
  std::cout << name << ": " << result.figures[Metric::wait_p99] / 1000 << " s of wait (p99), "
            << result.figures[Metric::grants_without_store] << " grants without the store, "
            << result.objections.size() << " objections\n";
}

int main() {
  rehearse_outage("closed", StoreOptions::OnFailure::closed);
  rehearse_outage("local", StoreOptions::OnFailure::local);
}
