#include <sluice/limiters/sliding_window_counter.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;  // begins at midnight, where windows of a minute begin as well
  const SlidingWindowCounter limit(make_virtual_store(clock), "minute", {10, 1min});
  std::cout << "at most " << limit.worst_case() << " units in any minute\n";

  clock.advance(59s);
  std::cout << limit.try_acquire("alice", 10) << '\n';
  clock.advance(1s);  // the next window: the ten units still count in full
  std::cout << limit.try_acquire("alice") << '\n';
  clock.advance(6s);  // ... and now they count as nine
  Reservation taken = limit.reserve("alice", 1);
  std::cout << taken << '\n';

  std::cout << limit.refund("alice", taken, 1) << " unit refunded\n";
  limit.block("alice", 24s);  // an API has asked to wait
  std::cout << limit.try_acquire("alice") << '\n';
  clock.advance(24s);  // half of the window has passed: the ten units count as five
  std::cout << limit.peek("alice") << '\n';
}
