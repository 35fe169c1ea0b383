// sluice_leased_redis: processes that saturate one key of a real server, with leases and without.
#include <chrono>
#include <iomanip>
#include <iostream>
#include <thread>

#include "tests/leased/processes.hpp"
#include "tests/support/redis_server.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

void run(const char* what, const RedisServer& server, const Quota& quota, bool leased) {
  ProcessesOptions options{.unix_socket = server.unix_socket()};
  options.quota = quota;
  options.sleeps = false;
  if (leased) options.leased = LeasedStoreOptions{.hold = 500ms, .most = 10'000};
  Processes processes(options);
  std::this_thread::sleep_for(1s);
  const std::uint64_t before = processes.decisions();
  const auto start = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(3s);
  const std::uint64_t decisions = processes.decisions() - before;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  processes.end();
  std::cout << what << (leased ? "  leased  " : "  plain   ") << std::fixed << std::setprecision(0)
            << static_cast<double>(decisions) / took.count() << " decisions/s, median "
            << processes.median() << " ns" << std::setprecision(2) << ", operations per 1000 "
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
  for (const bool leased : {false, true}) {
    run("granted", server, Quota::per_second(50'000'000).burst(50'000'000), leased);
  }
  for (const bool leased : {false, true}) {
    run("refused", server, Quota::per_second(1000).burst(1000), leased);
  }
  return 0;
}
