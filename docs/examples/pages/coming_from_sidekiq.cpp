#include <sluice/calls/guarded.hpp>
#include <sluice/limiters/concurrency_limiter.hpp>
#include <sluice/limiters/token_bucket.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;
  const VirtualClock::AutoAdvance moving(clock);  // time passes while the program waits
  const auto store = make_virtual_store(clock);   // in production make_redis_store()

  // ERP = Sidekiq::Limiter.concurrent("erp", 2, wait_timeout: 5, lock_timeout: 30)
  const ConcurrencyLimiter erp(*store, "erp", 2, {.ttl = 30s});
  // ERP.within_limit do ... end
  guarded(erp, "acme", 1, 5s, [] { std::cout << "a call of the ERP\n"; });

  // SHOP = Sidekiq::Limiter.leaky("shop", 3, :minute)
  const TokenBucket shop(*store, "shop", Quota::per_minute(3));
  for (int job = 1; job <= 4; ++job) {
    try {
      guarded(shop, "acme", 1, 5s, [&] { std::cout << "job " << job << '\n'; });
    } catch (const NotGranted& over) {  // Sidekiq::Limiter::OverLimit
      std::cout << "job " << job << ": again in " << over.decision().retry_after / 1s << " s\n";
    }
  }

  // GRAPHQL = Sidekiq::Limiter.points("graphql", 1000, 50)
  const TokenBucket points(*store, "graphql", Quota::per_second(50).burst(1000));
  // GRAPHQL.within_limit(estimate: 200) { |handle| handle.points_used(120) }
  guarded(points, "acme", 200, 5s, [] { return Costed<bool>{true, 120}; });
  std::cout << points.peek("acme").remaining << " points left\n";
}
