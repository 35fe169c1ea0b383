// The utilization shedder in a closed loop: a service of fixed capacity, whose utilization follows
// what the shedder admits, under loads that step, ramp and swing, in virtual time.
// Threading: single-threaded.
#include <cmath>
#include <numeric>

#include "docs/pictures/overloaded_service.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;
using pictures::OverloadedService;
using Second = OverloadedService::Second;
using History = std::vector<Second>;

namespace {

double mean(const History& history, int from, int to, double Second::*what) {
  double sum = 0;
  for (int at = from; at < to; ++at) sum += history[static_cast<std::size_t>(at)].*what;
  return sum / (to - from);
}

double least(const History& history, int from, int to, double Second::*what) {
  double value = 1e9;
  for (int at = from; at < to; ++at) {
    value = std::min(value, history[static_cast<std::size_t>(at)].*what);
  }
  return value;
}

bool critical_is_served(const History& history) {
  return std::ranges::all_of(history, [](const Second& second) { return second.shed[2] == 0; });
}

/// The largest change of the amount within one second.
double largest_jump(const History& history) {
  double jump = 0;
  for (std::size_t i = 1; i < history.size(); ++i) {
    jump = std::max(jump, std::abs(history[i].amount - history[i - 1].amount));
  }
  return jump;
}

}  // namespace

TEST_CASE("a step of load is borne, then shed down to the dead zone, without overshoot",
          "[utilization][loop]") {
  Random random("a step of load is borne, then shed down to the dead zone, without overshoot");
  CAPTURE(random.repeat());
  const double load = GENERATE(1.2, 1.5, 2.0, 3.0);
  CAPTURE(load);
  OverloadedService service(random);
  const History history = service.run(900, [&](int t) { return t >= 60 && t < 500 ? load : 0.5; });

  // 28 s after the first sample that saw nothing but the step, and not before.
  const auto first =
      std::ranges::find_if(history, [](const Second& second) { return second.shed[0] > 0; });
  REQUIRE(first != history.end());
  CHECK(first->at >= 60 + 28);
  CHECK(first->at <= 60 + 28 + 2 * 8);
  // Settled: the service is as busy as it should be, and little traffic is shed in vain.
  CHECK(mean(history, 300, 500, &Second::utilization) == Approx(0.81).margin(0.03));
  CHECK(least(history, 200, 500, &Second::utilization) > 0.65);
  CHECK(least(history, 90, 500, &Second::admitted) > 0.45);
  CHECK(largest_jump(history) <= 8.0 / 120 + 1e-9);
  CHECK(critical_is_served(history));
  // Once the load is gone, everything comes back, slowly.
  CHECK(mean(history, 500, 508, &Second::admitted) < 0.5);
  CHECK(history[700].amount <= 0);
  CHECK(history.back().amount == Approx(-28.0 / 120));
}

TEST_CASE("a ramp of load is followed, the least important tier first", "[utilization][loop]") {
  Random random("a ramp of load is followed, the least important tier first");
  CAPTURE(random.repeat());
  OverloadedService service(random);
  const History history =
      service.run(1200, [](int t) { return 0.5 + 3.5 * std::min(1.0, t / 900.0); });
  for (std::size_t i = 1; i < history.size(); ++i) {
    if (history[i - 1].amount <= 0.5) CHECK(history[i].shed[1] == 0);
  }
  CHECK(mean(history, 1000, 1200, &Second::utilization) == Approx(0.81).margin(0.03));
  CHECK(history.back().amount > 0.5);
  CHECK(history.back().shed[0] == 1);
  CHECK(history.back().shed[1] > 0);
  CHECK(critical_is_served(history));
}

TEST_CASE("a load that swings does not make the shedding swing", "[utilization][loop]") {
  Random random("a load that swings does not make the shedding swing");
  CAPTURE(random.repeat());
  OverloadedService service(random);
  const History history = service.run(1800, [](int t) { return (t / 30) % 2 == 0 ? 0.6 : 1.3; });
  const auto [low, high] =
      std::ranges::minmax(std::span(history).subspan(600), {}, &Second::amount);
  CHECK(low.amount > 0);
  CHECK(high.amount - low.amount < 0.2);
  CHECK(largest_jump(history) <= 8.0 / 120 + 1e-9);
  CHECK(critical_is_served(history));
}
