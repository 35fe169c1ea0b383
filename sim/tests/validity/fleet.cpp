// Fleets against closed forms: what retries add to the load, and what shedders shed at rest.
// Threading: single-threaded.
#include <cmath>
#include <cstdio>
#include <vector>

#include "sim/tests/validity/queue.hpp"
#include "sim/tests/world/fixture.hpp"
#include "sluice/asio/calls.hpp"
#include "sluice/asio/verbs.hpp"
#include "sluice/limiters/fleet_shedder.hpp"
#include "sluice/limiters/utilization_shedder.hpp"
#include "sluice/sim/run.hpp"
#include "sluice/virtual_store.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

/// The calls for each job that came early enough to have ended.
double calls_per_job(const Scenario& scenario) {
  std::vector<std::uint64_t> calls;
  std::vector<bool> counts;
  const auto note = [&](const JobEvent& event) {
    if (event.job >= calls.size()) {
      calls.resize(event.job + 1);
      counts.resize(event.job + 1);
    }
    if (event.what == JobEvent::What::came) counts[event.job] = event.at < scenario.duration - 5s;
    if (event.what == JobEvent::What::sent) ++calls[event.job];
  };
  (void)sim::run(scenario, {.on_event = note});
  std::uint64_t sum = 0;
  std::uint64_t jobs = 0;
  for (std::size_t job = 0; job < calls.size(); ++job) {
    if (!counts[job]) continue;
    sum += calls[job];
    ++jobs;
  }
  return static_cast<double>(sum) / static_cast<double>(jobs);
}

/// A fleet of places: critical work fills all of them, sheddable work a share.
class TwoTiers {
 public:
  static constexpr std::size_t places = 20;
  static constexpr std::size_t share = 15;
  static constexpr double critical = 8;    // offered, in places
  static constexpr double sheddable = 10;  // the same
  static constexpr int calls = 60'000;
  static constexpr int warm_up = 20 * 18;  // twenty mean services

  struct Shed {
    double critical = 0;
    double sheddable = 0;
  };

  explicit TwoTiers(std::uint64_t seed)
      : world_({.seed = seed, .start = to_time(0)}),
        fleet_(world_.store(), "fleet", places,
               {{"critical", FleetShare::percent(100)}, {"sheddable", FleetShare::places(share)}},
               {.ttl = 24h}),
        gaps_(stream(seed, 0, 1)),
        services_(stream(seed, 0, 2)),
        tiers_(stream(seed, 0, 3)) {
    world_.spawn(arrivals());
  }

  Shed run() {
    world_.run();
    return {static_cast<double>(refused_[0]) / came_[0],
            static_cast<double>(refused_[1]) / came_[1]};
  }

  /// The number of held places is a birth-and-death process: births come at the rate of both tiers
  /// below the share, and of critical work above it.
  static Shed closed_form() {
    std::vector<double> weight{1};
    for (std::size_t held = 0; held < places; ++held) {
      const double rate = held < share ? critical + sheddable : critical;
      weight.push_back(weight.back() * rate / static_cast<double>(held + 1));
    }
    double all = 0;
    double full = 0;
    for (std::size_t held = 0; held <= places; ++held) {
      all += weight[held];
      if (held >= share) full += weight[held];
    }
    return {weight.back() / all, full / all};
  }

 private:
  using Coroutine = net::awaitable<void, World::Executor>;

  Coroutine arrivals() {
    const Delay gap = Delay::exponential(Span{std::llround(1e6 / (critical + sheddable))});
    const Delay service = Delay::exponential(1s);
    for (int i = 0; i < warm_up + calls; ++i) {
      co_await sluice::asio::sleep_for(world_.clock(), gap.sample(gaps_));
      const bool is_critical = tiers_.below(18) < 8;
      world_.spawn(call(i >= warm_up, is_critical ? 0 : 1, service.sample(services_)));
    }
  }
  Coroutine call(bool counts, std::size_t tier, Span service) {
    const char* const name = tier == 0 ? "critical" : "sheddable";
    const Lease lease = co_await sluice::asio::async_try_acquire(fleet_, name, 1);
    if (counts) ++came_[tier];
    if (counts && !lease) ++refused_[tier];
    if (lease) co_await sluice::asio::sleep_for(world_.clock(), service);
  }

  World world_;
  FleetShedder fleet_;
  SeededRng gaps_;
  SeededRng services_;
  SeededRng tiers_;
  int came_[2]{};
  int refused_[2]{};
};

}  // namespace

// A job calls until it succeeds, n + 1 times at most: 1 + p + ... + p^n calls.
TEST_CASE("the load of retries", "[long]") {
  for (const double failures : {0.05, 0.3, 0.5, 0.9}) {
    for (const std::uint32_t retries : {1U, 3U}) {
      Scenario scenario;
      scenario.duration = 30s;
      scenario.fleet.workers = 1;
      scenario.arrivals.rate = {200, 1s};
      scenario.limiter.kind = LimiterOptions::Kind::none;
      scenario.upstream.failures = failures;
      scenario.upstream.latency = Delay::constant(1ms);
      scenario.client.retries = ClientOptions::Retries::fixed;
      scenario.client.pause = 10ms;
      scenario.client.attempts = retries + 1;
      std::vector<double> loads;
      for (std::size_t i = 0; i < replications; ++i) {
        scenario.seed = first_seed + i;
        loads.push_back(calls_per_job(scenario));
      }
      const double expected = (1 - std::pow(failures, retries + 1)) / (1 - failures);
      check_row("calls a job, p = " + std::to_string(failures).substr(0, 4) +
                    ", retries: " + std::to_string(retries),
                student_interval(loads, 0.99), expected, 0.01);
    }
  }
}

TEST_CASE("a fleet shedder at rest") {
  std::vector<double> critical;
  std::vector<double> sheddable;
  for (std::size_t i = 0; i < replications; ++i) {
    const TwoTiers::Shed shed = TwoTiers(first_seed + i).run();
    critical.push_back(shed.critical);
    sheddable.push_back(shed.sheddable);
  }
  const TwoTiers::Shed expected = TwoTiers::closed_form();
  check_row("shed of critical work, FleetShedder", student_interval(critical, 0.99),
            expected.critical, 0.1);
  check_row("shed of sheddable work, FleetShedder", student_interval(sheddable, 0.99),
            expected.sheddable, 0.1);
}

// The busy share is min(1, rho (c + (1 - c) (1 - p))) where a share c is critical and p of the rest
// is shed. At rest it is rho, or `bad` while shedding can bring it there, or c rho.
TEST_CASE("a utilization shedder at rest") {
  constexpr double critical = 0.4;
  for (const double load : {0.6, 1.0, 1.6, 2.2}) {
    VirtualClock clock;
    const UtilizationShedder shedder(make_virtual_store(clock), "api",
                                     {.most_critical_first = {"critical", "sheddable"}});
    const double bad = shedder.options().bad;
    double busy = 0;
    double sum = 0;
    constexpr int seconds = 3'000;
    for (int second = 0; second < seconds; ++second) {
      busy = std::min(
          1.0, load * (critical + (1 - critical) * (1 - shedder.report().probabilities.back())));
      if (second >= seconds / 2) sum += busy;
      shedder.sample(busy);
      clock.advance(1s);
    }
    const double mean = sum / (seconds / 2.0);
    const double expected = std::max({std::min(load, bad), critical * load});
    std::printf("busy at a load of %.1f, UtilizationShedder %20.5g +- 0.003    closed form %.6g\n",
                load, mean, expected);
    CAPTURE(load);
    CHECK(mean == Approx(expected).margin(0.003));
  }
}
