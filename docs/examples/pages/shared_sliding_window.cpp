#include <sluice/limiters/shared_sliding_window.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>
#include <memory>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;
  const std::shared_ptr<Store> store = make_virtual_store(clock);
  const SharedSlidingWindow one(store, "rate");  // in one process
  const SharedSlidingWindow two(store, "rate");  // in another one

  one.try_configure("partner-api", RateType::overall, 5, 1s);  // does nothing if there is a rate
  for (int call = 1; call <= 5; ++call) {
    (void)two.try_acquire("partner-api");
    clock.advance(100ms);
  }
  std::cout << one.try_acquire("partner-api", 3) << '\n';

  // A higher rate applies at once, to all clients. The five units stay spent.
  one.configure("partner-api", RateType::overall, 8, 1s);
  std::cout << two.try_acquire("partner-api", 3) << '\n';
  const Reservation held = two.reserve("partner-api", 2, 10s);
  std::cout << "reserved, starts in " << held.wait().count() / 1000 << " ms\n";

  // A lower rate refuses until enough of the units have left the interval.
  one.configure("partner-api", RateType::overall, 2, 1s);
  std::cout << one.try_acquire("partner-api") << '\n';
}
