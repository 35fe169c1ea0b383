#include "sim/tests/validity/queue.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "sim/tests/world/fixture.hpp"
#include "sluice/asio/acquire.hpp"
#include "sluice/asio/calls.hpp"
#include "sluice/asio/verbs.hpp"
#include "sluice/limiters/concurrency_limiter.hpp"
#include "sluice/sim/resource.hpp"

namespace sluice::test {
namespace {

using Coroutine = net::awaitable<void, World::Executor>;

class ResourceServers {
 public:
  using Held = Resource::Server;
  ResourceServers(World& world, std::size_t servers) : resource_(world, servers) {}
  [[nodiscard]] auto acquire() { return resource_.acquire(); }
  [[nodiscard]] auto try_acquire() {
    // A deadline that has come: it does not wait.
    return resource_.acquire({.deadline = Time{}});
  }

 private:
  Resource resource_;
};

class LimiterServers {
 public:
  using Held = Lease;
  LimiterServers(World& world, std::size_t servers)
      : limiter_(world.store(), "servers", static_cast<Word>(servers), {.ttl = 24h}) {}
  [[nodiscard]] auto acquire() {
    return sluice::asio::async_acquire(limiter_, "all", 1, Deadline::never());
  }
  [[nodiscard]] auto try_acquire() { return sluice::asio::async_try_acquire(limiter_, "all", 1); }

 private:
  ConcurrencyLimiter limiter_;
};

template <class Kind>
class Simulation {
 public:
  Simulation(const QueueModel& model, std::uint64_t seed)
      : model_(model),
        world_({.seed = seed, .start = to_time(0)}),
        servers_(world_, model.servers),
        gaps_(stream(seed, 0, 1)),
        services_(stream(seed, 0, 2)) {
    run_.waits.resize(model.customers, QueueRun::refused);
    run_.sojourns.resize(model.customers, QueueRun::refused);
    world_.spawn(arrivals());
  }

  QueueRun run() {
    world_.run();
    return std::move(run_);
  }

 private:
  Coroutine arrivals() {
    for (std::size_t i = 0; i < model_.warm_up + model_.customers; ++i) {
      co_await sluice::asio::sleep_for(world_.clock(), model_.gap.sample(gaps_));
      world_.spawn(customer(i, model_.service.sample(services_)));
    }
  }
  Coroutine customer(std::size_t name, Span service) {
    const Time came = world_.now();
    typename Kind::Held held;
    if (model_.refuses) {
      held = co_await servers_.try_acquire();
    } else {
      held = co_await servers_.acquire();
    }
    if (!held) co_return;
    const Word wait = (world_.now() - came).count();
    co_await sluice::asio::sleep_for(world_.clock(), service);
    if (name < model_.warm_up) co_return;
    run_.waits[name - model_.warm_up] = wait;
    run_.sojourns[name - model_.warm_up] = (world_.now() - came).count();
  }

  const QueueModel& model_;
  World world_;
  Kind servers_;
  SeededRng gaps_;
  SeededRng services_;
  QueueRun run_;
};

constexpr double second = 1e6;

/// In seconds.
double mean(std::span<const Word> values) {
  return static_cast<double>(std::accumulate(values.begin(), values.end(), Word{0})) / second /
         static_cast<double>(values.size());
}

template <class Counts>
double share(std::span<const Word> values, Counts counts) {
  return static_cast<double>(std::count_if(values.begin(), values.end(), counts)) /
         static_cast<double>(values.size());
}

}  // namespace

double QueueRun::mean_wait() const { return mean(waits); }

double QueueRun::mean_sojourn() const { return mean(sojourns); }

double QueueRun::share_delayed() const {
  return share(waits, [](Word wait) { return wait != 0; });
}

double QueueRun::share_above(double sojourn) const {
  return share(sojourns, [&](Word each) { return static_cast<double>(each) > sojourn * second; });
}

QueueRun run_queue(const QueueModel& model, Servers servers, std::uint64_t seed) {
  if (servers == Servers::resource) return Simulation<ResourceServers>(model, seed).run();
  return Simulation<LimiterServers>(model, seed).run();
}

std::vector<QueueRun> replicate(const QueueModel& model, Servers servers) {
  std::vector<QueueRun> runs;
  for (std::size_t i = 0; i < replications; ++i) {
    runs.push_back(run_queue(model, servers, first_seed + i));
  }
  return runs;
}

BothRuns replicate_both(const QueueModel& model) {
  QueueModel fewer = model;
  fewer.customers /= 4;
  BothRuns both{replicate(model, Servers::resource), replicate(fewer, Servers::limiter)};
  for (std::size_t i = 0; i < replications; ++i) {
    const auto& waits = both.limiter[i].waits;
    const auto& others = both.resource[i].waits;
    CHECK(std::equal(waits.begin(), waits.end(), others.begin()));
  }
  return both;
}

std::size_t relaxed_after(std::size_t servers, double offered) {
  const double gap = std::sqrt(static_cast<double>(servers)) - std::sqrt(offered);
  return static_cast<std::size_t>(10 * offered / (gap * gap));
}

void check_row(const std::string& row, const Interval& interval, double value, double precision) {
  std::printf("%-50s %9.5g +- %-8.2g closed form %.6g\n", row.c_str(), interval.mean,
              interval.half_width, value);
  CAPTURE(row, interval.mean, interval.half_width);
  CHECK(interval.low() <= value);
  CHECK(value <= interval.high());
  CHECK(interval.half_width <= precision * value);
}

double erlang_b(std::size_t servers, double offered) {
  double blocked = 1;
  for (std::size_t k = 1; k <= servers; ++k) {
    blocked = offered * blocked / (static_cast<double>(k) + offered * blocked);
  }
  return blocked;
}

double erlang_c(std::size_t servers, double offered) {
  const double blocked = erlang_b(servers, offered);
  return blocked / (1 - offered / static_cast<double>(servers) * (1 - blocked));
}

double log_normal_moment(Span p50, Span p99, int power) {
  // See Delay: 150,879 is how far the 99 % quantile of the sum lies above its middle.
  const double step =
      power * std::log2(static_cast<double>(p99.count()) / static_cast<double>(p50.count())) /
      150'879;
  double one = 0;
  for (int draw = 0; draw < 65'536; ++draw) one += std::exp2(step * (draw - 32'767.5));
  return std::pow(static_cast<double>(p50.count()) / second, power) * std::pow(one / 65'536, 12);
}

}  // namespace sluice::test
