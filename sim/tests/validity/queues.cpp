// Queues against their closed forms, with two kinds of servers: a Resource, and a
// ConcurrencyLimiter as a service uses it. Threading: single-threaded.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/tests/validity/rows.hpp"
#include "sim/tests/world/fixture.hpp"
#include "sluice/asio/acquire.hpp"
#include "sluice/asio/calls.hpp"
#include "sluice/asio/verbs.hpp"
#include "sluice/limiters/concurrency_limiter.hpp"
#include "sluice/sim/delay.hpp"
#include "sluice/sim/random.hpp"
#include "sluice/sim/resource.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

/// Customers come one by one, after gaps, and each needs one of the servers for a while.
struct QueueModel {
  Delay gap;
  Delay service;
  std::size_t servers = 1;
  bool refuses = false;       ///< a customer who finds no free server leaves, instead of waiting
  std::size_t warm_up = 0;    ///< the first customers, who are not counted
  std::size_t customers = 0;  ///< those who are counted
};

constexpr Word refused = -1;
/// Of the counted customers, in the order of coming, in microseconds; or `refused`.
using Waits = std::vector<Word>;

double mean_wait(const Waits& waits) {  // in seconds
  return static_cast<double>(std::accumulate(waits.begin(), waits.end(), Word{0})) / 1e6 /
         static_cast<double>(waits.size());
}
double share_delayed(const Waits& waits) {  // that waited, or was refused
  return 1 - static_cast<double>(std::count(waits.begin(), waits.end(), 0)) /
                 static_cast<double>(waits.size());
}

class ResourceServers {
 public:
  using Held = Resource::Server;
  ResourceServers(World& world, std::size_t servers) : resource_(world, servers) {}
  [[nodiscard]] auto acquire() { return resource_.acquire(); }
  /// A deadline that has come: it does not wait.
  [[nodiscard]] auto try_acquire() { return resource_.acquire({.deadline = Time{}}); }

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

/// One replication, until all customers have left. Gaps and services have a stream each, so that
/// both kinds of servers see the same customers.
template <class Kind>
class Simulation {
 public:
  Simulation(const QueueModel& model, std::uint64_t seed)
      : model_(model),
        world_({.seed = seed, .start = to_time(0)}),
        servers_(world_, model.servers),
        gaps_(stream(seed, 0, 1)),
        services_(stream(seed, 0, 2)),
        waits_(model.customers, refused) {
    world_.spawn(arrivals());
  }

  Waits run() {
    world_.run();
    return std::move(waits_);
  }

 private:
  using Coroutine = net::awaitable<void, World::Executor>;

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
    if (name >= model_.warm_up) waits_[name - model_.warm_up] = (world_.now() - came).count();
    co_await sluice::asio::sleep_for(world_.clock(), service);
  }

  const QueueModel& model_;
  World world_;
  Kind servers_;
  SeededRng gaps_;
  SeededRng services_;
  Waits waits_;
};

/// Calls `check(name, runs)` for both kinds of servers, with fewer customers for the limiter, which
/// costs five times as much. The customers that both have served must have waited equally long, to
/// the microsecond.
template <class Check>
void for_both(const QueueModel& model, Check check) {
  QueueModel fewer = model;
  fewer.customers /= 4;
  std::vector<Waits> resource;
  std::vector<Waits> limiter;
  for (std::size_t i = 0; i < replications; ++i) {
    resource.push_back(Simulation<ResourceServers>(model, first_seed + i).run());
    limiter.push_back(Simulation<LimiterServers>(fewer, first_seed + i).run());
    CHECK(std::equal(limiter[i].begin(), limiter[i].end(), resource[i].begin()));
  }
  check("Resource", resource);
  check("ConcurrencyLimiter", limiter);
}

/// Erlang's B: the share of refused customers of M/G/c/c.
double erlang_b(std::size_t servers, double offered) {
  double blocked = 1;
  for (std::size_t k = 1; k <= servers; ++k) {
    blocked = offered * blocked / (static_cast<double>(k) + offered * blocked);
  }
  return blocked;
}
/// Erlang's C: the share of customers of M/M/c who wait.
double erlang_c(std::size_t servers, double offered) {
  const double blocked = erlang_b(servers, offered);
  return blocked / (1 - offered / static_cast<double>(servers) * (1 - blocked));
}

/// The moments of Delay::log_normal(p50, p99), in seconds: p50 * 2^x, where x is a sum of twelve
/// uniform draws, so that its exponential moment is a product of twelve.
double log_normal_moment(Span p50, Span p99, int power) {
  // See Delay: 150,879 is how far the 99 % quantile of the sum lies above its middle.
  const double step =
      power * std::log2(static_cast<double>(p99.count()) / static_cast<double>(p50.count())) /
      150'879;
  double one = 0;
  for (int draw = 0; draw < 65'536; ++draw) one += std::exp2(step * (draw - 32'767.5));
  return std::pow(static_cast<double>(p50.count()) / 1e6, power) * std::pow(one / 65'536, 12);
}

/// A service by its name in Kendall's notation, with its first two moments in seconds.
struct Service {
  const char* law;
  Delay delay;
  double mean = 1;
  double square = 2;
};
const Service exponential{"M", Delay::exponential(1s)};
const Service constant{"D", Delay::constant(1s), 1, 1};
const Service log_normal{"LN", Delay::log_normal(700ms, 4s), log_normal_moment(700ms, 4s, 1),
                         log_normal_moment(700ms, 4s, 2)};

/// Poisson arrivals that offer this load.
QueueModel queue_of(const Service& service, std::size_t servers, double offered) {
  return {.gap = Delay::exponential(Span{std::llround(service.mean / offered * 1e6)}),
          .service = service.delay,
          .servers = servers};
}

/// Warm-up is cut by a fixed rule: ten relaxation times of the queue, 1 / (sqrt(c mu) -
/// sqrt(lambda))^2 for M/M/c, after which the bias of the empty beginning has fallen to exp(-10);
/// twice as long for services of a larger variance. The share that waits is checked where Erlang's
/// C tells it, against what is published.
void check_waiting(const Service& service, std::size_t servers, double offered,
                   std::size_t customers, double published = NAN) {
  QueueModel model = queue_of(service, servers, offered);
  const double gap = std::sqrt(static_cast<double>(servers)) - std::sqrt(offered);
  model.warm_up = static_cast<std::size_t>((service.square > 2 ? 20 : 10) * offered / (gap * gap));
  model.customers = customers;
  const std::string name = std::string("M/") + service.law + "/" + std::to_string(servers);
  const double rate = offered / service.mean;
  // Pollaczek and Khinchine.
  double wait = rate * service.square / (2 * (1 - offered));
  if (servers > 1) wait = published / (static_cast<double>(servers) - offered);
  if (servers > 1) CHECK(erlang_c(servers, offered) == Approx(published).epsilon(1e-5));
  for_both(model, [&](const std::string& kind, const std::vector<Waits>& runs) {
    check_row(name + " mean wait, " + kind, interval_of(runs, &mean_wait), wait,
              servers > 1 ? 0.3 : 0.1);
    if (servers > 1) {
      check_row(name + " share that waits, " + kind, interval_of(runs, &share_delayed), published,
                0.15);
    }
  });
}

void check_loss(const Service& service) {
  struct Row {
    std::size_t servers;
    double offered;
    double published;
  };
  for (const auto& [servers, offered, published] :
       {Row{10, 5, 0.018'385}, Row{10, 8, 0.121'661}, Row{50, 40, 0.018'691},
        Row{100, 95, 0.048'804}}) {
    const double expected = erlang_b(servers, offered);
    CHECK(expected == Approx(published).epsilon(5e-5));
    QueueModel model = queue_of(service, servers, offered);
    model.refuses = true;
    // The number in service relaxes within a service: twenty of them.
    model.warm_up = static_cast<std::size_t>(20 * offered);
    model.customers = 50'000;
    const std::string name = std::string("M/") + service.law + "/" + std::to_string(servers) +
                             " with " + std::to_string(static_cast<int>(offered)) + " offered";
    for_both(model, [&name, expected](const std::string& kind, const std::vector<Waits>& runs) {
      check_row(name + ", refused, " + kind, interval_of(runs, &share_delayed), expected, 0.15);
    });
  }
}

}  // namespace

TEST_CASE("one server, by Pollaczek and Khinchine") { check_waiting(log_normal, 1, 0.8, 80'000); }

TEST_CASE("one server at a load of 0.9", "[long]") {
  check_waiting(exponential, 1, 0.9, 160'000);
  check_waiting(constant, 1, 0.9, 80'000);
}

TEST_CASE("several servers, by Erlang's C", "[long]") {
  check_waiting(exponential, 2, 1.6, 30'000, 0.711'111);
  check_waiting(exponential, 10, 8, 40'000, 0.409'180);
  check_waiting(exponential, 50, 40, 60'000, 0.086'953);
  check_waiting(exponential, 100, 95, 100'000, 0.506'457);
}

// The share of the refused depends on the mean of the service alone.
TEST_CASE("Erlang's B with a log-normal service") { check_loss(log_normal); }
TEST_CASE("Erlang's B with an exponential service", "[long]") { check_loss(exponential); }
