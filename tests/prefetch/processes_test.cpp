// Prefetched units of processes that are killed, and stopped for longer than `hold`, on a real
// server; the judge counts the calls. Threading: the main thread.
#include <chrono>
#include <thread>

#include "sluice/testing/invariants.hpp"
#include "tests/catch.hpp"
#include "tests/prefetch/processes.hpp"
#include "tests/support/redis_server.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

TEST_CASE("kill -9 and SIGSTOP for longer than hold break no bound", "[redis][prefetch]") {
  if (redis_left_out()) return;
  Random random("kill -9 and SIGSTOP for longer than hold break no bound");
  CAPTURE(random.repeat());
  RedisServer server;
  constexpr Span hold = 300ms;
  ProcessesOptions options{.unix_socket = server.unix_socket()};
  options.prefetch = PrefetchStoreOptions{.hold = hold, .most = 100};
  Processes processes(options);
  std::this_thread::sleep_for(500ms);
  Word stops = 0;
  for (std::size_t i = 0; i < scaled(4); ++i) {
    const auto one = static_cast<std::size_t>(random.between(0, 3));
    const auto other = (one + 1) % 4;
    processes.stop(one);
    std::this_thread::sleep_for(Span{random.between(0, 200'000)});
    processes.replace(other);
    std::this_thread::sleep_for(hold + Span{random.between(0, 500'000)});
    processes.resume(one);
    ++stops;
    std::this_thread::sleep_for(Span{random.between(50'000, 300'000)});
  }
  processes.end();
  const testing::History calls = processes.calls();
  CHECK(calls.size() > 2000);
  // A process may be stopped between a decision and its call: one call a stop comes late.
  const Word late = 2000 * hold.count() / 1'000'000 + stops + 1;
  const auto breach =
      testing::check_rate(calls, {.burst = 200 + late, .units = 2000, .period = 1s});
  INFO((breach ? breach->what : ""));
  CHECK_FALSE(breach);
  // The checker would see it: without the share of `hold`, in most runs, nothing holds either.
  CHECK(testing::check_rate(calls, {.burst = 1, .units = 1000, .period = 1s}));
}

}  // namespace sluice::test
