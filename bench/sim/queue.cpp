// Customers a second of M/M/1 at a load of 0.9: two callbacks a customer on the Timeline, and a
// coroutine a customer with a Resource of a World. items_per_second is customers a second.
// Threading: single-threaded.
#include <benchmark/benchmark.h>

#include <deque>

#include "bench/sim/spans.hpp"
#include "sluice/asio/sleep.hpp"
#include "sluice/sim/resource.hpp"
#include "sluice/sim/world.hpp"

namespace {

using namespace sluice;
using namespace sluice::sim;
using sluice::bench::Spans;
namespace net = boost::asio;

constexpr Span gap{10'000};
constexpr Span service{9'000};
constexpr Span batch = gap * 100'000;  // about 100,000 customers

/// What both compute: the sum of the times from arrival to departure.
struct Sojourns {
  Word sum = 0;
  std::int64_t customers = 0;
  void add(Span span) {
    sum += span.count();
    ++customers;
  }
};

class Callbacks {
 public:
  explicit Callbacks(Timeline& timeline) : timeline_(timeline) { arrive(0); }

  Sojourns sojourns;

 private:
  void arrive(std::uint64_t) {
    timeline_.after<&Callbacks::arrive>(gaps_.next(), *this);
    line_.push_back(timeline_.now());
    if (line_.size() == 1) serve();
  }
  void depart(std::uint64_t) {
    sojourns.add(timeline_.now() - line_.front());
    line_.pop_front();
    if (!line_.empty()) serve();
  }
  void serve() { timeline_.after<&Callbacks::depart>(services_.next(), *this); }

  Timeline& timeline_;
  Spans gaps_{gap, 3};
  Spans services_{service, 4};
  std::deque<Time> line_;  // the first is served
};

void mm1_two_callbacks(benchmark::State& state) {
  VirtualClock clock(to_time(0));
  Timeline timeline(clock);
  Callbacks queue(timeline);
  for (auto _ : state) timeline.run_until(clock.now() + batch);
  state.SetItemsProcessed(queue.sojourns.customers);
  benchmark::DoNotOptimize(queue.sojourns.sum);
}

class Coroutines {
 public:
  Coroutines() { world.spawn(arrivals()); }

  World world;
  Sojourns sojourns;

 private:
  using Coroutine = net::awaitable<void, World::Executor>;

  Coroutine arrivals() {
    for (;;) {
      co_await sluice::asio::sleep_for(world.clock(), gaps_.next());
      world.spawn(customer());
    }
  }
  Coroutine customer() {
    const Time came = world.now();
    {
      const Resource::Server server = co_await resource_.acquire();
      co_await sluice::asio::sleep_for(world.clock(), services_.next());
    }
    sojourns.add(world.now() - came);
  }

  Resource resource_{world, 1};
  Spans gaps_{gap, 3};
  Spans services_{service, 4};
};

void mm1_coroutines(benchmark::State& state) {
  Coroutines queue;
  for (auto _ : state) queue.world.run_for(batch);
  state.SetItemsProcessed(queue.sojourns.customers);
  benchmark::DoNotOptimize(queue.sojourns.sum);
}

BENCHMARK(mm1_two_callbacks)->Unit(benchmark::kMillisecond);
BENCHMARK(mm1_coroutines)->Unit(benchmark::kMillisecond);

}  // namespace
