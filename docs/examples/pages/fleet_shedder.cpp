#include <sluice/limiters/fleet_shedder.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>
#include <vector>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;
  const FleetShedder fleet(make_virtual_store(clock), "api", 10,
                           {{"critical", FleetShare::percent(100)},
                            {"normal", FleetShare::percent(85)},
                            {"batch", FleetShare::places(5)}},
                           {.ttl = 30s});
  std::vector<Lease> held;  // each is released when the call that holds it ends
  const auto serve = [&](const char* tier, int calls) {
    for (int call = 0; call < calls; ++call) {
      Lease lease = fleet.try_acquire(tier);
      if (!lease) {
        const Decision& full = lease.decision();
        std::cout << tier << ": the share of " << fleet.tier_of(full) << ", " << full.limit
                  << " places, is full\n";
        return;
      }
      held.push_back(std::move(lease));
    }
    std::cout << tier << ": admitted, " << held.size() << " of 10 places are held\n";
  };
  serve("batch", 3);
  serve("critical", 2);
  serve("batch", 1);
  serve("normal", 3);
  serve("normal", 1);
  serve("critical", 2);
}
