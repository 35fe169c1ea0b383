// Judges of one run: each objects to a history that is wrong, and to none that is right at the
// border.
#include <algorithm>

#include "sim/judges/judges.hpp"
#include "sim/tests/judges/objections.hpp"
#include "tests/catch.hpp"

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
