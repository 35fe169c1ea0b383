// The models of a scenario against the means that docs/models.md states: arrivals in bursts,
// and delays whose state persists. Threading: single-threaded.
#include <map>
#include <vector>

#include "sim/tests/help.hpp"
#include "sluice/sim/interval.hpp"
#include "sluice/sim/run.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;
using sluice::test::plain;
using namespace std::chrono_literals;

namespace {

/// The 99 % interval of a mean over seeds.
template <class Measure>
Interval over_seeds(std::size_t seeds, Measure measure) {
  std::vector<double> values;
  for (std::size_t seed = 1; seed <= seeds; ++seed) values.push_back(measure(seed));
  return student_interval(values, 0.99);
}

/// Whether an interval of at most this half width contains the value.
bool contains(const Interval& interval, double value, double widest) {
  CAPTURE(interval.mean, interval.half_width, value);
  CHECK(interval.half_width <= widest);
  return interval.low() <= value && value <= interval.high();
}

/// The mean time from a call to its answer, in ms.
double mean_answer(const Scenario& scenario) {
  std::map<std::uint64_t, Span> sent;
  double sum = 0;
  double count = 0;
  RunOptions options;
  options.on_event = [&](const JobEvent& event) {
    if (event.what == JobEvent::What::sent) sent[event.job] = event.at;
    if (event.what != JobEvent::What::answered) return;
    sum += static_cast<double>((event.at - sent[event.job]).count()) / 1000;
    ++count;
  };
  (void)run(scenario, options);
  return sum / count;
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
  const Interval offered = over_seeds(40, [&s](std::uint64_t seed) {
    s.seed = seed;
    return run(s).figures[Metric::offered];
  });
  CHECK(contains(offered, 70 * s.arrivals.load, 5));
}

TEST_CASE("the delay of an API whose slow phases persist has the mean that is stated") {
  Scenario s = plain();
  const bool by_time = GENERATE(true, false);
  s.upstream.latency = by_time
                           ? Delay::phases(Delay::constant(10ms), 3s, Delay::constant(110ms), 1s)
                           : Delay::runs(Delay::constant(10ms), 30, Delay::constant(110ms), 10);
  const Interval answer = over_seeds(30, [&s](std::uint64_t seed) {
    s.seed = seed;
    return mean_answer(s);
  });
  CHECK(contains(answer, 2 + 10 + 0.25 * 100, 4));
}

TEST_CASE("the way to the store has slow phases on each connection") {
  Scenario s = plain();
  s.limiter.kind = LimiterOptions::Kind::token_bucket;
  s.limiter.limit = {1000, 1s};
  s.store.to = Delay::phases(Delay::constant(1ms), 3s, Delay::constant(41ms), 1s);
  s.store.from = s.store.service = Delay::constant(1ms);
  const Interval wait = over_seeds(30, [&s](std::uint64_t seed) {
    s.seed = seed;
    return run(s).figures[Metric::wait_mean];
  });
  // Messages do not overtake each other: once in 4 s a slow phase ends, and those of the next 40 ms
  // wait for the last slow one, 20 ms in the mean.
  CHECK(contains(wait, 1 + 1 + 1 + 0.25 * 40 + 0.04 / 4 * 20, 1.5));
}
