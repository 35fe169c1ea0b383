// Time series of a run that are known: how many jobs wait, and whether the goodput has recovered.
#include <algorithm>

#include "sim/scenario/judges.hpp"
#include "tests/catch.hpp"
#include "tests/sim/objections.hpp"

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
  const Job lost{.came = to_time(50'000)};
  const Job given_up{.came = to_time(150'000)};
  recorder.came(lost);
  recorder.came(given_up);
  recorder.gave_up(given_up, to_time(350'000));
  recorder.lost(lost, to_time(550'000));
  recorder.came({.came = to_time(650'000)});
  recorder.finish(to_time(800'000));
  CHECK(recorder.series.waiting == std::vector<std::uint32_t>{1, 2, 2, 1, 1, 0, 1, 1});
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
  CHECK(outage.recovery(50s) == 60);
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
  CHECK(outage.recovery(0s) == 60);

  result.series.ok.assign(100, 100);  // 20 jobs a second come from 50 s on
  std::fill_n(result.series.ok.begin() + 50, 50, 20);
  std::fill_n(result.series.offered.begin() + 50, 50, 20);
  CHECK(outage.recovery(0s) == 0);
  std::fill_n(result.series.ok.begin() + 50, 50, 10);
  CHECK(outage.recovery(0s) == 60);
}
