#include <sluice/calls/acquire.hpp>
#include <sluice/limiters/concurrency_limiter.hpp>
#include <sluice/limiters/lease_renewer.hpp>
#include <sluice/memory_store.hpp>

#include <atomic>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  const auto store = make_memory_store();  // for a fleet make_redis_store()
  LeaseRenewer renewer(store->clock());    // renews the places of long jobs
  const LeaseOptions lease{.ttl = 30s, .renewer = &renewer};
  const ConcurrencyLimiter per_tenant(*store, "tenant", 2, lease);
  const ConcurrencyLimiter all(*store, "workers", 5, lease);

  const std::vector<std::string> tenants{"acme", "initech", "umbrella"};
  std::map<std::string, std::atomic<int>> running;
  for (const std::string& tenant : tenants) running[tenant] = 0;
  std::atomic<int> next{0};
  std::atomic<int> done{0};
  std::atomic<int> at_once{0};
  std::atomic<bool> too_many{false};

  const auto work = [&] {
    for (int job = next++; job < 30; job = next++) {
      const std::string& tenant = tenants[static_cast<std::size_t>(job) % tenants.size()];
      // Both places are taken at one instant, or none is.
      const Grants places = acquire({{per_tenant, tenant}, {all, "all"}}, 1min);
      if (!places) continue;  // a real worker puts the job back into its queue
      if (++running.at(tenant) > 2) too_many = true;
      if (++at_once > 5) too_many = true;
      std::this_thread::sleep_for(2ms);  // the job
      --running.at(tenant);
      --at_once;
      ++done;
    }  // the places are released here, also if the job throws
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < 8; ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  std::cout << done << " jobs, " << (too_many ? "more than" : "at most")
            << " 2 of a tenant and 5 of all at once\n";
}
