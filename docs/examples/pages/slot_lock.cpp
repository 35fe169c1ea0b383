#include <sluice/limiters/slot_lock.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;
  const SlotLock lock(make_virtual_store(clock), "partner", 1s, {.slack = 100ms});

  SlotPermit last;
  for (int caller = 1; caller <= 4; ++caller) {
    const SlotPermit permit = lock.reserve("token", 2s);  // waits 2 s at most
    if (permit) {
      std::cout << "caller " << caller << ": call in " << permit.wait().count() / 1000 << " ms\n";
      last = permit;
    } else {
      const Span retry_after = permit.retry_after;
      std::cout << "caller " << caller << ": ask again in " << retry_after.count() / 1000
                << " ms\n";
    }
  }

  std::cout << lock.cancel("token", last) << " slot refunded\n" << std::boolalpha;
  last = lock.reserve("token", 2s);
  clock.advance(last.wait());
  std::cout << "on time: " << last.valid_at(clock.now()) << '\n';
  clock.advance(200ms);  // longer than the slack: the call would be too close to the next one
  std::cout << "after a stall: " << last.valid_at(clock.now()) << '\n';
}
