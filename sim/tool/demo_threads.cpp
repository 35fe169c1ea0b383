// Real threads on one key of a memory store. The quota is a promise about every interval, so the
// most that may be admitted follows from the time between the first and the last decision.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "cli/text.hpp"
#include "sim/log/load.hpp"
#include "sim/tool/demo.hpp"
#include "sluice/memory_store.hpp"

namespace sluice::tool {

int run_threads() {
  const unsigned count = std::clamp(std::thread::hardware_concurrency(), 2U, 8U);
  const Quota quota = Quota::per_second(100'000).burst(1'000);
  const auto store = make_memory_store();
  const TokenBucket bucket(*store, "demo", quota);
  const BoundTokenBucket bound = bucket.at("everyone");

  std::vector<LoadCounts> counts(count);
  std::vector<std::thread> threads;
  threads.reserve(count);
  std::atomic<unsigned> ready{0};
  const Time end = store->clock().now() + load_length;
  for (LoadCounts& mine : counts) {
    threads.emplace_back([&] {
      ready.fetch_add(1);
      while (ready.load() < count) std::this_thread::yield();
      mine = run_load(store->clock(), end,
                      [&](std::error_code& error) { return bound.try_acquire(error); });
    });
  }
  for (std::thread& thread : threads) thread.join();

  LoadCounts total;
  for (const LoadCounts& mine : counts) total.add(mine);
  fmt::print("\n{} on one key of the memory store, as fast as they can, for {}\n",
             plural(count, "real thread"), duration(load_length));
  return print_load(total, quota);
}

}  // namespace sluice::tool
