#include <sluice/calls/acquire.hpp>
#include <sluice/limiters/concurrency_limiter.hpp>
#include <sluice/limiters/sampler.hpp>
#include <sluice/limiters/token_bucket.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>
#include <vector>

using namespace sluice;
using namespace std::chrono_literals;

struct Admitted {
  int status;       ///< 200; 429: the client asks too much; 503: the service has too much to do
  Grants places{};  ///< released when the request has been served
};

/// What stands before the handlers of one process.
struct Door {
  explicit Door(Store& store)
      : clients(store, "client", Quota::per_second(5).burst(3)),
        requests(store, "requests", 4),
        shedder(store, "service", {.most_critical_first = {"orders", "reports"}}) {}

  Admitted admit(const char* client, const char* tier) {
    sampler.poke();
    if (!shedder.try_acquire(tier)) return {503};
    Grants granted = acquire({{clients, client}, {requests, "all"}}, 0s);
    if (granted) return {200, std::move(granted)};
    return {granted.decision().step == 0 ? 429 : 503};
  }

  TokenBucket clients;
  ConcurrencyLimiter requests;
  UtilizationShedder shedder;
  BusyWorkers workers{4};  // each handler holds workers.begin()
  Sampler sampler{shedder, workers};
};

int main() {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);  // in production make_memory_store()
  Door door(*store);
  std::cout << "alice:";
  for (int i = 0; i < 4; ++i) std::cout << ' ' << door.admit("alice", "orders").status;

  std::vector<Admitted> served;
  std::cout << "\nsix clients at once:";
  for (const char* client : {"bob", "carol", "dave", "erin", "frank", "grace"}) {
    served.push_back(door.admit(client, "orders"));
    std::cout << ' ' << served.back().status;
  }
  served.clear();

  std::vector<BusyWorkers::Busy> busy;  // all workers are busy, for three minutes
  while (busy.size() < 4) busy.push_back(door.workers.begin());
  for (int i = 0; i < 22; ++i, clock.advance(8s)) (void)door.admit("probe", "reports");
  std::cout << "\noverloaded: a report " << door.admit("bob", "reports").status << ", an order "
            << door.admit("bob", "orders").status << '\n';
}
