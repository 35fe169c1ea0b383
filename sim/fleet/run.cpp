#include "sluice/sim/run.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/fleet/fleet_run.hpp"
#include "sim/judges/judges.hpp"
#include "sim/scenario/effects.hpp"
#include "sluice/sim/rehearse.hpp"
namespace sluice::sim {
namespace {

using scenario::Counts;
using scenario::FleetRun;
using scenario::Recorder;

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
// How often a run looks whether it is to stop: a long one would be deaf for a hundredth of it.
constexpr int slices = 100;
constexpr Span longest_slice = std::chrono::seconds{1};

double ratio(double part, double whole) { return whole == 0 ? unknown : part / whole; }
double share(std::uint64_t part, std::uint64_t whole) {
  return 100 * ratio(static_cast<double>(part), static_cast<double>(whole));
}
double ms(Span span) { return static_cast<double>(span.count()) / 1000; }

void set_calls(const Scenario& scenario, const Recorder& recorder, Figures& f) {
  const Counts& c = recorder.counts;
  const double seconds =
      static_cast<double>((scenario.duration - scenario.warm_up).count()) / 1'000'000;
  f[Metric::share_429] = share(c.refused_429, c.calls);
  f[Metric::share_failed] = share(c.failed, c.calls);
  f[Metric::calls_per_success] = ratio(static_cast<double>(c.calls), static_cast<double>(c.ok));
  f[Metric::offered] = static_cast<double>(c.jobs) / seconds;
  f[Metric::goodput] = static_cast<double>(c.ok) / seconds;
  const std::uint64_t done =
      std::accumulate(recorder.worker_ok.begin(), recorder.worker_ok.end(), std::uint64_t{0});
  f[Metric::share_done] = share(done, c.jobs);
  f[Metric::share_refused] = share(c.given_up + c.lost, c.jobs);
  f[Metric::critical_done] = share(c.critical_ok, c.critical_jobs);
  f[Metric::others_done] = share(c.others_ok, c.others_jobs);
  f[Metric::timed_out] = static_cast<double>(c.timed_out);
  f[Metric::shed_by_breaker] = static_cast<double>(c.breaker_shed);
  f[Metric::retries_denied] = static_cast<double>(c.retries_denied);
  if (scenario.client.throttle != 0) f[Metric::throttled] = static_cast<double>(c.throttled);
  f[Metric::crashes] = static_cast<double>(c.crashes);
  if (c.crashes != 0) f[Metric::orphaned] = static_cast<double>(c.orphaned);
  f[Metric::shadow_differs] = share(c.shadow_differs, c.shadow_asked);
  if (c.shadow_asked != 0) {
    f[Metric::shadow_deviation] =
        100 *
        (ratio(static_cast<double>(c.obeyed_granted), static_cast<double>(c.shadow_granted)) - 1);
  }
  const auto asked = std::ranges::count(recorder.key_asked, true);
  const auto refused = std::ranges::count(recorder.key_refused, true);
  f[Metric::clients_refused] =
      share(static_cast<std::uint64_t>(refused), static_cast<std::uint64_t>(asked));
}

void set_waits(const Recorder& recorder, RunResult& result) {
  Figures& f = result.figures;
  const Histogram& wait = recorder.wait;
  if (recorder.others_wait.count() != 0) {
    f[Metric::others_wait_p99] = ms(recorder.others_wait.quantile(99, 100));
  }
  if (wait.count() == 0) return;
  f[Metric::wait_mean] = recorder.wait_sum / 1000 / static_cast<double>(wait.count());
  f[Metric::wait_p50] = ms(wait.quantile(1, 2));
  f[Metric::wait_p90] = ms(wait.quantile(9, 10));
  f[Metric::wait_p99] = ms(wait.quantile(99, 100));
  f[Metric::wait_p999] = ms(wait.quantile(999, 1000));
  f[Metric::wait_max] = ms(wait.max());
  for (const std::uint64_t thousandths : {100U, 250U, 500U, 750U, 900U, 950U, 990U, 999U}) {
    result.wait_quantiles.emplace_back(static_cast<double>(thousandths) / 1000,
                                       wait.quantile(thousandths, 1000));
  }
  result.wait_quantiles.emplace_back(1, wait.max());
}

void set_store(const Scenario& scenario, const FleetRun& run, Figures& f) {
  const Counts& c = run.recorder().counts;
  const FleetRun::Load& before = run.load_at_warm_up();
  const FleetRun::Load load = run.load();
  const auto since = [](auto now, auto then) { return static_cast<double>(now - then); };
  f[Metric::ops_per_call] =
      ratio(since(load.store_operations, before.store_operations), static_cast<double>(c.calls));
  f[Metric::store_wait_mean] = ratio(since(load.store_waited.count(), before.store_waited.count()),
                                     since(load.store_served, before.store_served));
  f[Metric::store_busy] = 100 * since(load.store_busy.count(), before.store_busy.count()) /
                          since(scenario.duration.count(), scenario.warm_up.count());
  if (scenario.upstream.servers != 0) {
    f[Metric::upstream_busy] = 100 * scenario::busy_share(before.upstream, load.upstream);
  }
  f[Metric::store_failures] = static_cast<double>(c.store_failures);
  f[Metric::grants_without_store] = static_cast<double>(c.without_store);
  f[Metric::lost_writes] = static_cast<double>(run.lost_writes());
}

/// Jain's index: (sum x)^2 / (n * sum x^2), 1 if all are equal. Source: R. Jain, D. Chiu, W. Hawe,
/// "A Quantitative Measure of Fairness", DEC TR-301, 1984.
void set_workers(const Recorder& recorder, RunResult& result) {
  double sum = 0;
  double squares = 0;
  for (const std::uint64_t ok : recorder.worker_ok) {
    sum += static_cast<double>(ok);
    squares += static_cast<double>(ok) * static_cast<double>(ok);
  }
  if (sum == 0) return;
  const auto count = static_cast<double>(recorder.worker_ok.size());
  result.figures[Metric::jain] = sum * sum / (count * squares);
  const auto least = static_cast<double>(*std::ranges::min_element(recorder.worker_ok));
  result.figures[Metric::least_share] = 100 * least * count / sum;
  for (const std::uint64_t ok : recorder.worker_ok) {
    result.workers.push_back(static_cast<double>(ok) / sum);
  }
}

void set_windows(const Upstream& upstream, RunResult& result) {
  for (std::size_t i = 0; i < upstream.limits(); ++i) {
    const ApiLimit& limit = upstream.limit(i);
    result.windows.push_back({limit.limit, limit.window, upstream.busiest(i)});
    const double worst = share(upstream.busiest(i), static_cast<std::uint64_t>(limit.limit));
    double& most = result.figures[Metric::worst_window];
    most = std::isnan(most) ? worst : std::max(most, worst);
  }
}

/// The most units granted in any window of the limiter's length, if it has one.
void set_admitted(const Scenario& scenario, const Recorder& recorder, Figures& f) {
  const LimiterOptions::Kind kind = scenario.limiter.kind;
  if (kind == LimiterOptions::Kind::concurrency) return;
  if (kind == LimiterOptions::Kind::learned_rate) return;  // nobody has set a limit
  const auto& [events, per] = scenario.limiter.limit;
  Word worst = 0;
  for (const auto& [index, grants] : recorder.grants) {
    Word sum = 0;
    for (std::size_t first = 0, next = 0; next < grants.size(); ++next) {
      sum += grants[next].cost;
      while (grants[next].effective - grants[first].effective >= per) sum -= grants[first++].cost;
      worst = std::max(worst, sum);
    }
  }
  if (!recorder.grants.empty()) {
    f[Metric::worst_admitted] =
        share(static_cast<std::uint64_t>(worst), static_cast<std::uint64_t>(events));
  }
}

/// How long after a change of the API's limits its last 429 came.
void set_adaptation(const Scenario& scenario, const Recorder& recorder, Time start, Figures& f) {
  for (const FaultPlan& fault : scenario.faults) {
    if (fault.kind != FaultPlan::Kind::upstream_limit &&
        fault.kind != FaultPlan::Kind::upstream_second) {
      continue;
    }
    const Span took = recorder.last_429 - (start + fault.at);
    f[Metric::adaptation] = std::max(static_cast<double>(took.count()) / 1'000'000, 0.0);
    f[Metric::late_429] = static_cast<double>(recorder.counts.late_429);
    return;
  }
}

void run_to_end(FleetRun& fleet, Span duration, const RunOptions& options) {
  const Time start = fleet.world().now();
  const Span slice = std::clamp(duration / slices, Span{1}, longest_slice);
  for (Span reached{0}; reached < duration;) {
    if (options.stop != nullptr && options.stop->load(std::memory_order_relaxed)) throw Stopped();
    reached = std::min(reached + slice, duration);
    fleet.run_for(start + reached - fleet.world().now());
    if (options.progress) options.progress(reached, fleet.world().events());
  }
}

/// The result of a run that was ended at an instant without end: its figures are not known.
RunResult endless(FleetRun& fleet, const Scenario& scenario, Time start,
                  const EndlessInstant& instant) {
  fleet.finish();
  RunResult result;
  const Recorder& recorder = fleet.recorder();
  result.series = recorder.series;
  result.trace = fleet.world().trace();
  result.warm_up = scenario.warm_up;
  result.figures[Metric::events] = static_cast<double>(fleet.world().events());
  result.judges = {scenario::time_judge};
  result.objections = {scenario::object_to_instant(instant, instant.at() - start,
                                                   recorder.last_events(instant.at()))};
  return result;
}

}  // namespace

RunResult run(const Scenario& scenario, const RunOptions& options) {
  return rehearse(scenario, {}, options);
}

RunResult rehearse(const Scenario& scenario, const MakeRehearsedClient& make,
                   const RunOptions& options) {
  // A client of the program's own uses what the scenario's does not.
  (make ? scenario::validate_values : validate)(scenario);
  scenario::validate_recovery(scenario, options.recovery);
  if (scenario.warm_up == auto_warm_up) {
    Scenario cut = scenario;
    cut.warm_up = find_warm_up(scenario, make, options.stop);
    return rehearse(cut, make, options);
  }
  FleetRun fleet(scenario, make);
  const Time start = fleet.world().now();
  fleet.recorder().on_event = options.on_event;
  if (options.observer != nullptr) fleet.world().observe(options.observer, options.observed);
  try {
    run_to_end(fleet, scenario.duration, options);
  } catch (const EndlessInstant& instant) {
    return endless(fleet, scenario, start, instant);
  }
  fleet.finish();

  RunResult result;
  const Recorder& recorder = std::as_const(fleet).recorder();
  result.series = recorder.series;
  result.trace = fleet.world().trace();
  result.warm_up = scenario.warm_up;
  result.judges = {scenario::time_judge};
  result.figures[Metric::events] = static_cast<double>(fleet.world().events());
  set_calls(scenario, recorder, result.figures);
  set_waits(recorder, result);
  set_store(scenario, fleet, result.figures);
  set_workers(recorder, result);
  set_windows(fleet.upstream(), result);
  set_admitted(scenario, recorder, result.figures);
  set_adaptation(scenario, recorder, start, result.figures);
  scenario::judge_safety(scenario, recorder, fleet.lost_writes(), result);
  scenario::judge_order(scenario, recorder, result);
  scenario::judge_limiter(scenario, recorder, fleet.lost_writes(), result);
  scenario::judge_recovery(scenario, options.recovery, result);
  return result;
}

}  // namespace sluice::sim
