// The models of a scenario: phases that a whole fleet shares, and the load of bursts; their means
// are in validity_scenarios.cpp. Threading: single-threaded.
#include <map>

#include "sim/tests/fleet/plain_scenario.hpp"
#include "sluice/sim/run.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;
using sluice::test::plain;
using namespace std::chrono_literals;

TEST_CASE("the workers of a fleet are busy at the same times") {
  Scenario s = plain();
  s.arrivals.kind = ArrivalOptions::Kind::mmpp;
  s.arrivals.busy = {300, 1s};
  s.arrivals.calm = {0, 1s};
  s.arrivals.busy_for = s.arrivals.calm_for = 4s;
  s.duration = 24s;  // steps of 100 ms
  const RunResult result = run(s);
  // 30 jobs come in a busy step, and none in a calm one: with phases of their own, the workers
  // would make steps of 10 and 20.
  int between = 0;
  for (const std::uint32_t offered : result.series.offered) {
    if (offered > 0 && offered < 15) ++between;
  }
  CHECK(between <= 15);  // steps in which a phase ends
}

TEST_CASE("the phases of an API are those of all workers, and a run repeats them") {
  Scenario s = plain();
  s.duration = 30s;
  s.arrivals.rate = {300, 1s};
  s.upstream.latency = Delay::phases(Delay::constant(10ms), 3s, Delay::constant(110ms), 3s);
  int changes = 0;
  bool slow = false;
  RunOptions options;
  std::map<std::uint64_t, Span> sent;
  std::map<Span, Span> took;  // by the time at which the call was sent
  options.on_event = [&](const JobEvent& event) {
    if (event.what == JobEvent::What::sent) sent[event.job] = event.at;
    if (event.what == JobEvent::What::answered) {
      took[sent[event.job]] = event.at - sent[event.job];
    }
  };
  const RunResult first = run(s, options);
  for (const auto& [at, span] : took) {
    if ((span > 50ms) != slow) ++changes;
    slow = span > 50ms;
  }
  CHECK(changes > 2);
  CHECK(changes < 30);
  CHECK(run(s).trace == first.trace);
}

TEST_CASE("the load of bursts multiplies their jobs") {
  Scenario s = plain();
  s.duration = 10s;
  s.arrivals.kind = ArrivalOptions::Kind::bursts;
  s.arrivals.bursts = {{100, 1s}, {7, 2s}};
  const auto jobs = [&s](double load) {
    s.arrivals.load = load;
    return run(s).figures[Metric::offered] * 10;
  };
  CHECK(jobs(1) == Approx(107));
  CHECK(jobs(2) == Approx(214));
  CHECK(jobs(0.5) == Approx(54));  // 50 + 3.5, rounded up
  CHECK(jobs(0.001) == 0);
}

TEST_CASE("what happens in the warm-up counts in no share and no mean") {
  Scenario s = plain();
  s.duration = 60s;
  s.arrivals.rate = {300, 1s};
  s.limiter.kind = LimiterOptions::Kind::token_bucket;
  s.limiter.limit = {400, 1s};
  s.store.service = Delay::constant(500us);
  s.warm_up = GENERATE(0s, 45s);
  const Figures figures = run(s).figures;
  CHECK(figures[Metric::ops_per_call] == Approx(1).epsilon(0.05));
  CHECK(figures[Metric::store_busy] == Approx(100 * 300 * 500e-6).epsilon(0.1));
}

TEST_CASE("a client that is refused in the warm-up alone is not refused") {
  Scenario s = plain();
  s.duration = 30s;
  s.arrivals.kind = ArrivalOptions::Kind::bursts;
  s.arrivals.bursts = {{100, 1s}, {1, 20s}};
  s.limiter.kind = LimiterOptions::Kind::token_bucket;
  s.limiter.limit = {10, 1s};
  s.limiter.burst = 10;
  s.limiter.wait = LimiterOptions::Wait::skip;
  CHECK(run(s).figures[Metric::clients_refused] == 100);
  s.warm_up = 10s;
  CHECK(run(s).figures[Metric::clients_refused] == 0);
}
