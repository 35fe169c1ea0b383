#include <sluice/calls/call.hpp>
#include <sluice/limiters/gates.hpp>
#include <sluice/limiters/slot_lock.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>
#include <map>
#include <string>

using namespace sluice;
using namespace std::chrono_literals;

/// The sites, in the place of HTTP. A real one asks for a pause by 429 or 503 and a Retry-After.
struct Web {
  std::string get(const std::string& site, int page) {
    if (site == "example.org" && ++requests[site] == 3) throw RateLimited(30s);
    return site + "/" + std::to_string(page);
  }
  std::map<std::string, int> requests{};
};

class Crawler {
 public:
  explicit Crawler(const StoreHandle& store)
      : slots_(store, "requests", 1s), gates_(store, "sites", {"site"}) {}

  /// Waits for the next slot of the site and for its gate, then fetches. A site that refuses is
  /// closed for every crawler, for as long as it says, and the page is fetched after that.
  std::string fetch(Web& web, const std::string& site, int page) const {
    const Scope gate = gates_.scope("site", site);
    const Call call({{slots_, site}, {gates_, gate}}, {.deadline = 5min, .attempts = 3});
    return call([&] { return web.get(site, page); });
  }

 private:
  SlotLock slots_;
  Gates gates_;
};

int main() {
  VirtualClock clock;
  const VirtualClock::AutoAdvance moving(clock);     // time passes while the program waits
  const Crawler crawler(make_virtual_store(clock));  // in production make_redis_store()
  Web web;
  const Time start = clock.now();
  for (int page = 1; page <= 4; ++page) {
    for (const char* site : {"example.com", "example.org"}) {
      const std::string fetched = crawler.fetch(web, site, page);
      std::cout << (clock.now() - start) / 1s << " s: " << fetched << '\n';
    }
  }
}
