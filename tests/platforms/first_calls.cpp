// The README's first calls on the stores of the core, and a wait that is stopped. Calls only what
// reports by std::error_code, so that it also compiles under -fno-exceptions.
#include <cstdio>
#include <string_view>
#include <thread>
#ifdef __cpp_exceptions
#include "sluice/sluice.hpp"
#else
#include "sluice/redis/redis_store.hpp"
#include "sluice/sluice.hpp"
#endif

using namespace sluice;
using namespace std::chrono_literals;

namespace {

// Three calls go, the fourth is told to wait 100 ms less what has passed.
bool calls_api(Store& store) {
  const TokenBucket bucket{store, "api", Quota::per_second(10).burst(3)};
  std::error_code error;
  for (Word left = 2; left >= 0; --left) {
    const Decision decision = bucket.try_acquire("alice", error);
    if (error || !decision || decision.remaining != left) return false;
  }
  const Decision refused = bucket.try_acquire("alice", error);
  return !error && !refused && refused.retry_after > 0s && refused.retry_after <= 100ms;
}

// A grant that is waited for, and a wait of an hour that another thread ends.
bool waits(Store& store) {
  const TokenBucket bucket{store, "waits", Quota::per_hour(1).burst(1)};
  std::error_code error;
  const auto granted = bucket.acquire("bob", 1, 10s, {}, error);
  if (error || !granted) return false;
  StopSource stop;
  std::thread stops([&] {
    while (bucket.waiting("bob") == 0) std::this_thread::yield();
    stop.request_stop();
  });
  const auto stopped = bucket.acquire("bob", 1, 2h, {.stop = stop.get_token()}, error);
  stops.join();
  return !stopped && error == Errc::cancelled;
}

bool refuses_a_priority_out_of_range(Store& store) {
  const TokenBucket bucket{store, "api", Quota::per_second(10)};
  std::error_code error;
  const auto grant = bucket.acquire("alice", 1, 1s, {.priority = 4}, error);
  return !grant && error == Errc::invalid_argument;
}

bool fails(const char* what) {
  std::printf("%s: failed\n", what);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  VirtualClock clock;
  const auto virtual_store = make_virtual_store(clock);
  const auto memory_store = make_memory_store();
  if (argc > 1 && std::string_view(argv[1]) == "misuse") {
    const TokenBucket without_a_name{*memory_store, "", Quota::per_second(10)};
    return 0;
  }
  bool good = calls_api(*virtual_store) || fails("calls on the virtual store");
  good &= calls_api(*memory_store) || fails("calls on the memory store");
  good &= waits(*memory_store) || fails("waiting");
  good &= refuses_a_priority_out_of_range(*memory_store) || fails("a priority out of range");
  return good ? 0 : 1;
}
