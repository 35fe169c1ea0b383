// Random numbers of a simulation: one stream for each entity and purpose, and distributions of
// delays.
//
// All arithmetic is in integers: the distributions of <random> and the functions of <cmath> differ
// between standard libraries, and a simulation must not. Plain values; no threading rule.
#pragma once

#include <cstdint>

#include "sluice/rng.hpp"
#include "sluice/time.hpp"

namespace sluice::sim {

/// The generator for one purpose of one entity. A part of the model that draws more or less
/// therefore leaves the draws of all others unchanged, and two limiters can be compared under the
/// same arrivals and latencies.
[[nodiscard]] SeededRng stream(std::uint64_t seed, std::uint64_t entity, std::uint64_t purpose);

/// A distribution of delays in microseconds.
class Delay {
 public:
  /// Always `span`. This and the following functions throw std::invalid_argument unless their spans
  /// are 0 to 30 days.
  static Delay constant(Span span);
  /// Uniform from `low` to `high`. REQUIRES: low <= high.
  static Delay uniform(Span low, Span high);
  /// Exponential with this mean; at most 44.4 times the mean, which is 1 us to 30 days.
  static Delay exponential(Span mean);
  /// Approximately log-normal: half of the draws are below `p50`, 99 of 100 below `p99`. The
  /// logarithm is a sum of twelve uniform draws, which is normal except that its tails end at 6
  /// sigma: the longest delay is max(). REQUIRES: 1 us <= p50 <= p99 <= 64 * p50.
  static Delay log_normal(Span p50, Span p99);

  /// One draw, in [min(), max()]. Uses the generator between 0 and 3 times.
  [[nodiscard]] Span sample(Rng& rng) const;
  [[nodiscard]] Span min() const noexcept;
  [[nodiscard]] Span max() const noexcept;

 private:
  enum class Kind : std::uint8_t { constant, uniform, exponential, log_normal };
  Delay(Kind kind, Word a, Word b) noexcept : kind_(kind), a_(a), b_(b) {}
  [[nodiscard]] Word stretched(std::int64_t bell) const noexcept;

  Kind kind_;
  Word a_;  // the constant, the lowest, the mean, the median
  Word b_;  // the highest; log2(p99 / p50) in units of 2^-32
};

}  // namespace sluice::sim
