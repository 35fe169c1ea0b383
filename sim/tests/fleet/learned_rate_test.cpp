// limiter.kind = "learned_rate": a fleet and an API whose limit nobody knows. The bounds leave room
// for the times in which the rate adapts; docs/learned_rate.md has the figures.
#include "sluice/limiters/learned_rate.hpp"

#include "sim/tests/fleet/plain_scenario.hpp"
#include "tests/catch.hpp"

namespace sluice::test {
namespace {

using namespace sim;
using namespace std::chrono_literals;

/// Twice what an API takes that tells nobody its 40 calls a second.
Scenario unknown_limit() {
  Scenario s = plain();
  s.warm_up = 20s;
  s.arrivals.rate = Rate{80, 1s};
  s.jobs.patience = 5s;
  s.upstream.limits = {{40, 1s}};
  s.upstream.retry_after = RetryAfter::missing();
  s.limiter.kind = LimiterOptions::Kind::learned_rate;
  s.limiter.limit = {5, 1s};
  s.client.retries = ClientOptions::Retries::full;
  return s;
}

struct Case {
  const char* name;
  void (*change)(Scenario&);
};

}  // namespace

TEST_CASE("a fleet learns the limit of its API, whichever way it waits", "[learned_rate]") {
  const auto& [name, change] =
      GENERATE(Case{"in line", [](Scenario&) {}},
               Case{"polling",
                    [](Scenario& s) {
                      s.limiter.wait = LimiterOptions::Wait::poll;
                      s.client.pause = 50ms;
                    }},
               Case{"from far above",
                    [](Scenario& s) {
                      s.limiter.limit = {400, 1s};
                    }},
               // A gate is not closed, since the API says no time.
               Case{"with gates", [](Scenario& s) { s.limiter.gates = true; }},
               Case{"with gates and times",
                    [](Scenario& s) {
                      s.limiter.gates = true;
                      s.upstream.retry_after = RetryAfter::exact();
                    }},
               Case{"a rate of each process", [](Scenario& s) {
                      s.limiter.scope = LimiterOptions::Scope::per_process;
                      s.limiter.limit = {15, 1s};
                    }});
  INFO(name);
  Scenario s = unknown_limit();
  change(s);
  const RunResult result = run(s);
  CHECK(result.objections.empty());
  CHECK(result.figures[Metric::goodput] > 0.9 * 40);
  CHECK(result.figures[Metric::share_429] < 2);
  CHECK(result.figures[Metric::share_429] > 0);  // it does not know the limit
}

TEST_CASE("a refused call is tried again as soon as the rate that fell allows it",
          "[learned_rate]") {
  Scenario s = unknown_limit();
  s.jobs.patience = 60s;
  s.client.pause = 2min;  // which is not waited for: the job would be given up
  s.client.retries = ClientOptions::Retries::fixed;
  s.arrivals.rate = Rate{35, 1s};
  int given_up = 0;
  RunOptions options;
  options.on_event = [&given_up](const JobEvent& event) {
    if (event.what == JobEvent::What::gave_up) ++given_up;
  };
  CHECK(run(s, options).figures[Metric::share_429] > 0);
  CHECK(given_up == 0);
}

TEST_CASE("a refused call waits for the time that the API names", "[learned_rate]") {
  Scenario s = unknown_limit();
  s.fleet.workers = 1;
  s.arrivals = {};
  s.arrivals.kind = ArrivalOptions::Kind::closed;
  s.arrivals.think = Delay::constant(1ms);
  s.upstream.penalty = 1s;
  s.upstream.retry_after = RetryAfter::exact();
  Span refused = -1min;
  RunOptions options;
  options.on_event = [&refused](const JobEvent& event) {
    if (event.what == JobEvent::What::sent) CHECK(event.at - refused >= 999ms);
    if (event.status == 429) refused = event.at;
  };
  CHECK(run(s, options).figures[Metric::share_429] > 0);
}

TEST_CASE("a learned rate begins between a call in 10,000 s and 10,000 calls a second",
          "[learned_rate]") {
  Scenario s = unknown_limit();
  s.limiter.limit = {10'000, 1s};
  CHECK_NOTHROW(validate(s));
  s.limiter.limit = {10'001, 1s};
  CHECK_THROWS_WITH(validate(s), contains_text("0.0001/s to 10000/s"));
  s.limiter.scope = LimiterOptions::Scope::per_process;  // of three processes
  CHECK_NOTHROW(run([&] {
    s.duration = 21s;
    return s;
  }()));
  s.limiter.limit = {1, 10'000s};
  CHECK_THROWS_AS(validate(s), std::invalid_argument);
  s.fleet.workers = 1;
  s.arrivals.rate = Rate{1, 1s};
  CHECK_NOTHROW(run(s));
}

}  // namespace sluice::test
