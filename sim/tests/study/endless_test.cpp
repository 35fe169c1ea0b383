// A run whose time stands still: it is ended, judged, and shrunk.
#include <cmath>
#include <string>

#include "sim/judges/judges.hpp"
#include "sim/study/output.hpp"
#include "sim/study/shrink.hpp"
#include "sim/study/study_run.hpp"
#include "sim/tests/judges/objections.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;
using test::has_looked;

namespace {

/// Clients who do not think, of an API that takes no time from 3 s on.
Study endless_study() {
  Study study;
  study.name = "endless";
  study.replications = 2;
  study.settings = {{"run.duration", {"10s"}},     {"run.events_per_instant", {"20000"}},
                    {"fleet.workers", {"4"}},      {"arrivals.kind", {"closed"}},
                    {"arrivals.think", {"0s"}},    {"limiter.kind", {"none"}},
                    {"upstream.latency", {"5ms"}}, {"upstream.to", {"0s"}},
                    {"upstream.from", {"0s"}}};
  study.variants = {Variant{}};
  using Kind = FaultPlan::Kind;
  study.faults = {{.kind = Kind::store_slow, .at = 1s, .length = 1s, .factor = 2},
                  {.kind = Kind::upstream_slow, .at = 3s, .length = 1s, .factor = 0},
                  {.kind = Kind::worker_pause, .at = 2s, .length = 500ms, .share = 0.5}};
  return study;
}

}  // namespace

TEST_CASE("a run whose time stands still is ended, and a judge says where") {
  const Study study = endless_study();
  const RunResult result = sim::run(study.scenario(0, 0));
  CHECK(has_looked(result, time_judge));
  REQUIRE(result.objections.size() == 1);
  CHECK(result.objections[0].judge == "time goes on");
  const std::string& text = result.objections[0].text;
  CAPTURE(text);
  CHECK(text.find("the time stands still at 3.0") == 0);
  CHECK(text.find(" s: 20000 events have run there; the last of jobs: job ") != std::string::npos);
  CHECK(text.find(" of worker ") != std::string::npos);
  CHECK(text.find(" sent") != std::string::npos);
  CHECK(std::isnan(result.figures[Metric::goodput]));
  CHECK(result.figures[Metric::events] > 20'000);
  CHECK(result.series.ok[10] > 0);
  CHECK(sim::run(study.scenario(0, 0)).trace == result.trace);
  CHECK(sim::run(study.scenario(0, 0)).objections[0].text == text);

  // Without the fault it comes to its end.
  Study quick = study;
  quick.faults.clear();
  const RunResult good = sim::run(quick.scenario(0, 0));
  CHECK(has_looked(good, time_judge));
  CHECK(good.objections.empty());
  CHECK(good.figures[Metric::goodput] > 100);
}

TEST_CASE("what is told of an endless instant are its own last events of jobs, if there are any") {
  const Scenario scenario;
  Recorder recorder(scenario, to_time(0));
  const auto job = [](Word us, std::uint64_t number) {
    Job made;
    made.came = to_time(us);
    made.number = number;
    return made;
  };
  const auto told = [&](Word us) {
    const EndlessInstant instant(to_time(us), 1'000);
    return object_to_instant(instant, Span{us}, recorder.last_events(to_time(us))).text;
  };
  CHECK(told(5) ==
        "the time stands still at 0.000005 s: 1000 events have run there; none was of a job");
  recorder.came(job(5, 1));
  recorder.came(job(7, 2));
  CHECK(told(7) ==
        "the time stands still at 0.000007 s: 1000 events have run there; the last of jobs: job 2 "
        "of worker 0 came");
  recorder.answered(job(7, 2), to_time(7), to_time(7), 503);
  recorder.sent(job(7, 2), to_time(7));
  recorder.answered(job(7, 2), to_time(7), to_time(7), 200);
  recorder.gave_up(job(5, 1), to_time(7));
  CHECK(told(7) ==
        "the time stands still at 0.000007 s: 1000 events have run there; the last of jobs: job 2 "
        "of worker 0 answered 503, job 2 of worker 0 sent, job 2 of worker 0 answered 200, job 1 "
        "of worker 0 gave_up");
  CHECK(told(8).ends_with("none was of a job"));
}

TEST_CASE("a study of endless runs fails with the first of them, which shrinks") {
  const Study study = endless_study();
  const StudyResult result = run_study(study);
  CHECK(result.status() == Status::fails);
  REQUIRE_FALSE(result.judgements.empty());
  CHECK(result.judgements[0].judge == time_judge);
  CHECK(result.judgements[0].objects);
  CHECK(result.judgements[0].replication == 0);
  CHECK_FALSE(result.rows[0].estimate(Metric::goodput, 0.99).is_known());
  CHECK(to_json(result, "x").find("the time stands still") != std::string::npos);

  const Study single = single_run(study, 0, 0, 1);
  REQUIRE(objectors(single) == std::vector<std::string>{time_judge});
  const Shrunk shrunk = shrink(single, time_judge);
  CHECK(shrunk.fails);
  REQUIRE(shrunk.study.faults.size() == 1);
  CHECK(shrunk.study.faults[0].kind == FaultPlan::Kind::upstream_slow);
  CHECK(shrunk.study.scenario(0, 0).fleet.workers == 1);
  CHECK(shrunk.study.scenario(0, 0).events_per_instant == 20'000);
  CHECK(objectors(shrunk.study) == std::vector<std::string>{time_judge});
}

TEST_CASE("jobs that come together are no endless loop") {
  Scenario scenario;
  scenario.duration = 5s;
  scenario.events_per_instant = 1;
  scenario.arrivals.kind = ArrivalOptions::Kind::bursts;
  scenario.arrivals.bursts = {{2'000, 1s}};
  scenario.limiter.kind = LimiterOptions::Kind::none;
  scenario.upstream.latency = Delay::constant(Span{0});
  scenario.upstream.to = Delay::constant(Span{0});
  scenario.upstream.from = Delay::constant(Span{0});
  const RunResult result = sim::run(scenario);
  CHECK(result.objections.empty());
  CHECK(result.figures[Metric::share_done] == 100);
  CHECK(result.figures[Metric::events] > 2'000);
}
