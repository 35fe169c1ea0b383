// sluice_prefetch_figures: what prefetching costs and brings in simulated fleets, each row beside
// the same fleet without it.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iomanip>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "sluice/memory_store.hpp"
#include "tests/prefetch/fleet.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

const char* name_of(Spread spread) { return spread == Spread::equal ? "equal" : "zipf"; }

void row(std::size_t workers, Spread spread, Word load, bool prefetch) {
  PrefetchFleetOptions options;
  options.workers = workers;
  options.spread = spread;
  options.load = load;
  if (prefetch) options.prefetch = PrefetchStoreOptions{.hold = 60s, .most = 100};
  PrefetchFleet fleet(options);
  const Span warm = workers < 1000 ? Span{2min} : Span{20min};
  fleet.run_for(warm);
  const PrefetchFleetResult before = fleet.result();
  const Span span = workers < 1000 ? Span{10min} : Span{60min};
  fleet.run_for(span);
  PrefetchFleetResult after = fleet.result();
  const auto calls = static_cast<double>(after.calls - before.calls);
  for (std::size_t i = 0; i < workers; ++i) after.calls_of[i] -= before.calls_of[i];
  after.waits.erase(after.waits.begin(),
                    after.waits.begin() + static_cast<std::ptrdiff_t>(before.waits.size()));
  std::cout << std::setw(5) << workers << ' ' << std::setw(5) << name_of(spread) << std::setw(5)
            << load << " % " << (prefetch ? "prefetch" : "plain ") << std::fixed
            << std::setprecision(3) << "  used "
            << calls / (10'000.0 * static_cast<double>(span.count()) / 60e6) << "  jain "
            << after.jain() << "  operations a call " << std::setprecision(4)
            << static_cast<double>(after.operations - before.operations) / calls << "  p99 wait "
            << std::setprecision(1) << static_cast<double>(after.wait_at(0.99)) / 1000 << " ms  "
            << after.breach << std::endl;
}

double processor_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// The processor time of a decision of `decide()`, by so many threads at once: the least of eleven
/// rounds, since others may use the machine as well.
template <class Decide>
double nanoseconds(int threads, Decide decide) {
  constexpr int calls = 500'000;
  double least = 1e9;
  for (int round = 0; round < 11; ++round) {
    std::barrier begin(threads);
    std::vector<std::thread> all;
    std::atomic<double> sum{0};
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&] {
        begin.arrive_and_wait();
        const double start = processor_time();
        for (int call = 0; call < calls; ++call) decide();
        sum += processor_time() - start;
      });
    }
    for (std::thread& thread : all) thread.join();
    least = std::min(least, sum / (static_cast<double>(calls) * threads));
  }
  return least;
}

/// One key of a store in memory, by threads of this process.
void threads() {
  const auto memory = make_memory_store();
  PrefetchStore store(*memory, {.hold = 1s, .most = 100'000});
  const Quota quota = Quota::per_second(1000).burst(2'000'000'000);
  const TokenBucket plain(*memory, "plain", quota);
  const TokenBucket prefetch(store, "prefetch", quota);
  const BoundTokenBucket bound = plain.at("key");
  const BoundTokenBucket credit = prefetch.at("key");
  std::cout << "nanoseconds of processor time a decision\n" << std::fixed << std::setprecision(1);
  for (const int count : {1, 2}) {
    const auto tell = [count](const char* what, auto decide) {
      std::cout << "  " << what << " " << nanoseconds(count, decide);
    };
    std::cout << count << " thread(s)";
    tell("bound", [&] {
      std::error_code e;
      (void)bound.try_acquire(e);
    });
    tell("prefetch", [&] {
      std::error_code e;
      (void)credit.try_acquire(e);
    });
    tell("by name", [&] {
      std::error_code e;
      (void)plain.try_acquire("key", e);
    });
    tell("prefetch by name", [&] {
      std::error_code e;
      (void)prefetch.try_acquire("key", e);
    });
    std::cout << std::endl;
  }
}

}  // namespace
}  // namespace sluice::test

int main(int argc, char** argv) {
  using namespace sluice::test;
  if (argc == 6 && std::string(argv[1]) == "row") {
    const Spread spread = argv[3] == std::string("zipf") ? Spread::zipf : Spread::equal;
    row(std::strtoull(argv[2], nullptr, 10), spread, std::strtoll(argv[4], nullptr, 10),
        argv[5] == std::string("prefetch"));
    return 0;
  }
  if (argc == 2 && std::string(argv[1]) == "threads") {
    threads();
    return 0;
  }
  if (argc != 1) {
    std::cerr << "usage: sluice_prefetch_figures [threads | row <workers> <spread> <load> "
                 "prefetch|plain]\n";
    return 2;
  }
  for (const std::size_t workers : {10U, 200U, 2000U}) {
    for (const Spread spread : {Spread::equal, Spread::zipf}) {
      for (const sluice::Word load : {200, 90, 60}) {
        const bool is_herd = workers == 2000 && load > 100;  // thousands of refusals a call
        for (const bool prefetch : {false, true}) {
          if (prefetch || !is_herd) row(workers, spread, load, prefetch);
        }
      }
    }
  }
  return 0;
}
