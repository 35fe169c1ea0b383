// sluice_prefetch_redis: processes that saturate one key of a real server, with prefetched units
// and without.
#include <chrono>
#include <iomanip>
#include <iostream>
#include <thread>

#include "sluice/extend/operation.hpp"
#include "tests/prefetch/processes.hpp"
#include "tests/support/redis_server.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

void run(const char* what, const RedisServer& server, const Quota& quota, bool prefetch) {
  ProcessesOptions options{.unix_socket = server.unix_socket()};
  options.quota = quota;
  options.sleeps = false;
  if (prefetch) options.prefetch = PrefetchStoreOptions{.hold = 500ms, .most = 10'000};
  Processes processes(options);
  std::this_thread::sleep_for(1s);
  const std::uint64_t before = processes.decisions();
  const auto start = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(3s);
  const std::uint64_t decisions = processes.decisions() - before;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  processes.end();
  std::cout << what << (prefetch ? "  prefetch" : "  plain   ") << std::fixed
            << std::setprecision(0) << static_cast<double>(decisions) / took.count()
            << " decisions/s, median " << processes.median() << " ns" << std::setprecision(2)
            << ", operations per 1000 "
            << 1000.0 * static_cast<double>(processes.operations()) /
                   static_cast<double>(processes.decisions())
            << ", errors " << processes.errors() << std::endl;
}

}  // namespace
}  // namespace sluice::test

int main() {
  using namespace sluice;
  using namespace sluice::test;
  const RedisServer server;
  for (const bool prefetch : {false, true}) {
    run("granted", server, Quota::per_second(50'000'000).burst(50'000'000), prefetch);
  }
  for (const bool prefetch : {false, true}) {
    run("refused", server, Quota::per_second(1000).burst(1000), prefetch);
  }
  return 0;
}
