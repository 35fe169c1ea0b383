// Sampler: samples a sensor for a UtilizationShedder at regular times, when it is polled or on a
// thread of its own. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>

#include "sluice/detail/clock_thread.hpp"
#include "sluice/limiters/sensors.hpp"
#include "sluice/limiters/utilization_shedder.hpp"

namespace sluice {

struct SamplerOptions {
  /// The average time between two samples, by the store's clock. 1 us or more, and less than
  /// UtilizationOptions::max_gap, which should be 2.5 times as long.
  Span period = std::chrono::seconds{8};
  /// Shifts each sample at random by up to half a period. Samplers that share one level need it: if
  /// they were in step, the first one after a gap would count for the whole time.
  bool jitter = true;
};

/// Feeds a shedder from a sensor. It has no thread unless start() makes one: the program calls
/// poke() often enough, such as in each call.
///
///     Sampler sampler{shedder, workers};
///     sampler.poke();                     // in each call; samples every 8 s or so
///
/// It never waits for the store. A failed sample is counted and not repeated: the next one is due a
/// period later. REQUIRES: the shedder, its store and the sensor outlive the sampler; only one
/// thread at a time reads the sensor.
class Sampler {
 public:
  /// For the service as a whole, or for one key. Throws std::invalid_argument if the period is
  /// below 1 us or not below the shedder's max_gap. Without `rng`, it draws from rng_of() the
  /// store's clock.
  Sampler(const UtilizationShedder& shedder, Sensor& sensor, SamplerOptions options = {});
  Sampler(const UtilizationShedder& shedder, Sensor& sensor, SamplerOptions options, Rng& rng);
  Sampler(const UtilizationShedder& shedder, const KeyArg& key, Sensor& sensor,
          SamplerOptions options = {});
  Sampler(const UtilizationShedder& shedder, const KeyArg& key, Sensor& sensor,
          SamplerOptions options, Rng& rng);
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;
  /// Stops the thread, if there is one.
  ~Sampler() = default;

  /// Takes a sample if one is due; the first call always does. True: a sample was taken. Otherwise
  /// it costs one reading of the store's coarse clock. Never throws: a sensor that throws counts as
  /// failed.
  bool poke() noexcept;

  /// Starts a thread that takes samples when they are due by the store's clock; no effect if it
  /// runs already. Throws std::system_error if there can be no thread.
  void start();
  /// Ends the thread, and waits until it has ended.
  void stop() noexcept;

  /// The number of samples that the store accepted.
  [[nodiscard]] std::uint64_t taken() const noexcept { return counts_->taken.load(); }
  /// The number of samples that the sensor or the store failed to process.
  [[nodiscard]] std::uint64_t failed() const noexcept { return counts_->failed.load(); }
  /// The error of the last sample that the store failed to accept.
  [[nodiscard]] std::error_code last_error() const;

 private:
  // Shared, because an answer may come after the sampler was destroyed.
  struct Counts {
    std::atomic<std::uint64_t> taken{0};
    std::atomic<std::uint64_t> failed{0};
    std::mutex mutex;
    std::error_code error;
  };

  Sampler(const UtilizationShedder& shedder, const KeyArg& key, Sensor& sensor,
          SamplerOptions options, Rng* rng);
  void sample();
  [[nodiscard]] bool is_due(Word now) const noexcept;
  [[nodiscard]] Word next_due(Word now);
  [[nodiscard]] Time sample_when_due() noexcept;

  const UtilizationShedder& shedder_;
  Sensor& sensor_;
  SamplerOptions options_;
  Rng* rng_;  // null: rng_of() the store's clock
  std::string tag_;
  std::string key_name_;
  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
  std::atomic<Word> due_{0};
  std::mutex sampling_;
  detail::ClockThread thread_;  // last, as it uses the others
};

}  // namespace sluice
