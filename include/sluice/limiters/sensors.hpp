// Ready measures of how busy something is, for a UtilizationShedder: busy workers, the delay of a
// queue, the processor. Each says how it may be shared among threads.
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

/// A measure of utilization. Unless it says otherwise, one thread at a time reads it.
class Sensor {
 public:
  Sensor() = default;
  Sensor(const Sensor&) = delete;
  Sensor& operator=(const Sensor&) = delete;
  virtual ~Sensor() = default;

  /// How busy it is. None: there is nothing to say yet, or the measure failed; ask again later.
  [[nodiscard]] virtual std::optional<Utilization> read() = 0;
};

/// Counts the workers that are busy. Thread-safe.
///
///     BusyWorkers workers{32};
///     const auto busy = workers.begin();        // in each worker, while it serves a call
class BusyWorkers final : public Sensor {
 public:
  /// One worker that is busy for as long as this lives. REQUIRES: does not outlive its sensor.
  class [[nodiscard]] Busy {
   public:
    Busy(Busy&& other) noexcept : workers_(std::exchange(other.workers_, nullptr)) {}
    Busy& operator=(Busy&& other) noexcept {
      std::swap(workers_, other.workers_);
      return *this;
    }
    ~Busy() { end(); }
    /// The worker is free from now on. Once is enough, and twice does no harm.
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

  /// Throws std::invalid_argument unless there are 1 to 2^52 workers.
  explicit BusyWorkers(Word workers);

  Busy begin() noexcept { return Busy(this); }
  [[nodiscard]] Word busy() const noexcept { return busy_.load(); }
  /// Busy workers of all; 1.0 also if more are busy than there are.
  [[nodiscard]] std::optional<Utilization> read() override;

 private:
  Word workers_;
  std::atomic<Word> busy_{0};
};

/// How long the head of a queue has waited, against the longest wait that is bearable.
class QueueDelay final : public Sensor {
 public:
  /// `oldest` says when the head of the queue came in, by `clock`; none: the queue is empty. It is
  /// called by read(), and takes the queue's lock itself if it needs one. Throws
  /// std::invalid_argument unless `unbearable` is 1 us or more, or if `oldest` is empty. REQUIRES:
  /// the clock outlives the sensor.
  QueueDelay(const Clock& clock, Span unbearable, std::function<std::optional<Time>()> oldest);

  /// The head's wait as a part of `unbearable`, at most 1.0; 0.0 if the queue is empty.
  [[nodiscard]] std::optional<Utilization> read() override;

 private:
  const Clock& clock_;
  Span unbearable_;
  std::function<std::optional<Time>()> oldest_;
};

/// Processor time since the machine started, in any unit: what was used, and what there was.
struct CpuTimes {
  std::uint64_t busy = 0;
  std::uint64_t total = 0;
};

/// Where a CpuSensor reads. None: it could not be read.
class CpuSource {
 public:
  CpuSource() = default;
  CpuSource(const CpuSource&) = delete;
  CpuSource& operator=(const CpuSource&) = delete;
  virtual ~CpuSource() = default;
  [[nodiscard]] virtual std::optional<CpuTimes> read() = 0;
};

/// The host's processors: all that is neither idle nor waiting for I/O is busy, and time that the
/// hypervisor gave to others counts as busy. `stat` is the text of Linux' /proc/stat. None if it is
/// no such text.
[[nodiscard]] std::optional<CpuTimes> host_cpu(detail::TextArg stat) noexcept;

/// One process against all of the host's processors. `self` is the text of Linux' /proc/self/stat,
/// `stat` that of /proc/stat.
[[nodiscard]] std::optional<CpuTimes> process_cpu(detail::TextArg self,
                                                  detail::TextArg stat) noexcept;

enum class CpuOf : std::uint8_t { host, process };

/// Reads Linux' files; on other systems it finds nothing to read. A container's quota of processor
/// time is not known to these files: there, count busy workers instead. `folder` replaces /proc.
[[nodiscard]] std::unique_ptr<CpuSource> proc_cpu_source(CpuOf of,
                                                         detail::TextArg folder = "/proc");

/// The processor's utilization between two readings. Thread-safe.
class CpuSensor final : public Sensor {
 public:
  explicit CpuSensor(CpuOf of = CpuOf::host) : CpuSensor(proc_cpu_source(of)) {}
  /// Throws std::invalid_argument if there is no source.
  explicit CpuSensor(std::unique_ptr<CpuSource> source);

  /// Since the reading before this. None at the first, if no time has passed, if the counters ran
  /// backwards, and if the source could not be read.
  [[nodiscard]] std::optional<Utilization> read() override;

 private:
  std::mutex mutex_;
  std::unique_ptr<CpuSource> source_;
  std::optional<CpuTimes> last_;
};

}  // namespace sluice
