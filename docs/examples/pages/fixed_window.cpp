#include <sluice/limiters/fixed_window.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>
#include <memory>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;  // begins on 2000-01-01 at midnight UTC
  const std::shared_ptr<Store> store = make_virtual_store(clock);
  const FixedWindow calls(store, "calls", 3, Calendar::every(1min));
  const FixedWindow reports(store, "reports", 50, Calendar::daily());

  clock.advance(10s);
  std::cout << calls.try_acquire("alice", 3) << '\n';
  std::cout << calls.try_acquire("alice") << '\n';

  // One plan: both are charged, or neither is.
  const auto both = [&] {
    return decide(*store, {calls.acquire_step("alice"), reports.acquire_step("alice", 20)});
  };
  std::cout << both() << '\n';
  clock.advance(50s);
  std::cout << both() << '\n';

  Reservation taken = reports.reserve("alice", 20);
  reports.settle("alice", taken, 25);
  std::cout << reports.peek("alice") << '\n';
}
