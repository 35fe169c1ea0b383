#include <sluice/limiters/token_bucket.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;  // moves when the program says so
  const TokenBucket bucket(make_virtual_store(clock), "api", Quota::per_second(10).burst(5));

  std::cout << bucket.try_acquire("alice", 5) << '\n';
  std::cout << bucket.try_acquire("alice") << '\n';
  clock.advance(100ms);
  std::cout << bucket.try_acquire("alice") << '\n';

  // A reservation is a grant for a time ahead. The caller waits until then, or cancels it.
  Reservation held = bucket.reserve("alice", 3, 1s);
  std::cout << "reserved, starts in " << held.wait().count() / 1000 << " ms\n";
  std::cout << "cancelled, " << bucket.cancel("alice", held) << " tokens refunded\n";

  // A caller that knows the cost only afterwards takes an estimate and settles.
  clock.advance(1s);
  Reservation taken = bucket.reserve("alice", 5, 0s);
  std::cout << "settled, " << bucket.settle("alice", taken, 2).refunded << " tokens refunded\n";
  std::cout << bucket.peek("alice") << '\n';
}
