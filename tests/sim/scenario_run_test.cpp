// Studies: the same bytes on any number of threads, verdicts at their borders, what a stop leaves,
// and judges that object to wrong histories. Threading: run_study() starts threads.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <string>

#include "sim/scenario/judges.hpp"
#include "sim/study/output.hpp"
#include "sim/study/shrink.hpp"
#include "sim/study/study_run.hpp"
#include "sim/study/twice.hpp"
#include "sim/study/verdicts.hpp"
#include "tests/catch.hpp"
#include "tests/sim/pinned_scenario.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;

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

/// A result of one row with these values of the goodput.
struct Judged {
  Study study;
  StudyResult result;

  explicit Judged(std::vector<double> values) {
    study.variants = {Variant{}};
    result.rows.push_back({0, 0, {}, {}});
    for (const double value : values) {
      result.rows.front().figures.emplace_back()[Metric::goodput] = value;
    }
    result.replications = values.size();
  }
  Status status(const Expectation& expectation) {
    study.expectations = {expectation};
    result.study = &study;
    result.verdicts.clear();
    result.judgements.clear();
    judge(result);
    return result.verdicts.at(0).status;
  }
};

Expectation goodput() {
  Expectation expectation;
  expectation.metric = "goodput";
  return expectation;
}

Expectation least(double value) {
  Expectation expectation = goodput();
  expectation.least = value;
  return expectation;
}
Expectation most(double value) {
  Expectation expectation = goodput();
  expectation.most = value;
  return expectation;
}
Expectation equals(double value, double within = 0) {
  Expectation expectation = goodput();
  expectation.equals = value;
  expectation.within = within;
  return expectation;
}

bool objects(const RunResult& result, std::string_view judge) {
  return std::ranges::any_of(
      result.objections, [judge](const Objection& objection) { return objection.judge == judge; });
}
bool has_looked(const RunResult& result, std::string_view judge) {
  return std::ranges::find(result.judges, judge) != result.judges.end();
}

}  // namespace

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
  study.expectations = {least(1)};
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
  CHECK(figures.find("variant,arrivals.load,jobs.keys,metric,unit,mean,low,high\n") == 0);
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

TEST_CASE("precision doubles the replications until the interval is narrow") {
  Study study = small_study();
  study.variants.resize(1);
  study.replications = 3;
  study.headline = {"wait_mean"};
  study.precision = 0.9;
  CHECK(run_study(study).replications == 3);
  study.precision = 0.05;
  const StudyResult narrow = run_study(study);
  CHECK(narrow.replications > 3);
  CHECK((narrow.replications % 3 == 0 || narrow.replications == 1000));
  const auto interval = narrow.rows[0].interval(Metric::wait_mean, study.confidence);
  REQUIRE(interval);
  CHECK(interval->half_width <= 0.05 * interval->mean);
  study.headline = {"shadow_differs"};  // no run has it
  CHECK(run_study(study).replications == 3);
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

TEST_CASE("an expectation holds if the whole interval lies within, and fails if none of it does") {
  Judged same({10, 10, 10});
  CHECK(same.status(least(10)) == Status::holds);
  CHECK(same.status(least(10.0001)) == Status::fails);
  CHECK(same.status(most(10)) == Status::holds);
  CHECK(same.status(most(9.9999)) == Status::fails);
  CHECK(same.status(equals(10)) == Status::holds);
  CHECK(same.status(equals(10.0001)) == Status::fails);
  CHECK(same.status(equals(10.5, 0.5)) == Status::holds);
  CHECK(same.status(equals(10.6, 0.5)) == Status::fails);

  Judged spread({9, 10, 11});
  const auto interval = spread.result.rows[0].interval(Metric::goodput, 0.99);
  REQUIRE(interval);
  const double low = interval->low();
  const double high = interval->high();
  CHECK(spread.status(least(low)) == Status::holds);
  CHECK(spread.status(least(low + 0.001)) == Status::undecided);
  CHECK(spread.status(least(high - 0.001)) == Status::undecided);
  CHECK(spread.status(least(high + 0.001)) == Status::fails);
  CHECK(spread.status(most(high)) == Status::holds);
  CHECK(spread.status(most(high - 0.001)) == Status::undecided);
  CHECK(spread.status(most(low - 0.001)) == Status::fails);
  CHECK(spread.status(equals(high)) == Status::holds);
  CHECK(spread.status(equals(high + 0.001)) == Status::fails);
  Expectation both = least(low);
  both.most = low - 1;
  CHECK(spread.status(both) == Status::fails);
  both.most = high - 0.001;
  CHECK(spread.status(both) == Status::undecided);

  CHECK(Judged({NAN, NAN}).status(least(0)) == Status::undecided);
  CHECK(Judged({NAN, 3}).status(least(3)) == Status::holds);
  CHECK(Judged({}).status(least(0)) == Status::undecided);
}

TEST_CASE("the status of a study is its worst verdict") {
  Judged judged({9, 10, 11});
  (void)judged.status(least(0));
  CHECK(judged.result.status() == Status::holds);
  judged.result.partial = true;
  CHECK(judged.result.status() == Status::undecided);
  judged.result.partial = false;
  (void)judged.status(least(10));
  CHECK(judged.result.status() == Status::undecided);
  judged.result.judgements.push_back({"a judge", 0, true, "why", 0, 0});
  CHECK(judged.result.status() == Status::fails);
  (void)judged.status(least(1000));
  CHECK(judged.result.status() == Status::fails);
}

TEST_CASE("ratios of variants are taken replication by replication") {
  Judged judged({10, 20, 40});
  judged.study.variants = {{"a", {}}, {"b", {}}};
  judged.result.rows.push_back({1, 0, {}, {}});
  for (const double value : {5.0, 10.0, 20.0}) {
    judged.result.rows[1].figures.emplace_back()[Metric::goodput] = value;
  }
  Expectation twice = equals(2);
  twice.variant = "a";
  twice.of = "b";
  CHECK(judged.status(twice) == Status::holds);
  for (Figures& figures : judged.result.rows[1].figures) figures[Metric::goodput] = 0;
  CHECK(judged.status(twice) == Status::undecided);
}

TEST_CASE("what must happen in some replication, and what in none") {
  const auto judged = [](double crashes, bool sometimes) {
    Judged all({1, 1});
    for (Figures& figures : all.result.rows[0].figures) figures[Metric::crashes] = 0;
    all.result.rows[0].figures[1][Metric::crashes] = crashes;
    (sometimes ? all.study.judges.sometimes : all.study.judges.never) = {"crashes"};
    all.result.study = &all.study;
    judge(all.result);
    REQUIRE(all.result.judgements.size() == 1);
    const Judgement& judgement = all.result.judgements.front();
    CHECK(judgement.replication.has_value() == (crashes > 0));
    if (judgement.replication) CHECK(*judgement.replication == 1);
    return judgement.objects;
  };
  CHECK_FALSE(judged(1, true));
  CHECK(judged(0, true));
  CHECK(judged(1, false));
  CHECK_FALSE(judged(0, false));
}

TEST_CASE("the bound of the limiter is judged") {
  Scenario scenario;
  scenario.limiter.limit = Rate{10, 1s};
  Recorder recorder(scenario, Time{});
  const auto verdict = [&](std::uint64_t lost) {
    RunResult result;
    judge_safety(scenario, recorder, lost, result);
    CHECK(has_looked(result, "the limiter's bound"));
    return objects(result, "the limiter's bound");
  };
  const auto grant = [&](Span at) { recorder.granted(0, {Time{at}, 1, true, Time{at}}); };
  SECTION("token bucket") {
    for (int i = 0; i < 10; ++i) grant(1s);
    CHECK_FALSE(verdict(0));
    grant(1050ms);
    CHECK(verdict(0));
    CHECK_FALSE(verdict(1));  // the store has forgotten one
  }
  SECTION("sliding window") {
    scenario.limiter.kind = LimiterOptions::Kind::sliding_window;
    for (int i = 0; i < 10; ++i) grant(1s);
    grant(2s);
    CHECK_FALSE(verdict(0));
    grant(2s - 1us);
    std::ranges::stable_sort(recorder.grants[0], {}, &testing::Event::effective);
    CHECK(verdict(0));
  }
  SECTION("fixed window") {
    scenario.limiter.kind = LimiterOptions::Kind::fixed_window;
    for (int i = 0; i < 10; ++i) grant(1900ms);
    for (int i = 0; i < 10; ++i) grant(2s);
    CHECK_FALSE(verdict(0));
    grant(2100ms);
    CHECK(verdict(0));
  }
  SECTION("slots") {
    scenario.limiter.kind = LimiterOptions::Kind::slot_lock;
    grant(1s);
    grant(1100ms);
    CHECK_FALSE(verdict(0));
    grant(1150ms);
    CHECK(verdict(0));
  }
}

TEST_CASE("waits that end twice, late, never or out of order are judged") {
  Scenario scenario;
  scenario.store.timeout = 10ms;
  Recorder recorder(scenario, Time{});
  const Job job{};
  using End = testing::Wait::End;
  const auto verdict = [&](std::string_view judge) {
    recorder.stopped = Time{1min};
    RunResult result;
    judge_safety(scenario, recorder, 0, result);
    judge_order(scenario, recorder, result);
    CHECK(has_looked(result, "every wait ends once, in time"));
    return objects(result, judge);
  };
  const std::size_t first = recorder.queued(job, Time{1s}, Time{2s});
  const std::size_t second = recorder.queued(job, Time{1s}, Time::max());
  SECTION("good ends") {
    recorder.left_queue(job, first, Time{2s + 20ms}, End::refused);
    recorder.left_queue(job, second, Time{5s}, End::granted);
    CHECK_FALSE(verdict("every wait ends once, in time"));
    CHECK_FALSE(verdict("first come, first served"));
  }
  SECTION("one goes on, without a deadline") {
    recorder.left_queue(job, first, Time{2s}, End::refused);
    CHECK_FALSE(verdict("every wait ends once, in time"));
  }
  SECTION("twice") {
    recorder.left_queue(job, first, Time{2s}, End::granted);
    recorder.left_queue(job, first, Time{2s}, End::granted);
    CHECK(verdict("every wait ends once, in time"));
  }
  SECTION("late") {
    recorder.left_queue(job, first, Time{2s + 21ms}, End::refused);
    CHECK(verdict("every wait ends once, in time"));
  }
  SECTION("never") { CHECK(verdict("every wait ends once, in time")); }
  SECTION("out of order") {
    recorder.left_queue(job, second, Time{1500ms}, End::granted);
    recorder.left_queue(job, first, Time{1600ms}, End::granted);
    CHECK(verdict("first come, first served"));
    scenario.faults = {{.kind = FaultPlan::Kind::store_down, .at = 1s, .length = 1s}};
    CHECK_FALSE(verdict("first come, first served"));
  }
}

TEST_CASE("the order of a queue is judged") {
  Scenario scenario;
  Recorder recorder(scenario, Time{});
  const Job job;
  /// A wait that is still going on, and calls after it that are granted.
  const auto overtaken = [&](int times, Span begin) {
    (void)recorder.queued(job, Time{begin}, Time::max());
    for (int i = 1; i <= times; ++i) {
      const Time came{begin + i * 1ms};
      const std::size_t place = recorder.queued(job, came, Time::max());
      recorder.left_queue(job, place, came + 1ms, testing::Wait::End::granted);
    }
  };
  const auto objected = [&] {
    recorder.stopped = Time{scenario.duration};
    RunResult result;
    judge_order(scenario, recorder, result);
    return objects(result, "first come, first served");
  };
  SECTION("one that is left behind for ever") {
    overtaken(1, 1s);
    CHECK(objected());
    scenario.faults = {{.kind = FaultPlan::Kind::store_down, .at = 1s, .length = 1s}};
    CHECK_FALSE(objected());
  }
  SECTION("once a fault is mended") {
    scenario.faults = {{.kind = FaultPlan::Kind::store_down, .at = 1s, .length = 1s}};
    overtaken(1, 30s);
    CHECK(objected());
    scenario.faults.front().length = 0s;  // it never is
    CHECK_FALSE(objected());
  }
  SECTION("where callers ask side by side") {
    using Kind = LimiterOptions::Kind;
    const Kind kind =
        GENERATE(Kind::concurrency, Kind::fixed_window, Kind::token_bucket, Kind::sliding_window);
    scenario.limiter.kind = kind;
    if (kind == Kind::token_bucket) scenario.limiter.horizon = 0s;
    if (kind == Kind::sliding_window) scenario.store.on_failure = StoreOptions::OnFailure::closed;
    const int times = GENERATE(16, 17);
    overtaken(times, 1s);
    CHECK(objected() == (times > 16));
  }
}

TEST_CASE("store failures before the first fault excuse an order that is not kept") {
  Scenario s;
  s.duration = 20s;
  s.fleet.workers = 2;
  s.arrivals.rate = {130, 1s};
  s.limiter.kind = LimiterOptions::Kind::fixed_window;
  s.limiter.limit = {100, 1s};
  s.store.on_failure = StoreOptions::OnFailure::open;
  s.store.service = Delay::exponential(1ms);
  s.store.timeout = 5ms;
  const RunResult result = sim::run(s);
  CHECK(result.figures[Metric::store_failures] > 0);
  CHECK(result.figures[Metric::bypassed] > 0);
  CHECK(has_looked(result, "first come, first served"));
  CHECK_FALSE(objects(result, "first come, first served"));
}

TEST_CASE("places, gates, hints and grants without the store are judged") {
  Scenario scenario;
  scenario.fleet.workers = 2;
  scenario.limiter.limit = Rate{10, 1s};
  Recorder recorder(scenario, Time{});
  const auto verdict = [&](std::string_view judge) {
    recorder.stopped = Time{1min};
    RunResult result;
    judge_limiter(scenario, recorder, 0, result);
    CHECK(has_looked(result, judge));
    return objects(result, judge);
  };
  SECTION("places") {
    scenario.limiter.kind = LimiterOptions::Kind::concurrency;
    scenario.limiter.burst = 1;
    using Act = testing::LeaseEvent::Act;
    const auto first = recorder.leased(0, {Time{1s}, Act::acquired, 0, 1, Time{50s}, 1});
    const bool early = GENERATE(false, true);
    (void)recorder.leased(0, {Time{early ? 1500ms : 2s}, Act::acquired, 0, 1, Time{50s}, 2});
    recorder.released(0, first, 1, Time{2s});
    CHECK(verdict("no more leases than places") == early);
  }
  SECTION("free places") {
    scenario.limiter.kind = LimiterOptions::Kind::concurrency;
    scenario.limiter.burst = 1;
    using Act = testing::LeaseEvent::Act;
    const auto first = recorder.leased(0, {Time{1s}, Act::acquired, 0, 1, Time{61s}, 1});
    recorder.released(0, first, 1, Time{10s});
    const bool late = GENERATE(false, true);
    const Time next = Time{10s} + (late ? 6s : 1s);
    (void)recorder.leased(0, {next, Act::acquired, 0, 1, Time{61s}, 2});
    const std::size_t place = recorder.queued({}, Time{5s}, Time::max());
    recorder.left_queue({}, place, next, testing::Wait::End::granted);
    CHECK(verdict("no place is left free while jobs wait") == late);
  }
  SECTION("gates") {
    recorder.closed_gate(Time{1s}, Time{3s});
    recorder.granted(0, {Time{900ms}, 1, true, Time{2s}});  // decided before
    recorder.granted(0, {Time{1100ms}, 1, true, Time{3s}});
    CHECK_FALSE(verdict("nobody passes a closed gate"));
    recorder.granted(0, {Time{1200ms}, 1, true, Time{3s - 1us}});
    CHECK(verdict("nobody passes a closed gate"));
  }
  SECTION("hints") {
    scenario.limiter.wait = LimiterOptions::Wait::poll;
    recorder.polled(0, {Time{1s}, 1, false, {}, 100ms});
    recorder.polled(0, {Time{1099ms}, 1, false, {}, 1ms});
    CHECK_FALSE(verdict("hints are exact"));
    recorder.polled(0, {Time{1100ms}, 1, false, {}, 1us});
    CHECK(verdict("hints are exact"));
  }
  SECTION("grants without the store") {
    scenario.store.on_failure = StoreOptions::OnFailure::local;
    for (int i = 0; i < 5; ++i) recorder.granted_locally(0, {Time{1s}, 1, true, Time{1s}});
    for (int i = 0; i < 5; ++i) recorder.granted_locally(1, {Time{1s}, 1, true, Time{1s}});
    CHECK_FALSE(verdict("grants without the store"));
    for (int i = 0; i < 2; ++i) recorder.granted_locally(1, {Time{1s}, 1, true, Time{1s}});
    CHECK(verdict("grants without the store"));
  }
  SECTION("none are allowed") {
    scenario.store.on_failure = StoreOptions::OnFailure::closed;
    CHECK_FALSE(verdict("grants without the store"));
    recorder.counts.without_store = 1;
    CHECK(verdict("grants without the store"));
  }
}

TEST_CASE("units that are left unused while jobs wait are judged") {
  Scenario scenario;
  scenario.fleet.workers = 1;
  scenario.limiter.limit = Rate{10, 1s};
  Recorder recorder(scenario, Time{});
  const Job job{};
  const bool slow = GENERATE(false, true);
  for (int i = 0; i < 400; ++i) {
    const std::size_t place = recorder.queued(job, Time{}, Time::max());
    recorder.left_queue(job, place, Time{i * (slow ? 200ms : 100ms)}, testing::Wait::End::granted);
  }
  recorder.stopped = Time{1min};
  RunResult result;
  judge_limiter(scenario, recorder, 0, result);
  CHECK(has_looked(result, "no unit is left unused while jobs wait"));
  CHECK(objects(result, "no unit is left unused while jobs wait") == slow);
}

namespace {

/// Ten units for a long time, for one job at 1 s and ten at 5 s; the store is 10 ms away.
Scenario scarce() {
  Scenario s;
  s.duration = 10s;
  s.fleet.workers = 1;
  s.arrivals.kind = ArrivalOptions::Kind::bursts;
  s.arrivals.bursts = {{1, 1s}, {10, 5s}};
  s.limiter.limit = {10, 24h};
  s.limiter.wait = LimiterOptions::Wait::skip;
  s.store.to = s.store.from = Delay::constant(10ms);
  return s;
}

}  // namespace

TEST_CASE("a unit that a worker asks for just before it crashes is charged, and nobody uses it") {
  Scenario s = scarce();
  const Span crash = GENERATE(as<Span>{}, 990ms, 1005ms, 1015ms);
  s.faults = {{.kind = FaultPlan::Kind::worker_crash, .at = crash, .length = 1us}};
  const bool before = crash < 1s;  // the job comes when the worker is back
  const RunResult result = sim::run(s);
  CHECK(result.objections.empty());
  CHECK(result.figures[Metric::crashes] == 1);
  CHECK(result.figures[Metric::orphaned] == (before ? 0 : 1));
  // All units are charged; of the crashed worker's, nobody has the use.
  CHECK(result.figures[Metric::worst_admitted] == (before ? 100 : 90));
  CHECK(result.figures[Metric::goodput] == (before ? 1.0 : 0.9));
}

TEST_CASE("units of workers that crash excuse as many that are left unused, and no more") {
  Scenario scenario;
  scenario.duration = 2min;
  scenario.fleet.workers = 1;
  scenario.limiter.limit = Rate{10, 1s};
  scenario.faults = {{.kind = FaultPlan::Kind::worker_crash, .at = 1s, .length = 1s}};
  Recorder recorder(scenario, Time{});
  recorder.stopped = Time{2min};
  const Word stranded = GENERATE(0, 300);
  recorder.counts.stranded = static_cast<std::uint64_t>(stranded);
  // From 20 s on, nothing is granted in the time of so many units and those that are excused.
  const bool late = GENERATE(false, true);
  const Word delay = 3 + stranded / 9 + (late ? 2 : 0);
  const Job job{};
  for (int i = 0; i < 400; ++i) {
    const std::size_t place = recorder.queued(job, Time{20s}, Time::max());
    recorder.left_queue(job, place, Time{20s + delay * 1s + i * 100ms},
                        testing::Wait::End::granted);
  }
  RunResult result;
  judge_limiter(scenario, recorder, 0, result);
  REQUIRE(has_looked(result, "no unit is left unused while jobs wait"));
  CHECK(objects(result, "no unit is left unused while jobs wait") == late);
}

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
  Scenario scenario;
  scenario.duration = 100s;
  scenario.faults = {{.kind = FaultPlan::Kind::upstream_down, .at = 30s, .length = 10s}};
  RunResult result;
  result.series.step = 1s;
  result.series.ok.assign(100, 100);
  result.series.offered.assign(100, 100);
  const auto took = [&](Span within) {
    result.objections.clear();
    result.judges.clear();
    judge_recovery(scenario, within, result);
    return result.figures[Metric::recovery];
  };
  std::fill_n(result.series.ok.begin() + 30, 10, 0);
  CHECK(took(5s) == 0);
  CHECK(has_looked(result, "recovery"));
  CHECK_FALSE(objects(result, "recovery"));

  std::fill_n(result.series.ok.begin() + 40, 20, 50);  // until 60 s
  CHECK(took(25s) >= 15);
  CHECK(took(25s) <= 20);
  CHECK_FALSE(objects(result, "recovery"));
  (void)took(5s);
  CHECK(objects(result, "recovery"));

  std::fill(result.series.ok.begin() + 40, result.series.ok.end(), 50);  // for good
  CHECK(took(50s) == 60);
  CHECK(objects(result, "recovery"));
  (void)took(0s);
  CHECK_FALSE(has_looked(result, "recovery"));
}

TEST_CASE("a goodput that comes back in bursts has not recovered, one that follows the load has") {
  Scenario scenario;
  scenario.duration = 100s;
  scenario.faults = {{.kind = FaultPlan::Kind::upstream_down, .at = 30s, .length = 10s}};
  RunResult result;
  result.series.step = 1s;
  result.series.ok.assign(100, 100);
  result.series.offered.assign(100, 100);
  std::fill_n(result.series.ok.begin() + 30, 10, 0);
  const auto recovery = [&] {
    judge_recovery(scenario, 0s, result);
    return result.figures[Metric::recovery];
  };
  CHECK(recovery() == 0);

  std::fill_n(result.series.ok.begin() + 50, 10, 0);  // the rest has 50 of 60
  CHECK(recovery() >= 15);
  CHECK(recovery() <= 20);
  for (std::size_t i = 40; i < 100; ++i) result.series.ok[i] = i / 10 % 2 == 0 ? 100 : 0;
  CHECK(recovery() == 60);

  result.series.ok.assign(100, 100);  // 20 jobs a second come from 50 s on
  std::fill_n(result.series.ok.begin() + 50, 50, 20);
  std::fill_n(result.series.offered.begin() + 50, 50, 20);
  CHECK(recovery() == 0);
  std::fill_n(result.series.ok.begin() + 50, 50, 10);
  CHECK(recovery() == 60);
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

TEST_CASE("a run repeats itself") {
  const Study study = single_run(small_study(), 1, 0, 2);
  CHECK(run_twice(study).empty());
}

TEST_CASE("shrinking weakens factors on both sides of 1 towards it, and shares towards 0") {
  Study study = small_study();
  study.variants = {Variant{}};
  study.settings = {
      {"run.duration", {"10s"}},    {"fleet.workers", {"1"}},       {"arrivals.kind", {"constant"}},
      {"arrivals.rate", {"100/s"}}, {"limiter.kind", {"none"}},     {"client.retries", {"none"}},
      {"client.timeout", {"1s"}},   {"upstream.limits", {"120/s"}}, {"upstream.to", {"0s"}},
      {"upstream.from", {"0s"}},    {"upstream.latency", {"100ms"}}};
  using Kind = FaultPlan::Kind;
  const auto factor_left = [&study](const std::string& metric, const FaultPlan& fault) {
    study.faults = {fault};
    study.judges.never = {metric};
    const Study single = single_run(study, 0, 0, 0);
    const Shrunk shrunk = shrink(single, "never " + metric);
    REQUIRE(shrunk.fails);
    REQUIRE(shrunk.study.faults.size() == 1);
    CHECK(shrunk.study.faults[0].kind == fault.kind);
    CHECK(objectors(shrunk.study) == std::vector<std::string>{"never " + metric});
    return shrunk.study.faults[0].factor;
  };
  const auto fault = [](Kind kind, double factor) {
    FaultPlan plan{.kind = kind, .at = 2s, .length = 4s};
    plan.factor = factor;
    return plan;
  };
  // Of 0, 0.5, 0.75 and 0.875 times 120/s, the last is enough for 100 calls a second.
  CHECK(factor_left("share_429", fault(Kind::upstream_limit, 0)) == 0.75);
  // Of 40, 20.5, 10.75 and 5.875 times 100 ms, the last is below the timeout.
  CHECK(factor_left("timed_out", fault(Kind::upstream_slow, 40)) == 10.75);
  const double lost = factor_left("timed_out", fault(Kind::upstream_loss, 1));
  CHECK(lost > 0);
  CHECK(lost <= 0.25);
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
  study.judges.never = {"crashes"};
  const Study single = single_run(study, 0, 0, 0);
  REQUIRE(objectors(single) == std::vector<std::string>{"never crashes"});
  const Shrunk shrunk = shrink(single, "never crashes");
  CHECK(shrunk.fails);
  REQUIRE(shrunk.study.faults.size() == 1);
  CHECK(shrunk.study.faults[0].kind == Kind::worker_crash);
  CHECK(shrunk.study.scenario(0, 0).fleet.workers == 1);
  CHECK(objectors(shrunk.study) == std::vector<std::string>{"never crashes"});
  CHECK_FALSE(shrink(single, "no such judge").fails);
  std::atomic<bool> stop{false};
  const auto look = [&stop](const Shrunk& now) { stop = now.runs == 5; };
  const Shrunk stopped = shrink(single, "never crashes", look, &stop);
  CHECK(stopped.partial);
  CHECK(stopped.runs == 5);
  CHECK(objectors(stopped.study) == std::vector<std::string>{"never crashes"});
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

TEST_CASE("a study of endless runs fails with the first of them, which shrinks") {
  const Study study = endless_study();
  const StudyResult result = run_study(study);
  CHECK(result.status() == Status::fails);
  REQUIRE_FALSE(result.judgements.empty());
  CHECK(result.judgements[0].judge == time_judge);
  CHECK(result.judgements[0].objects);
  CHECK(result.judgements[0].replication == 0);
  CHECK_FALSE(result.rows[0].interval(Metric::goodput, 0.99));
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
