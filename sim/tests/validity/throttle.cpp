// Adaptive throttling against the steady state of its formula. With r requests and a accepts in a
// window w, a share p = (r - K a) / (r + 1) is refused, and so s = r (1 - p) are sent:
//   s (r + 1) = r (1 + K a)
// Requests at equal distances have r + 1 in each window, so that the rate of sent calls of each
// worker is K a / w + 1 / w: exactly, in the mean. Threading: single-threaded.
#include <cmath>
#include <string>
#include <vector>

#include "sim/tests/validity/queue.hpp"
#include "sim/tests/world/fixture.hpp"
#include "sluice/sim/run.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr Span window = 2min;

/// Jobs that call once, and an API that is near.
Scenario overload(std::uint32_t workers, Word rate, double ratio) {
  Scenario s;
  s.warm_up = 3 * window;
  s.duration = 5 * window;
  s.fleet.workers = workers;
  s.arrivals.kind = ArrivalOptions::Kind::constant;
  s.arrivals.rate = {rate, 1s};
  s.limiter.kind = LimiterOptions::Kind::none;
  s.upstream.to = s.upstream.from = s.upstream.latency = Delay::constant(1ms);
  s.client.retries = ClientOptions::Retries::none;
  s.client.throttle = ratio;
  s.client.throttle_window = window;
  return s;
}

constexpr double accepted = 50;  // calls a second, in each minute
constexpr ApiLimit per_minute{static_cast<Word>(accepted) * 60, 1min, true};

/// The figures of each replication.
std::vector<Figures> figures_of(Scenario scenario) {
  std::vector<Figures> all;
  for (std::size_t i = 0; i < replications; ++i) {
    scenario.seed = first_seed + i;
    all.push_back(sim::run(scenario).figures);
  }
  return all;
}

template <class Figure>
Interval interval_of(const std::vector<Figures>& all, Figure figure) {
  std::vector<double> values;
  for (const Figures& each : all) values.push_back(figure(each));
  return student_interval(values, 0.99);
}

/// Calls a second. Each job is sent or throttled.
double sent(const Scenario& scenario, const Figures& figures) {
  const double seconds =
      static_cast<double>((scenario.duration - scenario.warm_up).count()) / 1'000'000;
  return figures[Metric::offered] - figures[Metric::throttled] / seconds;
}

std::string name_of(const std::string& what, double ratio) {
  return what + ", K = " + std::to_string(ratio).substr(0, 3);
}

}  // namespace

// An API that accepts a calls of each second: K a are sent, of which it refuses (K - 1) / K.
TEST_CASE("adaptive throttling before an API that accepts so many calls", "[long]") {
  for (const auto& [ratio, rate] : {std::pair(1.1, Word{65}), std::pair(2.0, Word{120})}) {
    for (const bool is_poisson : {false, true}) {
      const std::uint32_t workers = is_poisson ? 1 : 4;
      Scenario s = overload(workers, rate, ratio);
      if (is_poisson) s.arrivals.kind = ArrivalOptions::Kind::poisson;
      s.upstream.limits = {per_minute};
      const auto all = figures_of(s);
      const std::string fleet = is_poisson ? ", Poisson" : ", 4 workers";
      const double expected = ratio * accepted + workers / 120.0;
      check_row(name_of("calls/s of a throttled fleet", ratio) + fleet,
                interval_of(all, [&s](const Figures& f) { return sent(s, f); }), expected, 0.01);
      check_row(name_of("% refused by its API", ratio) + fleet,
                interval_of(all, [](const Figures& f) { return f[Metric::share_429]; }),
                100 * (1 - accepted / expected), 0.05);
    }
  }
}

// With K a or fewer requests, none is throttled, though the API refuses some.
TEST_CASE("adaptive throttling leaves alone what asks less than K times what is accepted") {
  for (const auto& [ratio, rate] : {std::pair(1.1, Word{54}), std::pair(2.0, Word{99})}) {
    Scenario s = overload(1, rate, ratio);
    s.upstream.limits = {per_minute};
    for (const Figures& each : figures_of(s)) {
      CHECK(each[Metric::throttled] == 0);
      CHECK(each[Metric::share_429] > 5);
    }
  }
}

// An API that accepts a share q < 1 / K of what it is sent: 1 / (1 - K q) calls in each window.
TEST_CASE("adaptive throttling before an API that accepts a share of the calls") {
  constexpr std::uint32_t workers = 20;
  for (const auto& [ratio, share] : {std::pair(1.1, 0.5), std::pair(2.0, 0.25)}) {
    Scenario s = overload(workers, 100, ratio);
    s.client.timeout = 10ms;
    s.upstream.lost = 1 - share;
    s.client.throttle_window = 10s;
    const auto all = figures_of(s);
    check_row(name_of("calls of a throttled worker in a window", ratio),
              interval_of(all, [&s](const Figures& f) { return 10 * sent(s, f) / workers; }),
              1 / (1 - ratio * share), 0.05);
  }
}
