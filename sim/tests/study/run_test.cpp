// Runs of studies: the same bytes on any number of threads, what a stop leaves, what an exception
// ends. Threading: run_study() starts threads.
#include <unistd.h>

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
#include "sim/study/new_file.hpp"
#include "sim/study/output.hpp"
#include "sim/study/shrink.hpp"
#include "sim/study/study_run.hpp"
#include "sim/study/twice.hpp"
#include "sim/tests/fleet/pinned_scenario.hpp"
#include "sim/tests/study/small_study.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;
using test::small_study;

TEST_CASE("the traces of two scenarios are the same in every build", "[scenario]") {
  for (const auto& [prefetch, trace] : test::pinned_scenarios) {
    CAPTURE(prefetch);
    CHECK(sim::run(test::pinned_scenario(prefetch)).trace == trace);
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

TEST_CASE("a file that is not finished leaves nothing") {
  const auto path =
      std::filesystem::temp_directory_path() / ("sluice-run-" + std::to_string(getpid()) + ".txt");
  write_file(path, "whole");
  NewFile(path).out() << "half";
  CHECK_FALSE(std::filesystem::exists(path.string() + ".part"));
  std::ifstream in(path);
  CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == "whole");
  // No text of a scenario ends the script element of the report.
  write_file(path, "<script>/*RESULT*/</script>");
  CHECK(to_html("{\"a\":\"</script>\"}", path) == "<script>{\"a\":\"\\u003c/script>\"}</script>");
  std::filesystem::remove(path);
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
