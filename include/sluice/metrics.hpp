// Metrics: counts what limiters do, and writes it as Prometheus reads it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sluice/clock.hpp"
#include "sluice/observer.hpp"

namespace sluice {

struct PrefetchStats;  // sluice/prefetch_store.hpp

struct MetricsOptions {
  /// A grant that leaves at most 1 - near_limit of the limit counts as near it. 0 to 1.
  double near_limit = 0.8;
  /// The keys that are counted apart, of each of the most refused and the most admitted; 0 to
  /// 10,000. They are in busiest(), never in labels.
  std::size_t keys = 256;
  /// One admitted call in so many is looked at for the most admitted keys; 1 to 2^20.
  std::uint32_t sample = 64;
  /// Limiters, stores and gates that have labels of their own, of each; others count as "other". 1
  /// to 10^6.
  std::size_t names = 1000;
  /// Of the stores, for what is closed now; null: a SystemClock.
  const Clock* clock = nullptr;
};

/// A key that was refused, or admitted, often.
struct BusyKey {
  std::string limiter;  ///< cut to Key::max_plain_bytes, as the key: longer ones count together
  std::string key;
  /// How often, at most: at least count - error.
  std::uint64_t count = 0;
  std::uint64_t error = 0;
};

/// One metric with its samples, for those who pass them on in another form than Metrics::text().
struct MetricFamily {
  enum class Type : std::uint8_t { counter, gauge, histogram };
  struct Sample {
    /// Name and value. Values are ASCII without quotes and backslashes: other bytes are "%0A".
    std::vector<std::pair<std::string, std::string>> labels{};
    std::int64_t value = 0;  ///< of a histogram, how many times were counted
    /// Of a histogram: how many were at most each of bounds(), and at last all of them.
    std::vector<std::uint64_t> cumulative{};
    Span sum{0};  ///< of a histogram
  };

  std::string name{};  ///< of a counter without "_total"
  std::string help{};
  Type type = Type::counter;
  std::vector<Sample> samples{};  ///< perhaps none yet

  [[nodiscard]] static std::span<const Span> bounds() noexcept;
};

/// Counts the events of stores, for scraping or for the program itself:
///
///     Metrics metrics;
///     ObservedStore store(make_memory_store(), metrics);
///     ...
///     response.body() = metrics.text();  // Content-Type: Metrics::content_type()
///
/// The names, labels and buckets are on the page docs/observing.md. A limiter is counted under its
/// name, so that limiters of one name count together; keys are no labels. What was refused while a
/// call waited is no refusal: the end of the wait is counted.
///
/// Thread-safe. decided() takes some 10 ns, of a refusal 20, and does not allocate, except for the
/// first decision of a limiter, or of a part of a store. text() is O(limiters); its counters are
/// those of one instant only while nothing is decided.
class Metrics final : public Observer {
 public:
  /// Throws std::invalid_argument if an option is out of its range.
  explicit Metrics(const MetricsOptions& options = {});
  ~Metrics() override;
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  enum class Format : std::uint8_t {
    openmetrics,  ///< OpenMetrics 1.0
    prometheus,   ///< the text format 0.0.4 of Prometheus, which every scraper reads
  };
  /// All metrics. Prometheus scrapes both formats.
  [[nodiscard]] std::string text(Format format = Format::openmetrics) const;
  /// The Content-Type of a response with text(format).
  [[nodiscard]] static const char* content_type(Format format = Format::openmetrics) noexcept;

  /// The same as values.
  [[nodiscard]] std::vector<MetricFamily> families() const;

  /// Has text() and families() read the counters of a PrefetchStore as well, under this name:
  ///
  ///     metrics.watch("redis", [&] { return prefetch.stats(); });
  ///
  /// It replaces what is watched under the name. An empty function ends that: once this has
  /// returned, the former one is not called any more. `stats` must not call this object, and is
  /// called by one thread at a time; what it throws, they throw.
  void watch(std::string_view store, std::function<PrefetchStats()> stats);

  /// The counts of one limiter; zeros if it is not known.
  struct Counts {
    std::uint64_t allowed = 0;
    std::uint64_t refused = 0;
    std::uint64_t failed = 0;
    std::uint64_t near_limit = 0;  ///< of the allowed ones
    std::uint64_t shadow_refusals = 0;
  };
  [[nodiscard]] Counts counts(std::string_view limiter) const;

  enum class Busy : std::uint8_t { refused, admitted };
  /// The keys that were refused or admitted most, at most `most`, the busiest first. Any key whose
  /// true count exceeds 1/keys of all counted is among MetricsOptions::keys of them. Counts of
  /// admitted keys are multiples of `sample`, and have its sampling error besides.
  [[nodiscard]] std::vector<BusyKey> busiest(Busy what, std::size_t most = 10) const;

  void decided(const DecisionEvent& event) override;
  void wait_changed(const WaitEvent& event) override;
  void lease_changed(const LeaseEvent& event) override;
  void gate_changed(const GateEvent& event) override;
  void try_failed(const FailedTryEvent& event) override;
  void breaker_changed(const BreakerEvent& event) override;
  void connection_changed(const ConnectionEvent& event) override;

 private:
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

}  // namespace sluice
