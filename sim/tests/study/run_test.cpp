// Runs of studies: the same bytes on any number of threads, what a stop leaves, what an exception
// ends. Threading: run_study() starts threads.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/scenario/judges.hpp"
#include "sim/study/output.hpp"
#include "sim/study/shrink.hpp"
#include "sim/study/study_run.hpp"
#include "sim/study/twice.hpp"
#include "sim/tests/scenario/pinned_scenario.hpp"
#include "sim/tests/study/small_study.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;
using test::small_study;

TEST_CASE("the traces of two scenarios are the same in every build", "[scenario]") {
  for (const auto& [leased, trace] : test::pinned_scenarios) {
    CAPTURE(leased);
    CHECK(sim::run(test::pinned_scenario(leased)).trace == trace);
  }
}

TEST_CASE("a study has the same bytes on any number of threads") {
  Study study = small_study();
  study.sweeps = {{"arrivals.load", {{"0.5"}, {"1.5"}}}};
  const auto bytes = [&study](unsigned jobs) {
    const StudyResult result = run_study(study, {.jobs = jobs, .stop = nullptr, .progress = {}});
    return to_json(result, "x") + figures_csv(result) + series_csv(result) + to_text(result);
  };
  const std::string alone = bytes(1);
  CHECK(alone.size() > 1000);
  CHECK(bytes(2) == alone);
  CHECK(bytes(7) == alone);
}

TEST_CASE("the output of a grid names all parameters that are swept") {
  Study study = small_study();
  study.replications = 2;
  study.sweeps = {{"arrivals.load", {{"0.5"}, {"1.5"}}}, {"jobs.keys", {{"1"}, {"3"}}}};
  Expectation expected;
  expected.metric = "goodput";
  expected.least = 1;
  study.expectations = {expected};
  study.expectations[0].at_values = {{"jobs.keys", {"3"}}};
  const StudyResult result = run_study(study);
  REQUIRE(result.rows.size() == 8);
  const Row& last = result.row(1, 3);
  const std::string text = to_text(result);
  CHECK(text.find("b, arrivals.load = 1.5, jobs.keys = 3") != std::string::npos);
  CHECK(text.find("2 replications of 4 points (2 of arrivals.load x 2 of jobs.keys), 99 %") !=
        std::string::npos);
  CHECK(text.find("of 'a' at arrivals.load = 0.5, jobs.keys = 3: at least 1 /s") !=
        std::string::npos);
  REQUIRE(result.verdicts.size() == 4);
  CHECK(result.verdicts[3].variant == 1);
  CHECK(result.verdicts[3].point == 3);
  const std::string figures = figures_csv(result);
  CHECK(figures.find(
            "variant,arrivals.load,jobs.keys,metric,unit,mean,low,high,replications,never\n") == 0);
  CHECK(figures.find("\nb,1.5,3,goodput,/s," +
                     std::to_string(last.figures[0][Metric::goodput]).substr(0, 2)) !=
        std::string::npos);
  CHECK(series_csv(result).find("variant,arrivals.load,jobs.keys,time_s,") == 0);
  const std::string json = to_json(result, "x");
  CHECK(json.find("\"sweep\":{\"parameter\":\"arrivals.load, jobs.keys\",\"values\":["
                  "\"arrivals.load = 0.5, jobs.keys = 1\",") != std::string::npos);
  CHECK(json.find("\"axes\":[{\"parameter\":\"arrivals.load\",\"values\":[\"0.5\",\"1.5\"]},"
                  "{\"parameter\":\"jobs.keys\",\"values\":[\"1\",\"3\"]}]") != std::string::npos);
  // The figures are those of the scenario with both values.
  CHECK(last.first.trace == sim::run(study.scenario(1, 3)).trace);
}

TEST_CASE("replications differ, and the first has the study's own seed") {
  const Study study = small_study();
  CHECK(seed_of(study, 0) == study.seed);
  CHECK(seed_of(study, 1) != seed_of(study, 2));
  const StudyResult result = run_study(study);
  REQUIRE(result.rows.size() == 2);
  for (const Row& row : result.rows) {
    REQUIRE(row.figures.size() == 5);
    CHECK(row.figures[0][Metric::events] != row.figures[1][Metric::events]);
  }
  const Study single = single_run(study, 1, 0, 3);
  CHECK(run_study(single).rows[0].figures[0][Metric::events] ==
        result.rows[1].figures[3][Metric::events]);
}

TEST_CASE("a stop leaves the first replications of all rows, and says so") {
  Study study = small_study();
  study.replications = 100'000;
  std::atomic<bool> stop{false};
  StudyOptions options{.jobs = 2, .stop = &stop, .progress = {}};
  options.progress = [&](const StudyProgress& progress) {
    if (progress.done >= 6) stop = true;
  };
  const StudyResult result = run_study(study, options);
  CHECK(result.partial);
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

TEST_CASE("precision doubles the replications until the interval of every row is narrow") {
  Study study = small_study();
  study.variants.push_back({"c",
                            {{"limiter.wait", {"skip"}},
                             {"limiter.limit", {"20/s"}},
                             {"limiter.shadow", {"fixed_window"}}}});
  std::set<std::size_t> counts;
  for (const std::string name : {"wait_mean", "shadow_deviation", "critical_done"}) {
    study.headline = {name};
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
        const StudyResult narrow = run_study(asked);
        CHECK(narrow.replications == expected);
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

TEST_CASE("what a run throws arrives") {
  Study study = small_study();
  study.settings.push_back({"client.cap", {"100d"}});
  for (const unsigned jobs : {1U, 4U}) {
    CHECK_THROWS_WITH(run_study(study, {.jobs = jobs, .stop = nullptr, .progress = {}}),
                      Catch::Matchers::StartsWith("small (variant \"") &&
                          Catch::Matchers::Contains("cap 8640000000000 us"));
  }
}

TEST_CASE("a run repeats itself") {
  const Study study = single_run(small_study(), 1, 0, 2);
  CHECK(run_twice(study).empty());
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
