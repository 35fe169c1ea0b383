// The adaptive mode of the AWS SDKs as a policy of the simulated client: the policy by itself, and
// what a fleet does with it. Threading: single-threaded.
#include "sim/fleet/adaptive_rate.hpp"

#include <cmath>
#include <utility>

#include "sluice/sim/run.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;

namespace {

constexpr Time start{1h};

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

// Each client falls by what refuses another one: the mode uses half of such a quota.
TEST_CASE("a fleet of adaptive clients is refused less", "[adaptive]") {
  Scenario s;
  s.duration = 2min;
  s.fleet.workers = 4;
  s.arrivals.rate = Rate{80, 1s};
  s.upstream.limits = {{40, 1s}};
  s.limiter.kind = LimiterOptions::Kind::none;
  s.jobs.patience = 10s;
  const auto served_and_refused = [&s](bool adaptive) {
    s.client.adaptive = adaptive;
    std::pair<int, int> counts;
    RunOptions options;
    options.on_event = [&counts](const JobEvent& event) {
      if (event.what != JobEvent::What::answered) return;
      ++(event.status == 429 ? counts.second : counts.first);
    };
    (void)run(s, options);
    return counts;
  };
  const auto [served, refused] = served_and_refused(true);
  CHECK(served > 40 * 120 / 3);
  CHECK(refused < served / 3);
  CHECK(served_and_refused(false).second > 2 * refused);
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
  int answered = 0;
  RunOptions options;
  options.on_event = [&answered](const JobEvent& event) {
    if (event.what == JobEvent::What::answered) ++answered;
  };
  (void)run(s, options);
  CHECK(answered == 2);
}
