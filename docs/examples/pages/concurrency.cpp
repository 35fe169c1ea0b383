#include <sluice/limiters/concurrency_limiter.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;
  const ConcurrencyLimiter jobs(make_virtual_store(clock), "jobs", 2, {.ttl = 60s});

  {
    const Lease lease = jobs.try_acquire("alice");
    std::cout << lease.decision() << '\n';
  }  // the place is released here, also if the job throws
  std::cout << jobs.peek("alice") << '\n';

  Lease first = jobs.try_acquire("alice");
  clock.advance(10s);
  Lease second = jobs.try_acquire("alice");
  clock.advance(10s);
  std::cout << jobs.try_acquire("alice").decision() << '\n';

  // The first holder hangs, the second one renews. After the TTL the first place is free.
  std::cout << std::boolalpha << "renewed: " << second.renew() << '\n';
  clock.advance(40s);
  const Lease third = jobs.try_acquire("alice");
  std::cout << third.decision() << '\n';
  std::cout << "the first lease is lost: " << first.lost() << ", released: " << first.release()
            << '\n';
  std::cout << "its fence is lower: " << (first.fence() < third.fence()) << '\n';
}
