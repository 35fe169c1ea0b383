#include <sluice/limiters/shared_sliding_window.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;
  const VirtualClock::AutoAdvance moving(clock);  // time passes while the program waits
  const auto store = make_virtual_store(clock);   // in production make_redis_store()
  const Time start = clock.now();

  // RRateLimiter limiter = redisson.getRateLimiter("partner");
  const SharedSlidingWindow limiter(*store, "rates");

  // limiter.trySetRate(RateType.OVERALL, 5, Duration.ofSeconds(2));
  limiter.try_configure("partner", RateType::overall, 5, 2s);

  // if (limiter.tryAcquire(4)) ...
  if (limiter.try_acquire("partner", 4)) std::cout << "4 permits\n";

  // if (limiter.tryAcquire(3, Duration.ofSeconds(10))) ...
  Reservation permits = limiter.acquire("partner", 3, 10s);
  if (permits) std::cout << "3 permits after " << (clock.now() - start) / 1s << " s\n";

  // limiter.release(2);
  limiter.refund("partner", permits, 2);
  std::cout << limiter.peek("partner").remaining << " available\n";  // availablePermits()

  // limiter.setRate(RateType.OVERALL, 20, Duration.ofSeconds(2));  which forgets what is spent
  limiter.configure("partner", RateType::overall, 20, 2s, SpentUnits::forgotten);
  std::cout << limiter.peek("partner").remaining << " available\n";
}
