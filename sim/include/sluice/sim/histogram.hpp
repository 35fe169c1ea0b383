// Histogram: counts of times, for quantiles. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/time.hpp"

namespace sluice::sim {

/// A histogram with bins that grow with the value: quantiles are exact below 128 us and at most
/// 1/64 too high above. 25 KiB, whatever is counted.
class Histogram {
 public:
  Histogram();

  /// Counts one value; below zero counts as zero. O(1).
  void add(Span value) noexcept;

  /// The upper end of the smallest bin that at least `parts`/`of` of the values do not exceed: 99,
  /// 100 for p99. Zero if nothing was counted. O(bins).
  [[nodiscard]] Span quantile(std::uint64_t parts, std::uint64_t of) const noexcept;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] Span max() const noexcept { return Span{max_}; }

 private:
  std::vector<std::uint64_t> bins_;
  std::uint64_t count_ = 0;
  Word max_ = 0;
};

}  // namespace sluice::sim
