// Sensors for a UtilizationShedder: busy workers, the delay of a queue, the processor. Each
// documents how threads may share it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/clock.hpp"
#include "sluice/limiters/utilization_shedder.hpp"

namespace sluice {

/// A measure of utilization. Unless a sensor says otherwise, only one thread at a time reads it.
class Sensor {
 public:
  Sensor() = default;
  Sensor(const Sensor&) = delete;
  Sensor& operator=(const Sensor&) = delete;
  virtual ~Sensor() = default;

  /// The utilization now. None: there is no value yet, or the measurement failed; try again later.
  [[nodiscard]] virtual std::optional<Utilization> read() = 0;
};

/// The share of workers that are busy. Thread-safe.
///
///     BusyWorkers workers{32};
///     const auto busy = workers.begin();        // in each worker, while it serves a call
class BusyWorkers final : public Sensor {
 public:
  /// Marks one worker as busy for the lifetime of this object. REQUIRES: does not outlive its
  /// sensor.
  class [[nodiscard]] Busy {
   public:
    Busy(Busy&& other) noexcept : workers_(std::exchange(other.workers_, nullptr)) {}
    Busy& operator=(Busy&& other) noexcept {
      std::swap(workers_, other.workers_);
      return *this;
    }
    ~Busy() { end(); }
    /// Marks the worker as free. Further calls have no effect.
    void end() noexcept {
      if (workers_ != nullptr) std::exchange(workers_, nullptr)->busy_.fetch_sub(1);
    }

   private:
    friend class BusyWorkers;
    explicit Busy(BusyWorkers* workers) noexcept : workers_(workers) {
      workers_->busy_.fetch_add(1);
    }
    BusyWorkers* workers_;
  };

  /// Throws std::invalid_argument unless `workers` is 1 to 2^52.
  explicit BusyWorkers(Word workers);

  Busy begin() noexcept { return Busy(this); }
  [[nodiscard]] Word busy() const noexcept { return busy_.load(); }
  /// Busy workers as a share of all; at most 1.0, also if more are busy than there are.
  [[nodiscard]] std::optional<Utilization> read() override;

 private:
  Word workers_;
  std::atomic<Word> busy_{0};
};

/// The wait of the oldest item in a queue, relative to the longest acceptable wait.
class QueueDelay final : public Sensor {
 public:
  /// `oldest` returns when the oldest item of the queue arrived, by `clock`; none: the queue is
  /// empty. read() calls it, and it takes the queue's lock itself if it needs one. `full_delay` is
  /// the wait that counts as 1.0. Throws std::invalid_argument unless `full_delay` is 1 us or more,
  /// or if `oldest` is empty. REQUIRES: the clock outlives the sensor.
  QueueDelay(const Clock& clock, Span full_delay, std::function<std::optional<Time>()> oldest);

  /// The wait of the oldest item divided by `full_delay`, at most 1.0; 0.0 if the queue is empty.
  [[nodiscard]] std::optional<Utilization> read() override;

 private:
  const Clock& clock_;
  Span full_delay_;
  std::function<std::optional<Time>()> oldest_;
};

/// Processor time since the machine started, used and in total, in any unit.
struct CpuTimes {
  std::uint64_t busy = 0;
  std::uint64_t total = 0;
};

/// The source of a CpuSensor. read() returns none on failure.
class CpuSource {
 public:
  CpuSource() = default;
  CpuSource(const CpuSource&) = delete;
  CpuSource& operator=(const CpuSource&) = delete;
  virtual ~CpuSource() = default;
  [[nodiscard]] virtual std::optional<CpuTimes> read() = 0;
};

/// The times of the host's processors: everything but idle and waiting for I/O is busy, also time
/// that the hypervisor gave to other guests. `stat` is the text of Linux' /proc/stat. None if it
/// cannot be parsed.
[[nodiscard]] std::optional<CpuTimes> host_cpu(detail::TextArg stat) noexcept;

/// The times of one process, relative to all of the host's processors. `self` is the text of Linux'
/// /proc/self/stat, `stat` that of /proc/stat.
[[nodiscard]] std::optional<CpuTimes> process_cpu(detail::TextArg self,
                                                  detail::TextArg stat) noexcept;

enum class CpuOf : std::uint8_t { host, process };

/// A source that reads the files of Linux; on other systems its read() returns none. These files do
/// not contain a container's quota of processor time: count busy workers there instead. `folder`
/// replaces /proc.
[[nodiscard]] std::unique_ptr<CpuSource> proc_cpu_source(CpuOf of,
                                                         detail::TextArg folder = "/proc");

/// The processor's utilization between two readings. Thread-safe.
class CpuSensor final : public Sensor {
 public:
  explicit CpuSensor(CpuOf of = CpuOf::host) : CpuSensor(proc_cpu_source(of)) {}
  /// Throws std::invalid_argument if `source` is null.
  explicit CpuSensor(std::unique_ptr<CpuSource> source);

  /// The utilization since the previous reading. None at the first one, if no time has passed, if
  /// the counters ran backwards, or if the source could not be read.
  [[nodiscard]] std::optional<Utilization> read() override;

 private:
  std::mutex mutex_;
  std::unique_ptr<CpuSource> source_;
  std::optional<CpuTimes> last_;
};

}  // namespace sluice
