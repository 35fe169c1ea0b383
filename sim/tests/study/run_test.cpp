// Studies: runs of all rows, what a stop leaves, and what an exception ends; what becomes of a
// study before it is swept or compared; shrinking of real runs, and runs whose time stands still.
// Threading: run_study() starts threads.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/judges/judges.hpp"
#include "sim/study/compare.hpp"
#include "sim/study/new_file.hpp"
#include "sim/study/output.hpp"
#include "sim/study/shrink.hpp"
#include "sim/study/study_run.hpp"
#include "sim/study/trace_output.hpp"
#include "sim/study/twice.hpp"
#include "sim/tests/fleet/pinned_scenario.hpp"
#include "sim/tests/help.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;
using test::contains_text;
using test::has_looked;

namespace {

/// Two workers, two seconds.
Study small_study() {
  Study study;
  study.name = "small";
  study.replications = 5;
  study.settings = {{"run.duration", {"2s"}},
                    {"fleet.workers", {"2"}},
                    {"upstream.limits", {"80/s"}},
                    {"limiter.limit", {"90/s"}}};
  study.variants = {{"a", {}}, {"b", {{"limiter.wait", {"poll"}}}}};
  return study;
}

}  // namespace

TEST_CASE("the traces of two scenarios are the same in every build", "[scenario]") {
  for (const auto& [prefetch, trace] : test::pinned_scenarios) {
    CAPTURE(prefetch);
    CHECK(sim::run(test::pinned_scenario(prefetch)).trace == trace);
  }
}

TEST_CASE("each row of a grid is its own scenario, and all rows have the same seeds") {
  Study study = small_study();
  study.replications = 3;
  study.variants[1].settings.push_back({"arrivals.load", {"0.1"}});  // the sweep decides
  study.sweeps = {{"arrivals.load", {{"0.5"}, {"1.5"}}}, {"fleet.workers", {{"2"}, {"3"}}}};
  Expectation expected;
  expected.metric = "goodput";
  expected.least = 1;
  study.expectations = {expected};
  CHECK(seed_of(study, 0) == study.seed);
  CHECK(seed_of(study, 1) != seed_of(study, 2));
  const StudyResult result = run_study(study);
  REQUIRE(result.rows.size() == 8);
  std::set<std::uint64_t> traces;
  for (std::size_t i = 0; i < 8; ++i) {
    const Row& row = result.rows[i];
    REQUIRE(row.figures.size() == 3);
    Scenario scenario = study.scenario(i / 4, i % 4);
    CHECK(scenario.arrivals.load == (i % 4 < 2 ? 0.5 : 1.5));
    for (std::size_t replication = 0; replication < 3; ++replication) {
      scenario.seed = seed_of(study, replication);
      const RunResult alone = sim::run(scenario);
      CHECK(row.figures[replication][Metric::events] == alone.figures[Metric::events]);
      const StudyResult again = run_study(single_run(study, i / 4, i % 4, replication));
      CHECK(again.rows[0].first.trace == alone.trace);
      CHECK(again.verdicts.empty());
      if (replication == 0) CHECK(row.first.trace == alone.trace);
      traces.insert(alone.trace);
    }
  }
  CHECK(traces.size() == 24);
}

TEST_CASE("what stops in the first replication has no figure, and no judge is heard") {
  Study study = small_study();
  study.settings = {{"fleet.workers", {"1"}},    {"arrivals.kind", {"closed"}},
                    {"limiter.kind", {"none"}},  {"upstream.to", {"0s"}},
                    {"upstream.from", {"0s"}},   {"upstream.limits", {}},
                    {"run.duration", {"300h"}},  {"run.events_per_instant", {"1000"}},
                    {"arrivals.think", {"10ms"}}};
  study.variants = {{"stands still", {{"arrivals.think", {"0s"}}, {"upstream.latency", {"0s"}}}},
                    {"goes on", {}}};
  study.precision = 0.02;
  study.headline = {"goodput"};
  std::atomic<bool> stop{false};
  StudyOptions options{.jobs = 1, .stop = &stop, .progress = {}};
  options.progress = [&](const StudyProgress& progress) {
    if (progress.done == 1) stop = true;
  };
  const StudyResult result = run_study(study, options);
  CHECK(result.partial);
  CHECK_FALSE(result.imprecise);
  CHECK(result.replications == 0);
  CHECK(result.judgements.empty());
}

TEST_CASE("a stop leaves the first replications of all rows, and says so") {
  Study study = small_study();
  study.replications = 100'000;
  study.headline = {"wait_mean"};
  study.precision = 0.0001;
  std::atomic<bool> stop{false};
  StudyOptions options{.jobs = 2, .stop = &stop, .progress = {}};
  options.progress = [&](const StudyProgress& progress) {
    if (progress.done >= 6) stop = true;
  };
  const StudyResult result = run_study(study, options);
  CHECK(result.partial);
  CHECK_FALSE(result.imprecise);
  CHECK(result.replications < study.replications);
  CHECK(result.status() != Status::holds);
  for (const Row& row : result.rows) {
    REQUIRE(row.figures.size() == result.replications);
    for (const Figures& figures : row.figures) REQUIRE(figures[Metric::events] > 0);
  }
  CHECK(to_json(result, "x").find("\"partial\"") != std::string::npos);

  stop = true;
  const StudyResult nothing = run_study(study, {.jobs = 1, .stop = &stop, .progress = {}});
  CHECK(nothing.partial);
  CHECK(nothing.replications == 0);
}

TEST_CASE("precision doubles the replications until the interval of every row is narrow",
          "[statistics]") {
  Study study = small_study();
  study.variants.push_back({"c",
                            {{"limiter.wait", {"skip"}},
                             {"limiter.limit", {"20/s"}},
                             {"limiter.shadow", {"fixed_window"}}}});
  std::set<std::size_t> counts;
  for (const std::string name : {"wait_mean", "shadow_deviation", "critical_done", "crashes"}) {
    study.headline = {name, "wait_p99"};
    for (const std::size_t first : {1U, 3U}) {
      study.replications = 32 * first;
      study.precision = 0;
      const StudyResult all = run_study(study);
      for (const double precision : {0.9, 0.3, 0.15}) {
        CAPTURE(name, first, precision);
        const auto is_narrow = [&](const Row& row, std::size_t count) {
          std::vector<double> values;
          for (std::size_t i = 0; i < count; ++i) values.push_back(row.figures[i][metric(name)]);
          const Estimate of = estimate_of(values, {-1e9, 1e9}, study.confidence);
          return !of.is_known() || (count > 1 && of.half_width <= precision * std::abs(of.mean));
        };
        std::size_t expected = first;
        const auto is_wide = [&](const Row& row) { return !is_narrow(row, expected); };
        while (expected <= study.replications && std::ranges::any_of(all.rows, is_wide)) {
          expected *= 2;
        }
        if (expected > study.replications) continue;
        Study asked = study;
        asked.replications = first;
        asked.precision = precision;
        StudyProgress last;
        const StudyResult narrow = run_study(
            asked, {.jobs = 0, .stop = nullptr, .progress = [&](const auto& now) { last = now; }});
        CHECK(narrow.replications == expected);
        CHECK(last.all == 3 * expected);
        CHECK(last.done == last.all);
        double events = 0;
        for (const Row& row : narrow.rows) {
          for (const Figures& each : row.figures) events += each[Metric::events];
          CHECK(row.first.trace == all.row(row.variant, row.point).first.trace);
        }
        CHECK(static_cast<double>(last.events) == events);
        CHECK_FALSE(narrow.imprecise);
        CHECK(run_study(single_run(asked, 0, 0, 0)).replications == 1);
        counts.insert(expected);
      }
    }
  }
  CHECK(counts.size() > 2);
}

TEST_CASE("a row in which the faults do nothing is not asked whether it recovers") {
  Study study = small_study();
  study.settings[0].texts = {"12s"};
  study.replications = 1;
  study.variants = {{"a", {}}, {"b", {{"limiter.kind", {"none"}}}}};
  study.faults = {{.kind = FaultPlan::Kind::store_down, .at = 4s, .length = 1s}};
  study.judges.recovery = 2s;
  const StudyResult result = run_study(study);
  for (const Row& row : result.rows) {
    CAPTURE(row.variant);
    const auto& judges = row.first.judges;
    CHECK((std::ranges::find(judges, recovery_judge) != judges.end()) == (row.variant == 0));
    CHECK(single_run(study, row.variant, 0, 0).judges.recovery == Span{row.variant == 0 ? 2s : 0s});
  }
}

TEST_CASE("a judgement names the first replication that its judge objects to") {
  Study study = small_study();
  study.variants.resize(1);
  study.settings = {{"run.duration", {"8s"}}, {"fleet.workers", {"2"}}};
  study.faults = {{.kind = FaultPlan::Kind::upstream_down, .at = 3s, .length = 500ms}};
  study.judges.recovery = 1s;
  study.headline = {"goodput"};
  study.replications = 1;
  study.precision = 0.02;
  std::size_t later = 0;
  for (study.seed = 1; study.seed <= 4; ++study.seed) {
    const StudyResult result = run_study(study);
    std::optional<std::size_t> expected;
    for (std::size_t i = 0; i < result.replications && !expected; ++i) {
      if (!objectors(single_run(study, 0, 0, i)).empty()) expected = i;
    }
    std::optional<std::size_t> told;
    for (const Judgement& each : result.judgements) {
      if (each.objects) told = each.replication;
    }
    CHECK(told == expected);
    if (expected.value_or(0) > 0) ++later;
  }
  CHECK(later > 0);
}

TEST_CASE("what a run throws arrives, and ends the study") {
  Study study = small_study();
  study.variants[0].settings = {{"client.cap", {"100d"}}};
  for (const unsigned jobs : {1U, 4U}) {
    std::size_t done = 0;
    const auto count = [&](const StudyProgress& progress) { done = progress.done; };
    CHECK_THROWS_WITH(run_study(study, {.jobs = jobs, .stop = nullptr, .progress = count}),
                      Catch::Matchers::StartsWith("small (variant \"a\")") &&
                          Catch::Matchers::Contains("cap 8640000000000 us"));
    if (jobs == 1) CHECK(done == 0);
  }
}

TEST_CASE("two runs are the same up to their first difference") {
  Scenario one = test::plain();
  one.duration = 5s;
  Scenario other = one;
  CHECK(run_both(one, other).empty());
  other.faults = {{.kind = FaultPlan::Kind::upstream_slow, .at = 3s, .length = 1s, .factor = 9}};
  CHECK(run_both(one, other).starts_with("the runs differ from step "));
  other.faults.clear();
  other.duration = 4s;
  CHECK(run_both(one, other).starts_with("the runs differ "));
}

TEST_CASE("the trace of a run has its faults, with their ends") {
  const test::Folder folder;
  const Study study = load_study(folder.write("s.toml", R"(schema = 1
[run]
duration = "5s"
[[fault]]
kind = "upstream_slow"
at = "3s"
for = "1s"
factor = 9
)"));
  const auto trace_of = [&](const char* name) {
    CHECK(write_trace(study, folder.path() / name).empty());
    std::ifstream file(folder.path() / name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  using Catch::Matchers::Contains;
  CHECK_THAT(trace_of("t.jsonl"), Contains(R"({"us":3000000,"what":"fault",)"
                                           R"("kind":"upstream_slow","until_us":4000000})"));
  CHECK_THAT(trace_of("t.json"), Contains(R"("ts":3000000,"dur":1000000,)"));
}

TEST_CASE("a file that is not finished leaves nothing") {
  const test::Folder folder;
  const auto path = folder.write("whole.txt", "whole");
  NewFile(path).out() << "half";
  CHECK_FALSE(std::filesystem::exists(path.string() + ".part"));
  std::ifstream in(path);
  CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == "whole");
  // No text of a scenario ends the script element of the report.
  write_file(path, "<script>/*RESULT*/</script>");
  CHECK(to_html("{\"a\":\"</script>\"}", path) == "<script>{\"a\":\"\\u003c/script>\"}</script>");
}

TEST_CASE("faults that overlap do not end one another") {
  Study study = small_study();
  study.variants = {Variant{}};
  study.settings = {{"run.duration", {"12s"}},
                    {"arrivals.kind", {"constant"}},
                    {"arrivals.rate", {"50/s"}},
                    {"client.retries", {"none"}}};
  using Kind = FaultPlan::Kind;
  const auto failed = [&study] {
    return run_study(single_run(study, 0, 0, 0)).rows[0].figures[0][Metric::share_failed];
  };
  study.faults = {{.kind = Kind::upstream_down, .at = 2s, .length = 6s}};
  const double alone = failed();
  CHECK(alone > 40);
  study.faults.push_back({.kind = Kind::upstream_down, .at = 3s, .length = 1s});
  CHECK(failed() == alone);
  study.faults.push_back({.kind = Kind::upstream_slow, .at = 3s, .length = 1s, .factor = 2});
  CHECK(failed() > 40);
}

namespace {

/// That the goodput is at least `least`, by which the tests know it again.
Expectation at_least(double least) {
  Expectation made;
  made.metric = "goodput";
  made.least = least;
  return made;
}

std::vector<double> bounds(const Study& study) {
  std::vector<double> all;
  for (const Expectation& each : study.expectations) all.push_back(each.least.value_or(-1));
  return all;
}

}  // namespace

TEST_CASE("a variant that is kept keeps what is expected of it, and of every variant") {
  Study study = small_study();
  for (const auto& [variant, of] : std::initializer_list<std::pair<const char*, const char*>>{
           {"", ""}, {"a", ""}, {"b", ""}, {"a", "b"}, {"b", "a"}, {"", "b"}, {"b", "b"}}) {
    Expectation made = at_least(static_cast<double>(study.expectations.size()));
    made.variant = variant;
    made.of = of;
    study.expectations.push_back(made);
  }
  keep_variant(study, "b");
  REQUIRE(study.variants.size() == 1);
  CHECK(study.variants[0].name == "b");
  CHECK(study.scenario(0, 0).limiter.wait == LimiterOptions::Wait::poll);
  CHECK(bounds(study) == std::vector<double>{0, 2, 5, 6});
}

TEST_CASE("a sweep of the command line replaces those of the file, and what is expected there") {
  Study study = small_study();
  study.sweeps = {{"arrivals.load", {{"0.5"}, {"1.5"}}}};
  study.expectations = {at_least(0), at_least(1), at_least(2)};
  study.expectations[1].at = "0.5";
  study.expectations[2].at_values = {{"arrivals.load", {"1.5"}}};
  sweep(study, "jobs.keys", {{"1"}, {"3"}, {"4"}});
  CHECK(study.points() == 3);
  CHECK(study.point_name(2) == "jobs.keys = 4");
  CHECK(study.scenario(1, 1).jobs.keys == 3);
  CHECK(bounds(study) == std::vector<double>{0});
  CHECK_THROWS_WITH(sweep(study, "limiter.most", {{"1"}, {"2"}}),
                    contains_text("limiter.most does nothing here"));
  CHECK_NOTHROW(sweep(study, "limiter.burst", {{"1"}, {"2"}}));
  CHECK_THROWS_WITH(sweep(study, "jobs.keys", {{"1"}, {"2"}, {"1"}}),
                    "jobs.keys: 1 and 1 are the same value; leave out one");
}

TEST_CASE("the longer warm-up of a comparison counts more than what a variant says") {
  Study a = small_study();
  keep_variant(a, "a");
  a.settings[0].texts = {"40s"};
  a.settings.push_back({"arrivals.load", {"0.3"}});
  Study b = a;
  a.variants[0].settings.push_back({"run.warm_up", {"auto"}});
  b.settings.push_back({"run.warm_up", {"30s"}});
  CHECK(share_warm_up(a, b) == Span{30s});
  CHECK(a.scenario(0, 0).warm_up == 30s);
  CHECK(b.scenario(0, 0).warm_up == 30s);
}

TEST_CASE("shrinking drops what the judge does not need") {
  Study study = small_study();
  study.variants = {Variant{}};
  study.settings = {{"run.duration", {"20s"}}, {"fleet.workers", {"8"}}};
  using Kind = FaultPlan::Kind;
  study.faults = {{.kind = Kind::upstream_slow, .at = 1s, .length = 1s, .factor = 2},
                  {.kind = Kind::worker_crash, .at = 5s, .length = 1s},
                  {.kind = Kind::store_slow, .at = 3s, .length = 1s, .factor = 2},
                  {.kind = Kind::worker_pause, .at = 7s, .length = 1s}};
  // The first judge objects to every run, and says nothing of the second.
  study.judges.never = {"offered", "crashes"};
  const std::vector<std::string> both = {"never offered", "never crashes"};
  const Study single = single_run(study, 0, 0, 0);
  REQUIRE(objectors(single) == both);
  CHECK(shrink(single, "never offered").study.faults.empty());
  const Shrunk shrunk = shrink(single, "never crashes");
  CHECK(shrunk.fails);
  REQUIRE(shrunk.study.faults.size() == 1);
  CHECK(shrunk.study.faults[0].kind == Kind::worker_crash);
  CHECK(shrunk.study.scenario(0, 0).fleet.workers == 1);
  CHECK(objectors(shrunk.study) == both);
  CHECK_FALSE(shrink(single, "no such judge").fails);
  std::atomic<bool> stop{false};
  const auto look = [&stop](const Shrunk& now) { stop = now.runs == 5; };
  const Shrunk stopped = shrink(single, "never crashes", look, &stop);
  CHECK(stopped.partial);
  CHECK(stopped.runs == 5);
  CHECK(objectors(stopped.study) == both);
}

TEST_CASE("shrinking keeps the fault from which a run does not recover in time") {
  Study study = small_study();
  study.variants = {Variant{}};
  study.settings = {{"run.duration", {"60s"}}, {"limiter.kind", {"none"}}};
  using Kind = FaultPlan::Kind;
  study.faults = {{.kind = Kind::worker_pause, .at = 5s, .length = 1s, .share = 0.5},
                  {.kind = Kind::upstream_down, .at = 10s, .length = 20s}};
  study.judges.recovery = 1s;
  const Study single = single_run(study, 0, 0, 0);
  REQUIRE(objectors(single) == std::vector<std::string>{recovery_judge});
  const Shrunk shrunk = shrink(single, recovery_judge);
  CHECK(shrunk.fails);
  CHECK(shrunk.study.faults.size() == 1);
  CHECK(shrunk.study.judges.recovery == 1s);
  CHECK(objectors(shrunk.study) == std::vector<std::string>{recovery_judge});
}

TEST_CASE("shrinking leaves the keys of a trace alone, which its file has") {
  const test::Folder folder;
  const auto file = folder.write("calls.csv", "t,key\n0.1,a\n0.2,b\n0.3,c\n0.4,d\n");
  Study study = small_study();
  study.variants = {Variant{}};
  study.settings = {
      {"run.duration", {"2s"}}, {"arrivals.kind", {"trace"}}, {"arrivals.file", {file.string()}}};
  const Study single = single_run(study, 0, 0, 0);
  const Shrunk shrunk = shrink_while(single, [](const Study& each) {
    CHECK(each.scenario(0, 0).jobs.keys == 4);
    return true;
  });
  CHECK(shrunk.runs < 200);
}

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
