// The warm-up that pilots find: what they look at, what a study makes of it, and what is refused.
// Threading: run_study() starts threads.
#include "sluice/sim/rehearse.hpp"

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "sim/fleet/pilot.hpp"
#include "sim/study/compare.hpp"
#include "sim/study/output.hpp"
#include "sim/study/study_run.hpp"
#include "sim/tests/help.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;
using test::message_of;

namespace {

/// M/M/c in front of which nobody waits for a limiter; rho = 0.9.
Scenario queue(std::uint32_t servers, Span service, Span duration) {
  Scenario scenario;
  scenario.duration = duration;
  scenario.fleet.workers = 1;
  scenario.arrivals.rate = {9 * Word{servers} * 100, service * 1000};
  scenario.limiter.kind = LimiterOptions::Kind::none;
  scenario.upstream.servers = servers;
  scenario.upstream.latency = Delay::exponential(service);
  scenario.upstream.to = scenario.upstream.from = Delay::constant(Span{0});
  return scenario;
}

/// One job a second, for 10 s.
Scenario one_a_second() {
  Scenario scenario = queue(0, 1s, 10s);
  scenario.arrivals.kind = ArrivalOptions::Kind::constant;
  scenario.arrivals.rate = {1, 1s};
  return scenario;
}

/// Two variants of different warm-ups, at two loads.
Study two_variants() {
  Study study;
  study.name = "two";
  study.replications = 4;
  study.settings = {{"run.duration", {"40s"}},      {"run.warm_up", {"auto"}},
                    {"fleet.workers", {"2"}},       {"arrivals.rate", {"50/s"}},
                    {"limiter.kind", {"none"}},     {"upstream.servers", {"170"}},
                    {"upstream.latency", {"500ms"}}};
  study.variants = {{"fast", {}}, {"slow", {{"upstream.latency", {"exponential(3s)"}}}}};
  study.sweeps = {{"arrivals.load", {{"0.5"}, {"1"}}}};
  return study;
}

StudyOptions on(unsigned jobs) { return {.jobs = jobs, .stop = nullptr, .progress = {}}; }

/// What is found under the first seeds, in order.
std::vector<Span> cuts_of(Scenario scenario) {
  std::vector<Span> cuts;
  for (scenario.seed = 1; scenario.seed <= test::scaled(9, 3); ++scenario.seed) {
    cuts.push_back(find_warm_up(scenario));
  }
  std::ranges::sort(cuts);
  return cuts;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("servers that start idle at rho = 0.9 are cut while they fill", "[statistics]") {
  // A hundred servers fill as 1 - exp(-t / 1 s): within 1 % of the end after 4.6 s.
  const std::vector<Span> many = cuts_of(queue(100, 1s, 100s));
  CHECK(many.front() >= 1s);
  CHECK(many[many.size() / 2] >= 2s);
  CHECK(many[many.size() / 2] <= 10s);
  CHECK(many.back() <= 50s);
  for (const Span cut : many) CHECK(cut % 500ms == Span{0});  // of 200 batches
  // One server has a relaxation time of 3.8 s.
  const std::vector<Span> one = cuts_of(queue(1, 10ms, 2min));
  CHECK(one[one.size() / 2] >= 600ms);
  CHECK(one[one.size() / 2] <= 20s);
  CHECK(one.back() <= 1min);
}

TEST_CASE("a run with an automatic warm-up is that with the one that pilots find") {
  Scenario scenario = queue(20, 300ms, 30s);
  const Span found = find_warm_up(scenario);
  REQUIRE(found > Span{0});
  scenario.warm_up = auto_warm_up;
  CHECK(find_warm_up(scenario) == found);
  const RunResult automatic = sim::run(scenario);
  scenario.warm_up = found;
  const RunResult fixed = sim::run(scenario);
  CHECK(automatic.warm_up == found);
  CHECK(fixed.warm_up == found);
  CHECK(automatic.trace == fixed.trace);
  CHECK(automatic.figures[Metric::goodput] == fixed.figures[Metric::goodput]);
  scenario.warm_up = Span{0};
  CHECK(sim::run(scenario).figures[Metric::upstream_busy] < fixed.figures[Metric::upstream_busy]);
}

TEST_CASE("the pilots of a rehearsal run the program's own client") {
  Scenario scenario = queue(20, 300ms, 30s);
  REQUIRE(find_warm_up(scenario) > Span{0});
  const auto give_up = [](Store&) {
    return [](RehearsedJob&) -> RehearsedJob::Task<> { co_return; };
  };
  CHECK(find_warm_up(scenario, give_up) == Span{0});
  scenario.warm_up = auto_warm_up;
  CHECK(rehearse(scenario, give_up).warm_up == Span{0});
}

TEST_CASE("pilots are under the scenario's seed and others, and tell the mean level of each step") {
  Scenario scenario = one_a_second();
  scenario.upstream.latency = Delay::constant(12ms);
  scenario.upstream.to = Delay::constant(1ms);
  scenario.upstream.from = Delay::constant(2ms);
  // One job a second for 15 ms: one and a half steps of 10 ms.
  std::vector<std::uint64_t> expected(1000, 0);
  for (std::size_t second = 1; second < 10; ++second) {
    expected[100 * second] = 1000;
    expected[100 * second + 1] = 500;
  }
  CHECK(run_pilot(scenario, 0, {}, nullptr) == expected);

  scenario.arrivals.kind = ArrivalOptions::Kind::poisson;
  scenario.arrivals.rate = {50, 1s};
  const auto first = run_pilot(scenario, 0, {}, nullptr);
  CHECK(run_pilot(scenario, 0, {}, nullptr) == first);
  CHECK(run_pilot(scenario, 1, {}, nullptr) != first);
  CHECK(run_pilot(scenario, 2, {}, nullptr) != run_pilot(scenario, 1, {}, nullptr));
  scenario.seed = 2;
  CHECK(run_pilot(scenario, 0, {}, nullptr) != first);
}

TEST_CASE("jobs that are given up wait no more") {
  Scenario scenario = one_a_second();
  scenario.upstream.failures = 1;
  scenario.client.attempts = 1;
  scenario.upstream.latency = Delay::constant(5ms);
  const auto series = run_pilot(scenario, 0, {}, nullptr);
  CHECK(series[100] == 500);
  CHECK(series[101] == 0);
  CHECK(series[950] == 0);
}

TEST_CASE("pilots look at the time before the first fault, or before a spike", "[statistics]") {
  Scenario scenario = queue(100, 1s, 40s);
  const Span found = find_warm_up(scenario);
  CHECK(found > Span{0});
  scenario.duration = 90s;
  using Kind = FaultPlan::Kind;
  scenario.faults = {{.kind = Kind::upstream_down, .at = 60s, .length = 1s},
                     {.kind = Kind::upstream_slow, .at = 40s, .length = 30s, .factor = 50}};
  CHECK(find_warm_up(scenario) == found);
  scenario.faults.clear();
  scenario.arrivals.kind = ArrivalOptions::Kind::spike;
  scenario.arrivals.factor = 20;
  scenario.arrivals.from = 40s;
  CHECK(find_warm_up(scenario) == found);
  scenario.faults = {{.kind = Kind::upstream_down, .at = 60s, .length = 1s}};
  CHECK(find_warm_up(scenario) == found);
  scenario.faults.front().at = 20s;
  CHECK(find_warm_up(scenario) == find_warm_up(queue(100, 1s, 20s)));
  CHECK(find_warm_up(queue(100, 1s, 20s)) != found);
}

TEST_CASE("what pilots cannot tell is refused with the remedy") {
  Scenario scenario = queue(100, 1s, 40s);
  scenario.warm_up = auto_warm_up;
  using Kind = FaultPlan::Kind;
  scenario.faults = {{.kind = Kind::upstream_down, .at = 0s, .length = 1s}};
  CHECK(message_of([&] { return sim::run(scenario); }) ==
        "run.warm_up = \"auto\" looks at the time before the fault upstream_down at 0.000000 s, "
        "which must be 1ms or longer: let that be later, or set run.warm_up to a time");
  scenario.faults.front().at = 1ms;
  CHECK(!contains(message_of([&] { return sim::run(scenario); }), "looks at the time"));
  scenario.faults.clear();
  scenario.duration = Span{999};
  CHECK(message_of([&] { return sim::run(scenario); }) ==
        "run.warm_up = \"auto\" looks at the time of the run, which must be 1ms or longer: make "
        "run.duration longer, or set run.warm_up to a time");
  scenario.duration = 20s;
  scenario.arrivals.kind = ArrivalOptions::Kind::bursts;
  scenario.arrivals.bursts = {{10, 1s}};
  CHECK(message_of([&] { return find_warm_up(scenario); }) ==
        "run.warm_up = \"auto\" needs arrivals that go on, and arrivals.kind is bursts: set "
        "run.warm_up to a time");

  // A queue that grows for ever.
  Scenario overload = queue(1, 10ms, 20s);
  overload.arrivals.load = 2;
  overload.warm_up = auto_warm_up;
  CHECK(message_of([&] { return sim::run(overload); }) ==
        "the run is too short for its warm-up: run.warm_up = \"auto\" (MSER-5) would cut the first "
        "15.000000 s of 20.000000 s, more than half: make it several times as long, or set "
        "run.warm_up to a time; under an overload, nothing settles");
  overload.faults = {{.kind = Kind::upstream_down, .at = 10s, .length = 1s}};
  CHECK(contains(
      message_of([&] { return sim::run(overload); }),
      "the time before the fault upstream_down is too short for its warm-up: run.warm_up = "
      "\"auto\" (MSER-5) would cut the first 7.500000 s of 10.000000 s"));
  overload.warm_up = 2s;
  CHECK(message_of([&] { return sim::run(overload); }).empty());
}

TEST_CASE("variants of a point have the longest of their warm-ups, and each point its own",
          "[statistics]") {
  const Study study = two_variants();
  const StudyResult result = run_study(study);
  REQUIRE(result.replications == 4);
  for (std::size_t point = 0; point < 2; ++point) {
    const Span fast = find_warm_up(study.scenario(0, point));
    const Span slow = find_warm_up(study.scenario(1, point));
    CAPTURE(point, fast.count(), slow.count());
    REQUIRE(fast < slow);
    for (std::size_t variant = 0; variant < 2; ++variant) {
      const Row& row = result.row(variant, point);
      CHECK(row.warm_up == slow);
      // It is that of every replication.
      Scenario scenario = study.scenario(variant, point);
      scenario.warm_up = slow;
      for (std::size_t i = 0; i < 4; ++i) {
        scenario.seed = seed_of(study, i);
        const RunResult alone = sim::run(scenario);
        CHECK(row.figures[i][Metric::goodput] == alone.figures[Metric::goodput]);
        CHECK(row.figures[i][Metric::upstream_busy] == alone.figures[Metric::upstream_busy]);
      }
    }
  }
  CHECK(result.row(0, 0).warm_up != result.row(0, 1).warm_up);
}

TEST_CASE("a variant whose warm-up is given keeps it") {
  Study study = two_variants();
  study.variants[1].settings.push_back({"run.warm_up", {"12s"}});
  const StudyResult result = run_study(study);
  CHECK(result.row(1, 0).warm_up == 12s);
  CHECK(result.row(0, 0).warm_up == find_warm_up(study.scenario(0, 0)));
  CHECK(result.row(0, 0).warm_up != 12s);
}

TEST_CASE("a study has the same bytes on any number of threads", "[statistics]") {
  const Study study = two_variants();
  const auto bytes = [&study](unsigned jobs) {
    const StudyResult result = run_study(study, on(jobs));
    return to_json(result, "x") + figures_csv(result) + series_csv(result) + to_text(result);
  };
  const std::string alone = bytes(1);
  CHECK(bytes(2) == alone);
  CHECK(bytes(7) == alone);
  CHECK(contains(alone, "\"run.warm_up\":\"auto\""));
}

TEST_CASE("what is too short names its row") {
  Study study = two_variants();
  study.variants[1].settings.push_back({"upstream.servers", {"5"}});
  const std::string message = message_of([&] { return run_study(study); });
  CHECK(contains(message, "two (variant \"slow\") (arrivals.load = 0.5): the run is too short"));
}

TEST_CASE("a single run has the warm-up of its row") {
  const Study study = two_variants();
  const StudyResult result = run_study(study);
  const Span shared = result.row(0, 1).warm_up;
  const Study single = single_run(study, 0, 1, 3, shared);
  CHECK(single.scenario(0, 0).warm_up == shared);
  const StudyResult again = run_study(single);
  CHECK(again.rows[0].figures[0][Metric::upstream_busy] ==
        result.row(0, 1).figures[3][Metric::upstream_busy]);
  CHECK(contains(to_toml(single, "x"), "warm_up = \"" + std::to_string(shared.count()) + "us\""));
  CHECK(single_run(study, 0, 1, 3).scenario(0, 0).warm_up == find_warm_up(study.scenario(0, 1)));
}

TEST_CASE("a comparison gives both sides the longer warm-up", "[statistics]") {
  Study fast = two_variants();
  Study slow = two_variants();
  fast.sweeps.clear();
  slow.sweeps.clear();
  keep_variant(fast, "fast");
  keep_variant(slow, "slow");
  const Span longer = find_warm_up(slow.scenario(0, 0));
  REQUIRE(longer > find_warm_up(fast.scenario(0, 0)));
  for (const bool swapped : {false, true}) {
    Study a = swapped ? slow : fast;
    Study b = swapped ? fast : slow;
    CHECK(share_warm_up(a, b) == longer);
    CHECK(a.scenario(0, 0).warm_up == longer);
    CHECK(b.scenario(0, 0).warm_up == longer);
  }
  // One that is given counts as well.
  Study given = fast;
  given.settings.push_back({"run.warm_up", {"18s"}});
  Study other = slow;
  CHECK(share_warm_up(given, other) == Span{18s});
  CHECK(other.scenario(0, 0).warm_up == 18s);
  Study again = given;
  CHECK(share_warm_up(given, again) == std::nullopt);
  // A sweep of the warm-up ends.
  Study swept = slow;
  swept.sweeps = {{"run.warm_up", {{"auto"}, {"1s"}}}};
  Study beside = fast;
  CHECK(share_warm_up(swept, beside) == longer);
  CHECK(swept.scenario(0, 0).warm_up == longer);
}

TEST_CASE("a pilot whose time stands still is told with its seed") {
  Scenario scenario = queue(1, 10ms, 10s);
  scenario.seed = 77;
  scenario.events_per_instant = 1'000;
  scenario.arrivals.kind = ArrivalOptions::Kind::closed;
  scenario.arrivals.rate = ArrivalOptions{}.rate;
  scenario.arrivals.think = Delay::constant(Span{0});
  scenario.upstream.latency = Delay::constant(Span{0});
  CHECK_THROWS_WITH(
      find_warm_up(scenario),
      test::contains_text("the time stands still at 0.000000 s: 1000 events have run there") &&
          test::contains_text("a run with a seed of 77 and a warm-up of 0s repeats it"));

  Study study = two_variants();
  study.variants[1].settings = {
      {"arrivals.kind", {"closed"}}, {"arrivals.think", {"0s"}},
      {"upstream.latency", {"0s"}},  {"upstream.to", {"0s"}},
      {"upstream.from", {"0s"}},     {"run.events_per_instant", {"1000"}}};
  CHECK_THROWS_WITH(run_study(study), Catch::Matchers::StartsWith("two (variant \"slow\") (arr"));
}

TEST_CASE("a stop ends the pilots, and no replication is done") {
  const Study study = two_variants();
  const std::atomic<bool> stop{true};
  const StudyResult result = run_study(study, {.jobs = 2, .stop = &stop, .progress = {}});
  CHECK(result.partial);
  CHECK(result.replications == 0);
  CHECK_THROWS_AS(find_warm_up(study.scenario(0, 0), {}, &stop), Stopped);
}
