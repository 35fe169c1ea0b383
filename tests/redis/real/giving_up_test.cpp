// Callers that give up, in real time: what they waited for goes to the others, and what is left
// goes to the next process. Threading: each caller has a thread.
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/redis/real/real.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

/// Waits again and again, each time until it is granted, or is stopped by its stopper.
struct Impatient {
  Impatient(const TokenBucket& limit, std::atomic<int>& count, std::atomic<bool>& over)
      : thread([this, &limit, &count, &over] {
          for (;;) {
            StopToken token = renew();
            if (over) return;  // else it is stopped when that is set
            std::error_code error;
            if (limit.acquire("a", 1, 1min, {.stop = token}, error) && !error) ++count;
            if (error && error != Errc::cancelled) failed = true;
          }
        }) {}
  StopToken renew() {
    const std::lock_guard lock(mutex);
    source = StopSource();
    return source.get_token();
  }
  void give_up() {
    const std::lock_guard lock(mutex);
    source.request_stop();
  }

  std::mutex mutex;
  StopSource source;
  std::atomic<bool> failed{false};
  std::thread thread;
};

}  // namespace

TEST_CASE(
    "callers of a server who give up leave their units to the others, and to the next process",
    "[redis][waiting][giving_up]") {
  if (redis_left_out()) return;
  const RedisServer server;
  const auto store = connect_socket(server);
  const TokenBucket bucket(*store, "api", Quota::per_second(50).burst(1));
  const SystemClock clock;
  std::atomic<int> granted{0};
  std::atomic<bool> over{false};
  std::deque<Impatient> callers;
  const Time start = clock.now();
  for (int i = 0; i < 20; ++i) callers.emplace_back(bucket, granted, over);
  // Each waits for 400 ms on average until its turn, and gives up every 200 ms.
  for (std::size_t next = 0; clock.now() - start < 2s; ++next) {
    std::this_thread::sleep_for(10ms);
    callers[next % callers.size()].give_up();
  }
  over = true;
  for (Impatient& caller : callers) caller.give_up();
  for (Impatient& caller : callers) caller.thread.join();
  const double could = 50 * std::chrono::duration<double>(clock.now() - start).count();
  for (const Impatient& caller : callers) CHECK_FALSE(caller.failed);
  CAPTURE(could);
  CHECK(granted <= could + 2);
  CHECK(granted >= could / 2);  // 0.97 of it on a quiet machine
  const auto other = connect_socket(server);
  const TokenBucket next(*other, "api", Quota::per_second(50).burst(1));
  CHECK(next.peek("a").retry_after <= 40ms);
}
