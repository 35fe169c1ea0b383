#include <sluice/limiters/token_bucket.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;
  const VirtualClock::AutoAdvance moving(clock);  // time passes while all threads wait
  const TokenBucket bucket(make_virtual_store(clock), "api", Quota::per_minute(2).burst(1));
  const Time start = clock.now();
  const auto passed = [&] { return (clock.now() - start) / 1s; };

  for (int call = 1; call <= 3; ++call) {
    const Reservation grant = bucket.acquire("alice", 1, 45s);  // blocks this thread
    std::cout << "call " << call << (grant ? ": granted" : ": refused") << " at " << passed()
              << " s\n";
  }

  // It cannot be granted within 10 s. So it is refused at once, and nothing is charged.
  const Reservation late = bucket.acquire("alice", 1, 10s);
  std::cout << late << ", at " << passed() << " s\n";
}
