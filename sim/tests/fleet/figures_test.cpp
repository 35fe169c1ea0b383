// The figures of a run: of any world, what its events say, counted once more; and of worlds by
// hand, what no event tells. Threading: single-threaded.
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "sim/tests/fleet/trouble.hpp"
#include "sim/tests/help.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace std::chrono_literals;

namespace {

using What = JobEvent::What;

struct Seen {
  Span came{0};
  std::uint32_t worker = 0, key = 0;
  std::optional<Span> sent{};  // the call that is under way
  bool ended = false;
};

/// Counts the events of a run.
struct Count {
  explicit Count(const Scenario& s) : scenario(s), ok_of(s.fleet.workers) {}

  void see(const JobEvent& event) {
    Seen& job = jobs[event.job];
    if (event.what == What::came) job = {event.at, event.worker, event.key};
    const bool counts = job.came >= scenario.warm_up;
    if (event.what == What::came && counts) ++all[""], keys_asked.insert(event.key);
    if (event.what == What::came && counts && event.key != 0) ++all["others"];
    if (event.what == What::sent) job.sent = event.at;
    if (event.what == What::sent && event.at >= scenario.warm_up) ++all["calls"];
    if (event.what == What::answered) answered(event, job, counts);
    if (event.what == What::gave_up || event.what == What::lost) {
      job.ended = true;
      if (counts) ++all["ended"];
      if (counts && event.what == What::gave_up) keys_refused.insert(event.key);
    }
  }
  void answered(const JobEvent& event, Seen& job, bool counts) {
    if (*job.sent >= scenario.warm_up) ++all[std::to_string(event.status)];
    if (event.status == 429) last_429 = event.at;
    if (event.status == 200) {
      job.ended = true;
      if (counts) waited(job, *job.sent), ++ok_of[job.worker];
      if (counts && job.key != 0) ++all["others done"];
    }
    job.sent.reset();
  }
  void waited(const Seen& job, Span until) {
    waits.push_back(until - job.came);
    if (job.key != 0) others_waits.push_back(until - job.came);
  }
  void finish() {
    for (const auto& [number, job] : jobs) {
      if (!job.ended && job.came >= scenario.warm_up) {
        waited(job, job.sent.value_or(scenario.duration));
      }
    }
    std::ranges::sort(waits);
    std::ranges::sort(others_waits);
  }

  const Scenario& scenario;
  std::map<std::uint64_t, Seen> jobs;
  std::map<std::string, double> all;  // by status, or by what is counted
  std::set<std::uint32_t> keys_asked, keys_refused;
  std::vector<double> ok_of;  // each worker
  std::vector<Span> waits, others_waits;
  std::optional<Span> last_429;
};

/// A figure is this number, or none if that is none.
void check(const Figures& figures, Metric metric, double expected) {
  CAPTURE(info(metric).name, figures[metric], expected);
  CHECK((std::isfinite(expected) ? figures[metric] == Approx(expected).margin(1e-9)
                                 : std::isnan(figures[metric])));
}

/// A figure is this quantile, but for the bins of a histogram.
void check_quantile(const Figures& figures, Metric metric, const std::vector<Span>& sorted,
                    std::size_t thousandths) {
  if (sorted.empty()) return;
  const std::size_t rank = (sorted.size() * thousandths + 999) / 1000;
  const double exact = static_cast<double>(sorted[rank - 1].count()) / 1000;
  CAPTURE(info(metric).name, exact, figures[metric]);
  CHECK(figures[metric] >= exact);
  CHECK(figures[metric] <= exact * (1 + 1.0 / 64));
  CHECK(figures[metric] <= static_cast<double>(sorted.back().count()) / 1000);
}

void check_figures(Count& count, const RunResult& result) {
  const Scenario& s = count.scenario;
  const Figures& f = result.figures;
  const double seconds = static_cast<double>((s.duration - s.warm_up).count()) / 1e6;
  const double jobs = count.all[""];
  const double calls = count.all["calls"];
  const double ok = count.all["200"];
  const double failed = count.all["0"] + count.all["409"] + count.all["500"] + count.all["503"];
  double done = 0;
  double squares = 0;
  for (const double each : count.ok_of) done += each, squares += each * each;
  check(f, Metric::share_429, 100 * count.all["429"] / calls);
  check(f, Metric::share_failed, 100 * failed / calls);
  check(f, Metric::timed_out, count.all["0"]);
  check(f, Metric::calls_per_success, calls / ok);
  check(f, Metric::offered, jobs / seconds);
  check(f, Metric::goodput, ok / seconds);
  check(f, Metric::share_done, 100 * done / jobs);
  check(f, Metric::share_refused, 100 * count.all["ended"] / jobs);
  check(f, Metric::others_done, 100 * count.all["others done"] / count.all["others"]);
  check(f, Metric::clients_refused,
        100 * static_cast<double>(count.keys_refused.size()) /
            static_cast<double>(count.keys_asked.size()));
  const auto workers = static_cast<double>(count.ok_of.size());
  check(f, Metric::jain, done * done / (workers * squares));
  check(f, Metric::least_share, 100 * std::ranges::min(count.ok_of) * workers / done);
  for (std::size_t i = 0; i < result.workers.size(); ++i) {
    CHECK(result.workers[i] == Approx(count.ok_of[i] / done));
  }
  count.finish();
  double sum = 0;
  for (const Span wait : count.waits) sum += static_cast<double>(wait.count()) / 1000;
  check(f, Metric::wait_mean, sum / static_cast<double>(count.waits.size()));
  for (const auto& [metric, thousandths] :
       {std::pair(Metric::wait_p50, 500U), std::pair(Metric::wait_p90, 900U),
        std::pair(Metric::wait_p99, 990U), std::pair(Metric::wait_p999, 999U),
        std::pair(Metric::wait_max, 1000U)}) {
    check_quantile(f, metric, count.waits, thousandths);
  }
  check_quantile(f, Metric::others_wait_p99, count.others_waits, 990);
  for (const FaultPlan& fault : s.faults) {
    if (fault.kind != FaultPlan::Kind::upstream_second) continue;
    const Span took = std::max(count.last_429.value_or(Span{0}) - fault.at, Span{0});
    check(f, Metric::adaptation, static_cast<double>(took.count()) / 1e6);
  }
}

}  // namespace

TEST_CASE("the figures of a run are those of its events") {
  test::Random random("the figures of a run are those of its events");
  CAPTURE(random.repeat());
  for (std::size_t seen = 0; seen < test::scaled(60, 40);) {
    test::Trouble world(random.next());
    Scenario& scenario = world.scenario;
    scenario.warm_up = random.one_in(2) ? 500ms : 0ms;
    if (random.one_in(3)) {
      scenario.faults.push_back(
          {.kind = FaultPlan::Kind::worker_crash, .at = 1600ms, .length = 300ms, .share = 0.5});
    }
    if (!test::is_valid(scenario)) continue;
    ++seen;
    CAPTURE(world.texts);
    Count count(scenario);
    RunOptions options;
    options.on_event = [&count](const JobEvent& event) { count.see(event); };
    const RunResult result = test::run_idle(scenario, options);
    check_figures(count, result);
  }
}

TEST_CASE("a limit that appears is seen in windows, and in what it refuses from then on") {
  Scenario s = test::plain();
  s.duration = 60s;
  s.arrivals.kind = ArrivalOptions::Kind::bursts;
  s.arrivals.bursts = {{10, 1s}, {10, 20s}, {10, 50s}};
  s.upstream.limits = {{100, 1h}};
  s.faults = {{.kind = FaultPlan::Kind::upstream_second, .at = 5s, .limit = {5, 1s}}};
  const RunResult result = run(s);
  const Figures& f = result.figures;
  check(f, Metric::share_429, 100.0 * 10 / 30);
  CHECK(f[Metric::adaptation] == Approx(45).margin(0.01));
  check(f, Metric::late_429, 5);
  check(f, Metric::worst_window, 200);
  REQUIRE(result.windows.size() == 2);
  CHECK(result.windows[0].worst == 30);
  CHECK(result.windows[1].worst == 10);  // refused ones too
}

TEST_CASE("what a shadow decides, and what is critical, is compared with what was obeyed") {
  Scenario s = test::plain();
  s.arrivals.kind = ArrivalOptions::Kind::bursts;
  s.arrivals.bursts = {{10, 1s}};
  s.jobs.critical = 0.5;
  s.limiter.kind = LimiterOptions::Kind::token_bucket;
  s.limiter.wait = LimiterOptions::Wait::skip;
  s.limiter.limit = {4, 24h};
  s.limiter.burst = 8;
  s.limiter.shadow = LimiterOptions::Kind::sliding_window;
  Figures f = run(s).figures;
  check(f, Metric::shadow_differs, 40);
  check(f, Metric::shadow_deviation, 100);
  check(f, Metric::share_done, 80);
  check(f, Metric::worst_admitted, 200);
  check(f, Metric::orphaned, NAN);  // nobody has crashed
  s.limiter.burst = 10;
  check(run(s).figures, Metric::critical_done, 100);
}
