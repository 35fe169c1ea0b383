#include "sluice/sim/figures.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/scenario/text.hpp"

namespace sluice::sim {
namespace {

// In the order of Metric.
constexpr MetricInfo catalogue[] = {
    {"share_429", "calls answered 429", "%", 0, 100},
    {"share_failed", "calls that failed otherwise", "%", 0, 100},
    {"calls_per_success", "calls for each success", ""},
    {"offered", "jobs that came", "/s"},
    {"goodput", "successful calls", "/s"},
    {"share_done", "jobs that succeeded", "%", 0, 100},
    {"share_refused", "jobs refused or given up", "%", 0, 100},
    {"wait_mean", "mean wait", "ms"},
    {"wait_p50", "median wait", "ms"},
    {"wait_p90", "p90 of the wait", "ms"},
    {"wait_p99", "p99 of the wait", "ms"},
    {"wait_p999", "p99.9 of the wait", "ms"},
    {"wait_max", "longest wait", "ms"},
    {"ops_per_call", "store operations for each call", ""},
    {"store_wait_mean", "mean wait for the store's server", "us"},
    {"store_busy", "the store's server works", "%", 0, 100},
    {"store_failures", "failed store operations", ""},
    {"grants_without_store", "grants without the store", ""},
    {"lost_writes", "acknowledged writes that were lost", ""},
    {"jain", "Jain's index of the workers' successes", "", 0, 1},
    {"least_share", "the worst-served worker's successes, of the mean", "%", 0, 100},
    {"worst_window", "calls in the busiest window, of the limit", "%"},
    {"worst_admitted", "grants in the busiest window of the limiter, of the limit", "%"},
    {"bound_excess", "units beyond burst + rate * t, in the worst interval", ""},
    {"bypassed", "waiting jobs that a later one overtook", ""},
    {"recovery", "time after the last fault until the goodput is back and the backlog gone", "s"},
    {"adaptation", "time until the last 429 after a limit changed", "s"},
    {"late_429", "calls answered 429 after the first 30 s of a changed limit", ""},
    {"critical_done", "critical jobs that succeeded", "%", 0, 100},
    {"others_done", "jobs of other tenants than the first that succeeded", "%", 0, 100},
    {"others_wait_p99", "p99 of the wait of other tenants than the first", "ms"},
    {"clients_refused", "tenants of whom a job was refused", "%", 0, 100},
    {"shadow_differs", "decisions that the shadow limiter makes differently", "%", 0, 100},
    {"shadow_deviation", "units granted beyond the shadow limiter", "%", -100},
    {"upstream_busy", "the API's servers work", "%"},
    {"timed_out", "calls that the client gave up", ""},
    {"shed_by_breaker", "calls that a circuit breaker held back", ""},
    {"retries_denied", "retries that the budget denied", ""},
    {"throttled", "calls that adaptive throttling refused", ""},
    {"crashes", "workers that crashed", ""},
    {"orphaned", "requests that the store granted to workers that had crashed", ""},
    {"events", "events of the simulation", ""},
};
static_assert(std::size(catalogue) == metric_count);

}  // namespace

const MetricInfo& info(Metric metric) { return catalogue[static_cast<std::size_t>(metric)]; }
std::span<const MetricInfo> metrics() { return catalogue; }

Metric metric(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(catalogue), std::end(catalogue),
                   [name](const MetricInfo& each) { return each.name == name; });
  if (found != std::end(catalogue)) return static_cast<Metric>(found - std::begin(catalogue));
  std::vector<std::string_view> names;
  for (const MetricInfo& each : catalogue) names.push_back(each.name);
  const std::string_view near = scenario::nearest(name, names);
  throw std::invalid_argument("there is no metric \"" + std::string(name) + "\"" +
                              (near.empty() ? "" : "; did you mean " + std::string(near) + "?"));
}

}  // namespace sluice::sim
