// A user's program: one limiter on each store that the installed Sluice offers.
// Threading: single-threaded.
#include <cstdio>

#include "sluice/sluice.hpp"
#ifdef WITH_ASIO
#include "sluice/adapters/beast.hpp"
#include "sluice/asio.hpp"
#endif
#ifdef WITH_CONFIG
#include "sluice/config/limit_file.hpp"
#endif
#ifdef WITH_TESTING
#include "sluice/testing/conformance.hpp"
#endif
#ifdef WITH_TIMEZONE
#include "sluice/timezone/time_zone.hpp"
#endif
#ifdef WITH_REDIS
#include "sluice/redis/redis_store.hpp"
#endif
#ifdef WITH_WORLD
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "sluice/asio/sleep.hpp"
#include "sluice/sim/world.hpp"
#endif

namespace {

// 5 of 7 calls at the same moment fit a burst of 5.
bool admits_its_burst(const char* name, sluice::Store& store) {
  const sluice::TokenBucket bucket{store, "calls", sluice::Quota::per_minute(1).burst(5)};
  int allowed = 0;
  for (int i = 0; i < 7; ++i) {
    if (bucket.try_acquire("alice")) ++allowed;
  }
  std::printf("%s: allowed %d of 7\n", name, allowed);
  return allowed == 5;
}

#ifdef WITH_WORLD
boost::asio::awaitable<void> sleeps(sluice::Clock& clock, int& slept) {
  for (;; ++slept) co_await sluice::asio::sleep_for(clock, std::chrono::minutes{1});
}

bool lives_an_hour() {
  sluice::sim::World world;
  int slept = 0;
  boost::asio::co_spawn(world, sleeps(world.clock(), slept), boost::asio::detached);
  world.run_for(std::chrono::hours{1});
  std::printf("world: slept %d minutes\n", slept);
  return slept == 60;
}
#endif

}  // namespace

int main() {
  sluice::VirtualClock clock;
  const auto virtual_store = sluice::make_virtual_store(clock);
  if (!admits_its_burst("virtual", *virtual_store)) return 1;
  const auto memory_store = sluice::make_memory_store();
  if (!admits_its_burst("memory", *memory_store)) return 1;

#ifdef WITH_CONFIG
  const sluice::config::LimitFile limits("limits.toml", "[api]\neveryone = \"5/min\"\n");
  if (limits.quotas("api").everyone() != sluice::Quota::per_minute(5)) return 1;
  std::printf("config: 5 a minute\n");
#endif

#ifdef WITH_TIMEZONE
  const auto berlin = sluice::Calendar::daily(sluice::load_time_zone("Europe/Berlin"));
  const sluice::FixedWindow window{*virtual_store, "days", 1, berlin};
  if (!window.try_acquire("alice") || window.try_acquire("alice")) return 1;
  std::printf("timezone: one a day in Berlin\n");
#endif

#ifdef WITH_WORLD
  if (!lives_an_hour()) return 1;
#endif

#ifdef WITH_REDIS
  // No server is there: the call must end in an error, never in a decision.
  const auto redis_store = sluice::make_redis_store({.unix_socket = "no-such-socket"});
  const sluice::TokenBucket bucket{*redis_store, "calls", sluice::Quota::per_minute(1)};
  std::error_code error;
  if (bucket.try_acquire("alice", error) || !error) return 1;
  std::printf("redis: %s\n", error.message().c_str());
#endif
  return 0;
}
