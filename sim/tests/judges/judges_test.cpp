// Judges of one run: each objects to a history that is wrong, and to none that is right at the
// border. Of time series that are known, how many jobs wait, and whether the goodput has recovered.
#include <algorithm>
#include <cmath>

#include "sim/judges/judges.hpp"
#include "sim/scenario/effects.hpp"
#include "sim/tests/help.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;
using test::has_looked;
using test::objects;

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
    for (int i = 0; i < 16; ++i) {
      const std::size_t later = recorder.queued(job, Time{1s}, Time::max());
      recorder.left_queue(job, later, Time{1500ms}, End::granted);
    }
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
    overtaken(17, 1s);
    CHECK(objected());
    recorder.counts.early_failures = 1;  // of the store, before any fault
    CHECK_FALSE(objected());
    recorder.counts.early_failures = 0;
    scenario.faults = {{.kind = FaultPlan::Kind::store_down, .at = 1s, .length = 1s}};
    CHECK_FALSE(objected());
  }
  SECTION("once a fault is mended") {
    scenario.faults = {{.kind = FaultPlan::Kind::store_down, .at = 1s, .length = 1s}};
    overtaken(17, 30s);
    CHECK(objected());
    scenario.faults.front().length = 0s;  // it never is
    CHECK_FALSE(objected());
  }
  SECTION("where callers ask side by side") {
    using Kind = LimiterOptions::Kind;
    const Kind kind =
        GENERATE(Kind::concurrency, Kind::fixed_window, Kind::token_bucket, Kind::sliding_window);
    scenario.limiter.kind = kind;
    if (kind == Kind::sliding_window) scenario.store.on_failure = StoreOptions::OnFailure::closed;
    const int times = GENERATE(16, 17);
    overtaken(times, 1s);
    CHECK(objected() == (times > 16));
  }
  SECTION("in the line of the fleet") {
    scenario.fleet.workers = 10;
    const int times = GENERATE(36, 37);
    (void)recorder.queued(job, Time{1s}, Time::max());
    Job elsewhere;
    elsewhere.worker = 1;
    for (int i = 1; i <= times; ++i) {
      const Time came{1s + i * 1ms};
      const std::size_t place = recorder.queued(elsewhere, came, Time::max());
      recorder.left_queue(elsewhere, place, came + 1ms, testing::Wait::End::granted);
    }
    CHECK(objected() == (times > 36));
    scenario.limiter.fleet_order = false;
    CHECK_FALSE(objected());
  }
}

TEST_CASE("store failures before the first fault excuse an order that is not kept") {
  Scenario s;
  s.duration = 20s;
  s.fleet.workers = 2;
  s.arrivals.rate = {130, 1s};
  s.limiter.kind = LimiterOptions::Kind::fixed_window;
  s.limiter.limit = {100, 1s};
  s.limiter.fleet_order = false;
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
    using Act = testing::LeaseRecord::Act;
    const auto first = recorder.leased(0, {Time{1s}, Act::acquired, 0, 1, Time{50s}, 1});
    const bool early = GENERATE(false, true);
    (void)recorder.leased(0, {Time{early ? 1500ms : 2s}, Act::acquired, 0, 1, Time{50s}, 2});
    recorder.released(0, first, 1, Time{2s});
    CHECK(verdict("no more leases than places") == early);
  }
  SECTION("free places") {
    scenario.limiter.kind = LimiterOptions::Kind::concurrency;
    scenario.limiter.burst = 1;
    using Act = testing::LeaseRecord::Act;
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
  const auto told = [](const Scenario& scenario, Span within) {
    return test::message_of([&] { return run(scenario, {.recovery = within}); });
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
        if (!test::message_of([&] { return validate_recovery(s, within), 0; }).empty()) continue;
        shortest = s.duration;
        break;
      }
      // Whatever it objects to at the shortest duration, it objects to in a longer run as well.
      s.duration = shortest;
      const bool early = objects(run(s, {.recovery = within}), "recovery");
      s.duration = shortest + 20s;
      CHECK((!early || objects(run(s, {.recovery = within}), "recovery")));
    }
  }
}
