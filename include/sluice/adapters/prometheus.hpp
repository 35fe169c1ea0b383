// PrometheusMetrics: Metrics in a program that uses prometheus-cpp. Header only; needs
// prometheus-cpp 1.0.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "sluice/metrics.hpp"

namespace sluice {

/// Gives what Metrics counts to an Exposer or another server of prometheus-cpp:
///
///     auto metrics = std::make_shared<Metrics>();
///     auto collected = std::make_shared<PrometheusMetrics>(metrics);
///     exposer.RegisterCollectable(collected);  // which keeps a weak pointer
///
/// Thread-safe.
class PrometheusMetrics final : public prometheus::Collectable {
 public:
  explicit PrometheusMetrics(std::shared_ptr<const Metrics> metrics)
      : metrics_(std::move(metrics)) {}

  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override {
    std::vector<prometheus::MetricFamily> all;
    for (const MetricFamily& family : metrics_->families()) {
      const bool is_counter = family.type == MetricFamily::Type::counter;
      prometheus::MetricFamily& added = all.emplace_back();
      added.name = is_counter ? family.name + "_total" : family.name;
      added.help = family.help;
      added.type = type_of(family.type);
      for (const auto& sample : family.samples) added.metric.push_back(metric_of(family, sample));
    }
    return all;
  }

 private:
  static prometheus::MetricType type_of(MetricFamily::Type type) noexcept {
    if (type == MetricFamily::Type::histogram) return prometheus::MetricType::Histogram;
    return type == MetricFamily::Type::gauge ? prometheus::MetricType::Gauge
                                             : prometheus::MetricType::Counter;
  }
  static double seconds(Span span) noexcept { return static_cast<double>(span.count()) / 1e6; }

  static prometheus::ClientMetric metric_of(const MetricFamily& family,
                                            const MetricFamily::Sample& sample) {
    prometheus::ClientMetric metric;
    for (const auto& [name, value] : sample.labels) {
      metric.label.emplace_back().name = name;
      metric.label.back().value = value;
    }
    metric.counter.value = metric.gauge.value = static_cast<double>(sample.value);
    if (family.type != MetricFamily::Type::histogram) return metric;
    metric.histogram.sample_count = static_cast<std::uint64_t>(sample.value);
    metric.histogram.sample_sum = seconds(sample.sum);
    const auto bounds = MetricFamily::bounds();
    for (std::size_t i = 0; i < sample.cumulative.size(); ++i) {
      metric.histogram.bucket.push_back(
          {sample.cumulative[i],
           i < bounds.size() ? seconds(bounds[i]) : std::numeric_limits<double>::infinity()});
    }
    return metric;
  }

  std::shared_ptr<const Metrics> metrics_;
};

}  // namespace sluice
