#include <sluice/limiters/token_bucket.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);  // in production make_redis_store()

  // limiter := redis_rate.NewLimiter(rdb)
  // limit := redis_rate.Limit{Rate: 10, Burst: 5, Period: time.Second}
  const TokenBucket limiter(*store, "api", Quota::per_second(10).burst(5));

  // res, err := limiter.AllowN(ctx, "alice", limit, 3)
  Decision res = limiter.try_acquire("alice", 3);
  std::cout << res.allowed << ", " << res.remaining << " left\n";

  // res, err = limiter.AllowN(ctx, "alice", limit, 3)
  res = limiter.try_acquire("alice", 3);
  std::cout << res.allowed << ", again in " << res.retry_after / 1ms << " ms\n";

  // res, err = limiter.AllowAtMost(ctx, "alice", limit, 4)
  const Reservation most = limiter.try_acquire_up_to("alice", 4);
  std::cout << most.granted << " of 4\n";

  limiter.reset("alice");  // limiter.Reset(ctx, "alice")
}
