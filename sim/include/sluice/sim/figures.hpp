// The figures of a run: the catalogue of metrics that scenarios, reports and expectations name.
// Plain values; no threading rule.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace sluice::sim {

/// What is measured. metrics() has the names, titles and units, in this order.
enum class Metric : std::uint8_t {
  share_429,
  share_failed,  ///< 409, 500, 503 and timeouts
  calls_per_success,
  offered,
  goodput,
  share_done,
  share_refused,
  wait_mean,
  wait_p50,
  wait_p90,
  wait_p99,
  wait_p999,
  wait_max,
  ops_per_call,
  store_wait_mean,
  store_busy,
  store_failures,
  grants_without_store,
  lost_writes,
  jain,
  least_share,
  worst_window,
  worst_admitted,
  bound_excess,
  bypassed,
  recovery,
  adaptation,
  late_429,
  critical_done,
  others_done,
  others_wait_p99,
  clients_refused,
  shadow_differs,
  shadow_deviation,
  upstream_busy,
  timed_out,
  shed_by_breaker,
  retries_denied,
  throttled,
  crashes,
  orphaned,
  events,
  count_
};
inline constexpr auto metric_count = static_cast<std::size_t>(Metric::count_);

struct MetricInfo {
  /// Which of two values a reader would choose.
  enum class Better : std::uint8_t { neither, less, more };

  std::string_view name;   ///< as in files
  std::string_view title;  ///< for people
  std::string_view unit;   ///< "%", "ms", "us", "s", "/s" or ""
  Better better;
  std::string_view phrase;  ///< a clause with {} for the value, "{} of the jobs succeed"; that of a
                            ///< rate has the unit in it: "{} calls a second succeed"
  std::string_view help;    ///< the definition, in a sentence
  double least = 0;         ///< what is possible
  double most = std::numeric_limits<double>::infinity();
};

[[nodiscard]] const MetricInfo& info(Metric metric);
[[nodiscard]] std::span<const MetricInfo> metrics();
/// Throws std::invalid_argument with the nearest name.
[[nodiscard]] Metric metric(std::string_view name);

/// A value for each metric; what a run has no value for is not a number. A recovery that did not
/// come within the run is infinite.
class Figures {
 public:
  Figures() { values_.fill(std::numeric_limits<double>::quiet_NaN()); }
  double& operator[](Metric metric) { return values_[static_cast<std::size_t>(metric)]; }
  double operator[](Metric metric) const { return values_[static_cast<std::size_t>(metric)]; }

 private:
  std::array<double, metric_count> values_;
};

}  // namespace sluice::sim
