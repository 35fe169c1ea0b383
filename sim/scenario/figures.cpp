#include "sluice/sim/figures.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/scenario/text.hpp"

namespace sluice::sim {
namespace {

using enum MetricInfo::Better;

// In the order of Metric.
constexpr MetricInfo catalogue[] = {
    {"share_429", "calls answered 429", "%", less, "{} of the calls are answered 429",
     "Calls to the API that it refused with 429 (too many requests), of all calls.", 0, 100},
    {"share_failed", "calls that failed otherwise", "%", less, "{} of the calls fail otherwise",
     "Calls answered 409, 500 or 503, or given up by the client, of all calls.", 0, 100},
    {"calls_per_success", "calls for each success", "", less, "each success takes {} calls",
     "All calls, repeated ones too, divided by the successful ones."},
    {"offered", "jobs that came", "/s", neither, "{} jobs a second come",
     "Jobs that came, in a second; a job is work that needs one successful call."},
    {"goodput", "successful calls", "/s", more, "{} calls a second succeed",
     "The goodput: calls that succeeded, in a second."},
    {"share_done", "jobs that succeeded", "%", more, "{} of the jobs succeed",
     "Jobs whose call succeeded until the end, of all jobs that came.", 0, 100},
    {"share_refused", "jobs refused or given up", "%", less,
     "{} of the jobs are refused or given up",
     "Jobs that ended without a success: refused, given up, or lost with their worker, of all jobs "
     "that came.",
     0, 100},
    {"wait_mean", "mean wait", "ms", less, "jobs wait {} on average",
     "A wait is the time from when a job comes until its successful call is sent."},
    {"wait_p50", "median wait", "ms", less, "half of the jobs wait at most {}",
     "Half of the jobs wait at most so long, from when they come until their successful call is "
     "sent."},
    {"wait_p90", "p90 of the wait", "ms", less, "90 % of the jobs wait at most {}",
     "90 % of the jobs wait at most so long, from when they come until their successful call is "
     "sent."},
    {"wait_p99", "p99 of the wait", "ms", less, "99 % of the jobs wait at most {}",
     "99 % of the jobs wait at most so long, from when they come until their successful call is "
     "sent."},
    {"wait_p999", "p99.9 of the wait", "ms", less, "99.9 % of the jobs wait at most {}",
     "99.9 % of the jobs wait at most so long, from when they come until their successful call is "
     "sent."},
    {"wait_max", "longest wait", "ms", less, "the longest wait is {}",
     "The longest wait of a job, from when it comes until its successful call is sent."},
    {"ops_per_call", "store operations for each call", "", less,
     "each call costs {} store operations",
     "Operations that the limiter asked of its store (as Redis), divided by the calls to the API."},
    {"store_wait_mean", "mean wait for the store's server", "us", less,
     "an operation waits {} for the store's server",
     "How long an operation waits on average until the store's server begins with it."},
    {"store_busy", "the store's server works", "%", neither,
     "the store's server works {} of the time",
     "The part of the time in which the store's server executes operations.", 0, 100},
    {"store_failures", "failed store operations", "", less, "{} store operations fail",
     "Operations that the store refused, or did not answer in time."},
    {"grants_without_store", "grants without the store", "", neither,
     "{} calls are granted without the store",
     "Calls that the failure policy let through while the store did not answer."},
    {"lost_writes", "acknowledged writes that were lost", "", less,
     "{} acknowledged writes are lost",
     "Writes that the store had confirmed and forgot in a failover."},
    {"jain", "Jain's index of the workers' successes", "", more,
     "Jain's index of the workers' successes is {}",
     "How evenly the workers share the successes: 1 if all have as many, 1/n if one of n has them "
     "all.",
     0, 1},
    {"least_share", "the worst-served worker's successes, of the mean", "%", more,
     "the worst-served worker has {} of the mean successes",
     "The successes of the worker with the fewest, divided by those of the mean worker.", 0, 100},
    {"worst_window", "calls in the busiest window, of the limit", "%", less,
     "the API's busiest window holds {} of its limit",
     "The most calls that came to the API in any window of one of its limits, divided by that "
     "limit."},
    {"worst_admitted", "grants in the busiest window of the limiter, of the limit", "%", less,
     "the limiter's busiest window grants {} of the limit",
     "The most units that the limiter granted in any window of its length, divided by its limit."},
    {"bound_excess", "units beyond burst + rate * t, in the worst interval", "", less,
     "{} units are granted beyond the bound",
     "The most units that the limiter granted in any interval beyond its bound, burst + rate * "
     "length of the interval."},
    {"bypassed", "waiting jobs that a later one overtook", "", less,
     "at most {} later jobs overtake one that waits",
     "The most jobs of one queue that came later than one that waits and were served before it."},
    {"recovery", "time after the last fault until the goodput is back and the backlog gone", "s",
     less, "the fleet takes {} to recover after the last fault",
     "The time from the end of the last fault until the goodput is again what it was before the "
     "first, and no more jobs are unfinished than there were then."},
    {"adaptation", "time until the last 429 after a limit changed", "s", less,
     "the last 429 comes {} after a limit changed",
     "The time from the first change of the API's limits until its last answer of 429."},
    {"late_429", "calls answered 429 after the first 30 s of a changed limit", "", less,
     "{} calls are answered 429 later than 30 s after a limit changed",
     "Calls answered 429 later than 30 s after the API's limits changed."},
    {"critical_done", "critical jobs that succeeded", "%", more, "{} of the critical jobs succeed",
     "Critical jobs whose call succeeded, of all critical jobs that came.", 0, 100},
    {"others_done", "jobs of other tenants than the first that succeeded", "%", more,
     "{} of the other tenants' jobs succeed",
     "Jobs that succeeded, of all jobs of the tenants (keys of the limiter) other than the first.",
     0, 100},
    {"others_wait_p99", "p99 of the wait of other tenants than the first", "ms", less,
     "99 % of the other tenants' jobs wait at most {}",
     "99 % of the jobs of the tenants (keys of the limiter) other than the first wait at most so "
     "long."},
    {"clients_refused", "tenants of whom a job was refused", "%", less,
     "{} of the tenants have a job refused",
     "Tenants (keys of the limiter) of whom at least one job was refused, of all tenants that "
     "asked.",
     0, 100},
    {"shadow_differs", "decisions that the shadow limiter makes differently", "%", less,
     "the shadow limiter decides {} of the requests differently",
     "Requests that a second limiter, which is asked beside the first and only watched, decides "
     "differently.",
     0, 100},
    {"shadow_deviation", "units granted beyond the shadow limiter", "%", neither,
     "{} more units are granted than by the shadow limiter",
     "Units that the limiter grants beyond those of the shadow limiter, a second one that is only "
     "watched, divided by those of the shadow limiter.",
     -100},
    {"upstream_busy", "the API's servers work", "%", neither,
     "the API's servers work {} of the time",
     "The part of the time in which the API's servers work, on average over them."},
    {"timed_out", "calls that the client gave up", "", less, "the clients give up {} calls",
     "Calls whose answer did not come within the client's timeout."},
    {"shed_by_breaker", "calls that a circuit breaker held back", "", neither,
     "circuit breakers hold back {} calls",
     "Calls that were not sent because the client's circuit breaker was open after failures."},
    {"retries_denied", "retries that the budget denied", "", neither,
     "the retry budget denies {} retries",
     "Retries that were not made because the client's budget for retries was spent."},
    {"throttled", "calls that adaptive throttling refused", "", neither,
     "adaptive throttling refuses {} calls",
     "Calls that the client refused by itself since the API had accepted too few of the earlier "
     "ones."},
    {"crashes", "workers that crashed", "", neither, "{} workers crash",
     "Crashes of workers by faults of the scenario."},
    {"orphaned", "requests that the store granted to workers that had crashed", "", less,
     "{} requests are granted to crashed workers",
     "Requests that the store granted after the worker that had asked was gone."},
    {"events", "events of the simulation", "", neither, "the simulation has {} events",
     "Events that the simulated world has executed: a measure of its work alone."},
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
  throw std::invalid_argument("there is no metric \"" + std::string(name) + "\"" +
                              scenario::did_you_mean(name, names));
}

}  // namespace sluice::sim
