// Samples a sensor for a UtilizationShedder at regular times: when it is poked, or by a thread of
// its own. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "sluice/limiters/sensors.hpp"
#include "sluice/limiters/utilization_shedder.hpp"

namespace sluice {

struct SamplerOptions {
  /// From one sample to the next, on average, by the store's clock. 1 us or more; less than
  /// UtilizationOptions::max_gap, which should be 2.5 times as long.
  Span period = std::chrono::seconds{8};
  /// Each time lies within half a period of where it would be, at random: samplers that share one
  /// level must not be in step, or those who come after a gap would count for all others.
  bool jitter = true;
};

/// Feeds a shedder from a sensor. It takes no thread and no time of its own unless start() asks for
/// them: some part of the program that runs often enough, such as each call, pokes it.
///
///     Sampler sampler{shedder, workers};
///     sampler.poke();                     // in each call; samples every 8 s or so
///
/// It never waits for the store. A sample that fails is counted, not repeated: the next one is due
/// a period later. REQUIRES: the shedder, its store and the sensor outlive the sampler; a sensor
/// is read by one thread at a time.
class Sampler {
 public:
  /// For the service as a whole, or for one key. Throws std::invalid_argument if the period is
  /// below 1 us or not below the shedder's max_gap.
  /// Without a generator, it draws from rng_of() the store's clock.
  Sampler(const UtilizationShedder& shedder, Sensor& sensor, SamplerOptions options = {});
  Sampler(const UtilizationShedder& shedder, Sensor& sensor, SamplerOptions options, Rng& rng);
  Sampler(const UtilizationShedder& shedder, const Key& key, Sensor& sensor,
          SamplerOptions options = {});
  Sampler(const UtilizationShedder& shedder, const Key& key, Sensor& sensor, SamplerOptions options,
          Rng& rng);
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;
  /// Stops the thread, if there is one, and waits until it has ended.
  ~Sampler();

  /// Samples if it is time to; the first poke always does. True if it sampled. One reading of the
  /// store's coarse clock if not. Never throws: a sensor that does counts as failed.
  bool poke() noexcept;

  /// A thread of its own pokes it from now on, whenever it is due by the store's clock. Once is
  /// enough. Throws std::system_error if there can be no thread.
  void start();
  /// Ends that thread, and waits until it has.
  void stop() noexcept;

  /// Samples that the store took.
  [[nodiscard]] std::uint64_t taken() const noexcept { return counts_->taken.load(); }
  /// Samples that the sensor could not give, or the store could not take.
  [[nodiscard]] std::uint64_t failed() const noexcept { return counts_->failed.load(); }
  /// Why the store could not take the last one that it did not.
  [[nodiscard]] std::error_code last_error() const;

 private:
  // Of its own life: an answer may come after the sampler is gone.
  struct Counts {
    std::atomic<std::uint64_t> taken{0};
    std::atomic<std::uint64_t> failed{0};
    std::mutex mutex;
    std::error_code error;
  };

  Sampler(const UtilizationShedder& shedder, const Key& key, Sensor& sensor, SamplerOptions options,
          Rng* rng);
  void sample();
  [[nodiscard]] bool is_due(Word now) const noexcept;
  [[nodiscard]] Word next_due(Word now);
  void run(std::latch& known);

  const UtilizationShedder& shedder_;
  Sensor& sensor_;
  SamplerOptions options_;
  Rng* rng_;  // null: by the clock
  std::string tag_;
  std::string key_name_;
  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
  std::atomic<Word> due_{0};
  std::mutex sampling_;
  ManualResetEvent stop_;  // the thread: awake from stop() on
  std::thread thread_;
};

}  // namespace sluice
