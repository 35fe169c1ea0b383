// Scenarios against the means that docs/models.md states, and the steady states of their formulas.
// Threading: single-threaded.
#include <cmath>
#include <string>
#include <vector>

#include "sim/tests/help.hpp"
#include "sim/tests/validity/rows.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

/// The figures of each replication.
std::vector<Figures> figures_of(Scenario scenario) {
  std::vector<Figures> all;
  for (std::size_t i = 0; i < replications; ++i) {
    scenario.seed = first_seed + i;
    all.push_back(sim::run(scenario).figures);
  }
  return all;
}

Interval interval_of(const std::vector<Figures>& all, Metric metric) {
  return test::interval_of(all, [metric](const Figures& figures) { return figures[metric]; });
}

constexpr Span window = 2min;
constexpr double accepted = 50;  // calls a second, in each minute

/// Jobs that call once, at equal distances.
Scenario overload(std::uint32_t workers, Word rate, double ratio) {
  Scenario s = plain();
  s.warm_up = 3 * window;
  s.duration = 5 * window;
  s.fleet.workers = workers;
  s.arrivals.kind = ArrivalOptions::Kind::constant;
  s.arrivals.rate = {rate, 1s};
  s.upstream.limits = {{static_cast<Word>(accepted) * 60, 1min, true}};
  s.client.throttle = ratio;
  s.client.throttle_window = window;
  return s;
}

}  // namespace

TEST_CASE("a fleet of Markov-modulated arrivals is offered their mean rate, times the load") {
  Scenario s = plain();
  s.arrivals.kind = ArrivalOptions::Kind::mmpp;
  s.arrivals.busy = {150, 1s};
  s.arrivals.calm = {30, 1s};
  s.arrivals.busy_for = 2s;
  s.arrivals.calm_for = 4s;
  s.arrivals.load = GENERATE(1.0, 0.5);
  s.fleet.spread = GENERATE(FleetOptions::Spread::equal, FleetOptions::Spread::uneven);
  check_row("jobs/s, MMPP", interval_of(figures_of(s), Metric::offered), 70 * s.arrivals.load, 0.1);
}

TEST_CASE("the way to the store has slow phases on each connection") {
  Scenario s = plain();
  s.limiter.kind = LimiterOptions::Kind::token_bucket;
  s.limiter.limit = {1000, 1s};
  s.store.to = Delay::phases(Delay::constant(1ms), 3s, Delay::constant(41ms), 1s);
  s.store.from = s.store.service = Delay::constant(1ms);
  // Messages do not overtake each other: once in 4 s a slow phase ends, and those of the next 40 ms
  // wait for the last slow one, 20 ms in the mean.
  check_row("ms to the store and back", interval_of(figures_of(s), Metric::wait_mean),
            1 + 1 + 1 + 0.25 * 40 + 0.04 / 4 * 20, 0.12);
}

// A job calls until it succeeds, n times at most: a share p^n of the jobs never does, and whatever
// n is, a success takes 1 / (1 - p) calls.
TEST_CASE("retries of calls that fail") {
  for (const double failures : {0.3, 0.6, 0.9}) {
    for (const std::uint32_t attempts : {2U, 4U}) {
      Scenario s = plain();
      s.arrivals.rate = {100, 1s};
      s.upstream.failures = failures;
      s.client.retries = ClientOptions::Retries::fixed;
      s.client.pause = 1ms;
      s.client.attempts = attempts;
      const std::string name = ", p = " + std::to_string(failures).substr(0, 4) +
                               ", attempts: " + std::to_string(attempts);
      const auto all = figures_of(s);
      check_row("% of the jobs that fail" + name, interval_of(all, Metric::share_refused),
                100 * std::pow(failures, attempts), 0.1);
      check_row("calls for a success" + name, interval_of(all, Metric::calls_per_success),
                1 / (1 - failures), 0.01);
    }
  }
}

// Adaptive throttling: with r requests and a accepts in a window w, a share p = (r - K a) / (r + 1)
// is refused, and so s = r (1 - p) are sent: s (r + 1) = r (1 + K a). Requests at equal distances
// have r + 1 in each window, so that the rate of sent calls of each worker is K a / w + 1 / w, of
// which the API refuses all but a: exactly, in the mean.
TEST_CASE("adaptive throttling before an API that accepts so many calls") {
  for (const auto& [ratio, rate] : {std::pair(1.1, Word{65}), std::pair(2.0, Word{120})}) {
    constexpr std::uint32_t workers = 4;
    const double expected = ratio * accepted + workers / 120.0;
    check_row("% refused by its API, K = " + std::to_string(ratio).substr(0, 3),
              interval_of(figures_of(overload(workers, rate, ratio)), Metric::share_429),
              100 * (1 - accepted / expected), 0.05);
  }
}

// With K a or fewer requests, none is throttled, though the API refuses some.
TEST_CASE("adaptive throttling leaves alone what asks less than K times what is accepted") {
  for (const auto& [ratio, rate] : {std::pair(1.1, Word{54}), std::pair(2.0, Word{99})}) {
    for (const Figures& each : figures_of(overload(1, rate, ratio))) {
      CHECK(each[Metric::throttled] == 0);
      CHECK(each[Metric::share_429] > 5);
    }
  }
}
