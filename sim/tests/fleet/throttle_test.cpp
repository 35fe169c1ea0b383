// Adaptive throttling: the policy by itself, and what a fleet does with it. Threading:
// single-threaded.
#include "sim/fleet/throttle.hpp"

#include <cmath>
#include <cstdlib>
#include <map>
#include <vector>

#include "sluice/sim/random.hpp"
#include "sluice/sim/run.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;

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

TEST_CASE("a client that has asked nothing yet is not throttled") {
  const double ratio = GENERATE(1.0, 2.0, 1000.0);
  AdaptiveThrottle throttle = throttle_of(ratio);
  CHECK(refuses(throttle, start, 0, 1));
  CHECK(throttle.ask(start));
}

TEST_CASE("the share that a throttle refuses is (requests - ratio * accepts) / (requests + 1)") {
  AdaptiveThrottle one = throttle_of(1);
  serve(one, start, 10, 10);
  CHECK(refuses(one, start, 0, 11));
  serve(one, start, 1, 0);
  CHECK(refuses(one, start, 1, 12));
  serve(one, start, 0, 2);  // answers to requests that have left the window
  CHECK(refuses(one, start, 0, 12));

  AdaptiveThrottle two = throttle_of(2);
  serve(two, start, 10, 5);
  CHECK(refuses(two, start, 0, 11));
  serve(two, start, 1, 0);
  CHECK(refuses(two, start, 1, 12));
  serve(two, start, 8, 0);
  CHECK(refuses(two, start, 9, 20));
  serve(two, start, 0, 4);
  CHECK(refuses(two, start, 1, 20));

  AdaptiveThrottle tenths = throttle_of(1.1);
  serve(tenths, start, 11, 10);
  CHECK(refuses(tenths, start, 0, 12));
  serve(tenths, start, 1, 0);
  CHECK(refuses(tenths, start, 1, 13));
  serve(tenths, start, 0, 1);
  CHECK(refuses(tenths, start, 0, 13));

  AdaptiveThrottle in_vain = throttle_of(1000);
  serve(in_vain, start, 99, 0);
  CHECK(refuses(in_vain, start, 99, 100));
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

TEST_CASE("the same stream refuses the same requests, and another one others") {
  const auto decisions = [](std::uint64_t entity) {
    AdaptiveThrottle throttle(2, 2min, stream(1, entity, 1));
    std::vector<bool> sent;
    for (int i = 0; i < 200; ++i) {
      sent.push_back(throttle.ask(start + i * 10ms));
      if (i % 4 == 0) throttle.note_accept(start + i * 10ms);
    }
    return sent;
  };
  CHECK(decisions(1) == decisions(1));
  CHECK(decisions(1) != decisions(2));
}

namespace {

/// Two workers, each of which makes ten calls a second and tries none again.
Scenario fleet_of_two() {
  Scenario s;
  s.duration = 60s;
  s.fleet.workers = 2;
  s.arrivals.kind = ArrivalOptions::Kind::constant;
  s.arrivals.rate = {20, 1s};
  s.limiter.kind = LimiterOptions::Kind::none;
  s.upstream.to = s.upstream.from = Delay::constant(1ms);
  s.upstream.latency = Delay::constant(1ms);
  s.client.retries = ClientOptions::Retries::none;
  s.client.throttle = 2;
  s.client.throttle_window = 10s;
  return s;
}

/// How many calls each worker sends.
std::map<std::uint32_t, int> sent_by(const Scenario& scenario, RunResult* result = nullptr) {
  std::map<std::uint32_t, int> sent;
  RunOptions options;
  options.on_event = [&sent](const JobEvent& event) {
    if (event.what == JobEvent::What::sent) ++sent[event.worker];
  };
  const RunResult ran = run(scenario, options);
  if (result != nullptr) *result = ran;
  return sent;
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
  int sent = 0;
  for (const auto& [worker, calls] : sent_by(s, &result)) sent += calls;
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
    double sum = 0;
    for (const auto& [worker, calls] : sent_by(s, &result)) sum += calls;
    return sum + result.figures[Metric::throttled];
  };
  CHECK(attempts() >= 3 * 1190);
  CHECK(attempts() <= 3 * 1200);
  s.client.budget = 10;
  CHECK(attempts() > 1200);
  CHECK(attempts() < 1.2 * 1200);
  CHECK(run(s).figures[Metric::retries_denied] > 900);
}

TEST_CASE("each worker throttles itself by what it has seen") {
  Scenario s = fleet_of_two();
  s.client.timeout = 50ms;
  s.faults = {{.kind = FaultPlan::Kind::upstream_cut, .at = 0s, .length = 50s, .share = 0.5}};
  const auto sent = sent_by(s);
  CHECK(sent.at(0) < 200);
  CHECK(sent.at(1) == 600);
}

TEST_CASE("workers that have seen the same draw apart") {
  Scenario s = fleet_of_two();
  s.faults = {{.kind = FaultPlan::Kind::upstream_down, .at = 0s, .length = 60s}};
  std::map<std::uint32_t, std::vector<Word>> sent;
  RunOptions options;
  // Worker 0 is asked at 50 ms, 150 ms, and so on; worker 1 at 100 ms, 200 ms.
  options.on_event = [&sent](const JobEvent& event) {
    if (event.what == JobEvent::What::sent) sent[event.worker].push_back((event.at - 50ms) / 100ms);
  };
  (void)run(s, options);
  REQUIRE(sent[0].size() > 3);
  CHECK(sent[0] != sent[1]);
}

TEST_CASE("a client forgets what the API refused when the window has passed") {
  Scenario s = fleet_of_two();
  const auto throttled_by = [&s](Span duration) {
    s.duration = duration;
    return run(s).figures[Metric::throttled];
  };
  CHECK(throttled_by(120s) == 0);
  s.faults = {{.kind = FaultPlan::Kind::upstream_down, .at = 20s, .length = 10s}};
  // After an outage of one window, a worker sends one call of a hundred, and then more with each
  // accept.
  const double after = throttled_by(120s);
  CHECK(after > 100);
  CHECK(after < 1000);
  CHECK(throttled_by(240s) == after);
}

TEST_CASE("a process that starts anew has seen nothing") {
  Scenario s = fleet_of_two();
  s.upstream.limits = {{1, 10min}};
  s.client.throttle_window = 1h;
  const auto last_sent = [&s](bool crashes) {
    if (crashes) {
      s.faults = {{.kind = FaultPlan::Kind::worker_crash, .at = 50s, .length = 50ms, .share = 1}};
    }
    int sent = 0;
    RunOptions options;
    options.on_event = [&sent](const JobEvent& event) {
      if (event.what == JobEvent::What::sent && event.at >= 50s) ++sent;
    };
    (void)run(s, options);
    return sent;
  };
  CHECK(last_sent(false) <= 2);
  CHECK(last_sent(true) >= 4);
}

TEST_CASE("a run with adaptive throttling repeats itself") {
  Scenario s = fleet_of_two();
  s.arrivals.kind = ArrivalOptions::Kind::poisson;
  s.upstream.limits = {{5, 1s}};
  s.client.retries = ClientOptions::Retries::full;
  s.client.breaker = true;
  s.client.timeout = 50ms;  // what a breaker counts
  const std::uint64_t first = run(s).trace;
  CHECK(run(s).trace == first);
  s.client.throttle = 1.5;
  CHECK(run(s).trace != first);
}
