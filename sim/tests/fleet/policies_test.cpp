// How clients pace themselves, by a policy of their own or by limiter.kind = "learned_rate":
// adaptive throttling and the adaptive mode of the AWS SDKs by themselves, and what a fleet does
// with each. The bounds leave room for the times in which rates adapt. Threading: single-threaded.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "sim/fleet/adaptive_rate.hpp"
#include "sim/fleet/throttle.hpp"
#include "sim/tests/help.hpp"
#include "sluice/sim/random.hpp"
#include "sluice/sim/run.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;
using test::events_of;

namespace {

constexpr Time start{1h};

AdaptiveThrottle throttle_of(double ratio, Span window = 2min) {
  return {ratio, window, SeededRng(7)};
}

/// So many requests, some of which are accepted, at one time.
void serve(AdaptiveThrottle& throttle, Time now, int requests, int accepts) {
  for (int i = 0; i < requests; ++i) (void)throttle.ask(now);
  for (int i = 0; i < accepts; ++i) throttle.note_accept(now);
}

/// Whether a request at this time is refused with the probability part / whole, exactly.
bool refuses(AdaptiveThrottle& throttle, Time now, std::uint64_t part, std::uint64_t whole) {
  const auto [refused, of] = throttle.odds(now);
  CAPTURE(refused, of, part, whole);
  CHECK(refused * whole == part * of);
  return refused * whole == part * of;
}

}  // namespace

TEST_CASE("the share that a throttle refuses is (requests - ratio * accepts) / (requests + 1)") {
  struct Step {  // so many more requests, accepts, and then the share
    int requests, accepts;
    std::uint64_t part, whole;
  };
  const struct {
    double ratio;
    std::vector<Step> steps;
  } rows[] = {// The last accepts answer requests that have left the window.
              {1, {{10, 10, 0, 11}, {1, 0, 1, 12}, {0, 2, 0, 12}}},
              {2, {{10, 5, 0, 11}, {1, 0, 1, 12}, {8, 0, 9, 20}, {0, 4, 1, 20}}},
              {1.1, {{11, 10, 0, 12}, {1, 0, 1, 13}, {0, 1, 0, 13}}},
              {1000, {{0, 0, 0, 1}, {99, 0, 99, 100}}}};
  for (const auto& [ratio, steps] : rows) {
    CAPTURE(ratio);
    AdaptiveThrottle throttle = throttle_of(ratio);
    for (const auto& [requests, accepts, part, whole] : steps) {
      serve(throttle, start, requests, accepts);
      CHECK(refuses(throttle, start, part, whole));
    }
  }
}

TEST_CASE("requests count, and accepts, until they are as old as the window") {
  AdaptiveThrottle throttle = throttle_of(2, 10s);
  serve(throttle, start, 4, 0);
  serve(throttle, start + 5s, 2, 1);
  CHECK(refuses(throttle, start + 10s - 1us, 4, 7));
  CHECK(refuses(throttle, start + 10s, 0, 3));
  serve(throttle, start + 10s, 1, 0);
  CHECK(refuses(throttle, start + 15s - 1us, 1, 4));
  CHECK(refuses(throttle, start + 15s, 1, 2));
  CHECK(refuses(throttle, start + 20s - 1us, 1, 2));
  CHECK(refuses(throttle, start + 20s, 0, 1));
}

TEST_CASE("a request that is refused counts as one") {
  AdaptiveThrottle throttle = throttle_of(2);
  std::uint64_t asked = 0;
  for (bool sent = true; sent; ++asked) sent = throttle.ask(start);
  CHECK(refuses(throttle, start, asked, asked + 1));
}

TEST_CASE("a throttle draws each request anew, with its share") {
  // 100 requests, 25 accepts: 50 / 101 of the next one, which the window forgets before the next.
  constexpr int rounds = 4000;
  int sent = 0;
  int changes = 0;
  bool last = false;
  AdaptiveThrottle throttle = throttle_of(2, 1s);
  for (int round = 0; round < rounds; ++round) {
    const Time now = start + round * 2s;
    serve(throttle, now, 100, 25);
    const bool is_sent = throttle.ask(now);
    if (is_sent) ++sent;
    if (is_sent != last) ++changes;
    last = is_sent;
  }
  // Six standard deviations of a binomial number are 190.
  CHECK(std::abs(sent - rounds * 51 / 101) < 190);
  CHECK(std::abs(changes - rounds / 2) < 190);
}

namespace {

/// Two workers, each of which makes ten calls a second and tries none again.
Scenario fleet_of_two() {
  Scenario s = test::plain();
  s.duration = 60s;
  s.fleet.workers = 2;
  s.arrivals.kind = ArrivalOptions::Kind::constant;
  s.arrivals.rate = {20, 1s};
  s.client.throttle = 2;
  s.client.throttle_window = 10s;
  return s;
}

/// What a fleet throttles whose API answers as it is told.
double throttled_if(void (*answers)(Scenario&)) {
  Scenario s = fleet_of_two();
  s.client.timeout = 50ms;
  s.warm_up = 10s;
  answers(s);
  return run(s).figures[Metric::throttled];
}

}  // namespace

TEST_CASE("429, 503 and a timeout are no accepts; 200, 409 and 500 are") {
  constexpr double jobs = 50 * 20;
  CHECK(throttled_if([](Scenario&) {}) == 0);
  CHECK(throttled_if([](Scenario& s) { s.upstream.failures = 1; }) == 0);
  CHECK(throttled_if([](Scenario& s) {
          s.upstream.conflicts = true;
          s.upstream.latency = Delay::constant(40ms);
          s.arrivals.rate = {100, 1s};
          s.client.throttle = 1.2;
        }) == 0);
  CHECK(throttled_if([](Scenario& s) { s.upstream.lost = 1; }) > 0.9 * jobs);
  CHECK(throttled_if([](Scenario& s) { s.upstream.limits = {{1, 10min}}; }) > 0.9 * jobs);
  CHECK(throttled_if([](Scenario& s) {
          s.faults = {{.kind = FaultPlan::Kind::upstream_down, .at = 0s, .length = 60s}};
        }) > 0.9 * jobs);
}

TEST_CASE("what a client refuses fails without being sent") {
  Scenario s = fleet_of_two();
  s.upstream.limits = {{1, 10min}};
  RunResult result;
  const auto sent = static_cast<double>(events_of(s, JobEvent::What::sent, &result).size());
  const Figures& f = result.figures;
  CHECK(f[Metric::throttled] == 1200 - sent);
  CHECK(f[Metric::calls_per_success] == sent);
  CHECK(f[Metric::share_refused] == Approx(100 * 1199.0 / 1200));
  CHECK(result.objections.empty());

  s.client.throttle = 0;
  s.client.throttle_window = ClientOptions{}.throttle_window;
  CHECK(std::isnan(run(s).figures[Metric::throttled]));
}

TEST_CASE("a refused call is one of the attempts of its job, and its retry needs the budget") {
  Scenario s = fleet_of_two();
  s.upstream.limits = {{1, 10min}};
  s.client.retries = ClientOptions::Retries::fixed;
  s.client.pause = 100ms;
  s.upstream.retry_after = RetryAfter::missing();
  s.client.attempts = 3;
  // The jobs of the last 300 ms may not have ended.
  const auto attempts = [&s] {
    RunResult result;
    const auto sent = static_cast<double>(events_of(s, JobEvent::What::sent, &result).size());
    return sent + result.figures[Metric::throttled];
  };
  CHECK(attempts() >= 3 * 1190);
  CHECK(attempts() <= 3 * 1200);
  s.client.budget = 10;
  CHECK(attempts() > 1200);
  CHECK(attempts() < 1.2 * 1200);
  CHECK(run(s).figures[Metric::retries_denied] > 900);
}

TEST_CASE("a process that starts anew has seen nothing") {
  Scenario s = fleet_of_two();
  s.upstream.limits = {{1, 10min}};
  s.client.throttle_window = 1h;
  const auto last_sent = [&s](bool crashes) {
    if (crashes) {
      s.faults = {{.kind = FaultPlan::Kind::worker_crash, .at = 50s, .length = 50ms, .share = 1}};
    }
    const auto sent = events_of(s, JobEvent::What::sent);
    return std::ranges::count_if(sent, [](const JobEvent& event) { return event.at >= 50s; });
  };
  CHECK(last_sent(false) <= 2);
  CHECK(last_sent(true) >= 4);
}

namespace {

/// So many answers, evenly over a time.
Time serve(AdaptiveRate& rate, Time from, int answers, Span step) {
  for (int i = 0; i < answers; ++i) rate.answered(from += step, false);
  return from;
}

bool is_near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); }

}  // namespace

TEST_CASE("an adaptive rate does nothing before the first refusal", "[adaptive]") {
  AdaptiveRate rate;
  const Time now = serve(rate, start, 1'000, 10ms);
  CHECK(rate.rate() == 0);
  for (int i = 0; i < 100; ++i) CHECK(rate.reserve(now) == now);
}

TEST_CASE("an adaptive rate falls to 0.7 of what was sent, and returns by its curve",
          "[adaptive]") {
  AdaptiveRate rate;
  const Time now = serve(rate, start, 3'000, 10ms);  // 100 a second
  CHECK(std::abs(rate.measured() - 100) < 1);
  const double sent = rate.measured();
  rate.answered(now, true);
  CHECK(is_near(rate.rate(), 0.7 * sent));
  const double k = std::cbrt(sent * 0.3 / 0.4);  // 4.2 s
  Time at = now;
  for (int i = 0; i < 100; ++i) {
    rate.answered(at += 10ms, false);
    const double t = static_cast<double>((at - now).count()) / 1e6 - k;
    CHECK(is_near(rate.rate(), 0.4 * t * t * t + sent));
  }
}

TEST_CASE("an adaptive rate is at most twice what was sent, and at least 0.5 a second",
          "[adaptive]") {
  AdaptiveRate rate;
  Time now = serve(rate, start, 100, 1s);  // one a second, and two half seconds each
  rate.answered(now, true);
  for (int i = 0; i < 100; ++i) {
    rate.answered(now += 1s, false);
    CHECK(rate.rate() <= 2 * rate.measured() + 1e-9);
  }
  for (int i = 0; i < 10; ++i) rate.answered(now += 1ms, true);
  CHECK(rate.rate() == 0.5);
  // In order of arrival, two seconds apart.
  const Time first = rate.reserve(now);
  CHECK(rate.reserve(now) == first + 2s);
  CHECK(rate.reserve(now) == first + 4s);
}

TEST_CASE("an adaptive client that need not pause calls at the very tick of its deadline",
          "[adaptive]") {
  Scenario s;
  s.duration = 5s;
  s.fleet.workers = 1;
  s.arrivals.kind = ArrivalOptions::Kind::bursts;
  s.arrivals.bursts = {{.jobs = 2, .at = 1s}};
  s.limiter.scope = LimiterOptions::Scope::per_process;  // without a network
  s.upstream.limits = {{1000, 1s}};
  s.limiter.limit = Rate{1, 1s};
  s.jobs.patience = 1s;  // when the limiter grants the second one
  s.client.adaptive = true;
  CHECK(events_of(s, JobEvent::What::answered).size() == 2);
}

namespace {

/// Twice what an API takes that tells nobody its 40 calls a second.
Scenario unknown_limit() {
  Scenario s = test::plain();
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
  RunResult result;
  CHECK(events_of(s, JobEvent::What::gave_up, &result).empty());
  CHECK(result.figures[Metric::share_429] > 0);
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

TEST_CASE("a learned rate may begin at a call in 10,000 s, and at 10,000 calls a second",
          "[learned_rate]") {
  Scenario s = unknown_limit();
  s.fleet.workers = 1;
  s.limiter.limit = GENERATE(Rate{1, 10'000s}, Rate{10'000, 1s});
  CHECK_NOTHROW(run(s));
}
