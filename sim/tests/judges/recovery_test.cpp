// Time series of a run that are known: how many jobs wait, and whether the goodput has recovered.
#include <algorithm>
#include <cmath>

#include "sim/judges/judges.hpp"
#include "sim/scenario/effects.hpp"
#include "sim/tests/judges/objections.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;
using test::has_looked;
using test::objects;

namespace {

/// An outage of the API from 30 to 40 s of 100 s, in which nothing succeeds.
struct Outage {
  Scenario scenario;
  RunResult result;

  Outage() {
    scenario.duration = 100s;
    scenario.faults = {{.kind = FaultPlan::Kind::upstream_down, .at = 30s, .length = 10s}};
    result.series.step = 1s;
    result.series.ok.assign(100, 100);
    result.series.offered.assign(100, 100);
    result.series.unfinished.assign(100, 9);
    std::fill_n(result.series.ok.begin() + 30, 10, 0);
  }
  double recovery(Span within) {
    result.objections.clear();
    result.judges.clear();
    judge_recovery(scenario, within, result);
    return result.figures[Metric::recovery];
  }
};

}  // namespace

TEST_CASE("the number of waiting jobs is that at the end of each step") {
  Scenario scenario;
  scenario.duration = 800ms;  // steps of 100 ms
  Recorder recorder(scenario, Time{});
  const Job lost{.came = to_time(50'000), .number = 1};
  const Job given_up{.came = to_time(150'000), .number = 2};
  recorder.came(lost);
  recorder.came(given_up);
  recorder.gave_up(given_up, to_time(350'000));
  recorder.lost(lost, to_time(550'000));
  recorder.came({.came = to_time(650'000), .number = 3});
  recorder.finish(to_time(800'000));
  CHECK(recorder.series.waiting == std::vector<std::uint32_t>{1, 2, 2, 1, 1, 0, 1, 1});
  CHECK(recorder.series.unfinished == recorder.series.waiting);
}

TEST_CASE("a job does not wait while its call is under way, and waits until the next one") {
  Scenario scenario;
  scenario.duration = 800ms;
  scenario.jobs.keys = 2;
  Recorder recorder(scenario, Time{});
  const Job job{.came = to_time(50'000), .number = 1};
  const Job other{.came = to_time(50'000), .key = 1, .number = 2};  // at the same time
  recorder.came(job);
  recorder.came(other);
  recorder.sent(job, to_time(150'000));
  recorder.answered(job, to_time(150'000), to_time(350'000), 503);
  recorder.sent(job, to_time(550'000));
  recorder.sent(other, to_time(650'000));
  recorder.answered(other, to_time(650'000), to_time(750'000), 200);
  recorder.finish(to_time(800'000));
  CHECK(recorder.series.waiting == std::vector<std::uint32_t>{2, 1, 1, 2, 2, 1, 0, 0});
  CHECK(recorder.series.unfinished == std::vector<std::uint32_t>{2, 2, 2, 2, 2, 2, 2, 1});
  // The call that is under way at the end has waited until it was sent.
  REQUIRE(recorder.wait.count() == 2);
  CHECK(recorder.wait_sum == 500'000 + 600'000);
  CHECK(recorder.others_wait.count() == 1);
}

TEST_CASE("jobs whose work is long do not wait") {
  Scenario s;
  s.limiter.kind = LimiterOptions::Kind::none;
  s.upstream.latency = Delay::constant(10s);
  const RunResult result = run(s);
  CHECK(result.figures[Metric::wait_max] == 0);
  // A storm in which all calls fail has waited since its jobs came.
  s.duration = 10s;
  s.arrivals.rate = {5, 1s};
  s.upstream.latency = Delay::constant(100ms);
  s.upstream.failures = 1;
  s.client.retries = ClientOptions::Retries::fixed;
  s.client.pause = 1ms;
  CHECK(run(s).figures[Metric::wait_max] > 9'000);
}

TEST_CASE("recovery on a series that is known") {
  Outage outage;
  RunResult& result = outage.result;
  CHECK(outage.recovery(5s) == 0);
  CHECK(has_looked(result, "recovery"));
  CHECK_FALSE(objects(result, "recovery"));

  std::fill_n(result.series.ok.begin() + 40, 20, 50);  // until 60 s
  CHECK(outage.recovery(25s) >= 15);
  CHECK(outage.recovery(25s) <= 20);
  CHECK_FALSE(objects(result, "recovery"));
  (void)outage.recovery(5s);
  CHECK(objects(result, "recovery"));

  std::fill(result.series.ok.begin() + 40, result.series.ok.end(), 50);  // for good
  CHECK(std::isinf(outage.recovery(50s)));
  CHECK(objects(result, "recovery"));
  (void)outage.recovery(0s);
  CHECK_FALSE(has_looked(result, "recovery"));
}

TEST_CASE("a goodput that comes back in bursts has not recovered, one that follows the load has") {
  Outage outage;
  RunResult& result = outage.result;
  CHECK(outage.recovery(0s) == 0);

  std::fill_n(result.series.ok.begin() + 50, 10, 0);  // the rest has 50 of 60
  CHECK(outage.recovery(0s) >= 15);
  CHECK(outage.recovery(0s) <= 20);
  for (std::size_t i = 40; i < 100; ++i) result.series.ok[i] = i / 10 % 2 == 0 ? 100 : 0;
  CHECK(std::isinf(outage.recovery(0s)));

  result.series.ok.assign(100, 100);  // 20 jobs a second come from 50 s on
  std::fill_n(result.series.ok.begin() + 50, 50, 20);
  std::fill_n(result.series.offered.begin() + 50, 50, 20);
  CHECK(outage.recovery(0s) == 0);
  std::fill_n(result.series.ok.begin() + 50, 50, 10);
  CHECK(std::isinf(outage.recovery(0s)));
}

TEST_CASE("recovered means that the backlog is gone too") {
  Outage outage;
  std::vector<std::uint32_t>& unfinished = outage.result.series.unfinished;
  std::fill_n(unfinished.begin() + 30, 30, 870);  // until 60 s, and the goodput is back at 40 s
  CHECK(outage.recovery(20s) == 20);
  CHECK_FALSE(objects(outage.result, "recovery"));
  (void)outage.recovery(20s - 1us);
  CHECK(objects(outage.result, "recovery"));
  // Before, there were at most 9: by chance, 9 + 3 * 3 may be there.
  std::fill(unfinished.begin() + 60, unfinished.end(), 18);
  CHECK(outage.recovery(20s) == 20);
  std::fill(unfinished.begin() + 60, unfinished.end(), 19);
  CHECK(std::isinf(outage.recovery(20s)));
  CHECK(objects(outage.result, "recovery"));
}

TEST_CASE("a backlog that grew before any fault need not go, and its recovery is not known") {
  Outage outage;
  std::vector<std::uint32_t>& unfinished = outage.result.series.unfinished;
  const auto objects_to = [&](std::uint32_t last) {
    for (std::uint32_t i = 0; i < 30; ++i) unfinished[i] = 9 + (last - 9) * i / 29;
    std::fill(unfinished.begin() + 30, unfinished.end(), 1'000);
    CHECK(std::isinf(outage.recovery(20s)));
    return objects(outage.result, "recovery");
  };
  // 2,900 jobs come between the ends of the first step and of the last: by chance, 161 more stay.
  CHECK_FALSE(objects_to(9 + 162));
  CHECK(objects_to(9 + 161));
  std::fill_n(outage.result.series.ok.begin() + 40, 60, 50);
  CHECK(objects_to(300));  // the goodput does not come back
}

TEST_CASE("a judge of recovery that could not tell is refused, with the remedy") {
  const auto told = [](const Scenario& scenario, Span within) -> std::string {
    try {
      (void)run(scenario, {.recovery = within});
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  using test::contains_text;
  Scenario s;
  s.duration = 20s;
  CHECK_THAT(told(s, 5s), contains_text("does nothing without a fault"));
  s.faults = {{.kind = FaultPlan::Kind::upstream_down, .at = 5s, .length = 10s}};
  CHECK_THAT(told(s, 5s), contains_text("run.duration must be 21 s or longer, got 20 s"));
  CHECK(told(s, 4s) == "");
  s.duration = 21s;
  CHECK(told(s, 5s) == "");
  s.faults[0].length = 30s;  // outlasts the run
  CHECK_THAT(told(s, 1s), contains_text("because the last fault ends at 35 s"));
  s.faults[0] = {.kind = FaultPlan::Kind::upstream_down, .at = 5s, .length = 1s};
  s.warm_up = 5s;
  CHECK_THAT(told(s, 1s), contains_text("let the first fault begin at 6 s or later"));
  CHECK(told(s, 0s) == "");
}

TEST_CASE("no fault, however it is placed, is objected to before its time has passed") {
  for (const Span length : {1s, 3s, 7s, 11s}) {
    for (const Span within : {1s, 2s, 10s}) {
      CAPTURE(length, within);
      Scenario s;
      s.arrivals.rate = {50, 1s};
      s.faults = {{.kind = FaultPlan::Kind::upstream_down, .at = 4s, .length = length}};
      s.client.retries = ClientOptions::Retries::fixed;
      s.client.pause = 100ms;
      Span shortest{0};
      for (s.duration = 5s; s.duration < 40s; s.duration += 100ms) {
        try {
          (void)validate_recovery(s, within);
          shortest = s.duration;
          break;
        } catch (const std::invalid_argument&) {
        }
      }
      // Whatever it objects to at the shortest duration, it objects to in a longer run as well.
      s.duration = shortest;
      const bool early = objects(run(s, {.recovery = within}), "recovery");
      s.duration = shortest + 20s;
      CHECK((!early || objects(run(s, {.recovery = within}), "recovery")));
    }
  }
}
