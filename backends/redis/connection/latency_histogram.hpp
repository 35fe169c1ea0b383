// LatencyHistogram: counts of times to reply, for quantiles. Threading: any member from any thread.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "sluice/time.hpp"

namespace sluice::redis_detail {

/// The buckets of a LatencyHistogram: log-linear, 16 of equal width for each power of two.
///
///     v < 32 us                         bucket v, so that these times are exact
///     v >= 32 us, e = floor(log2 v)     bucket 16 * (e - 4) + floor(v / 2^(e - 4))
///
/// A bucket [low, low + width) with width > 1 has low >= 16 * width. Its last value, by which it is
/// read, is therefore not below any value in it, and above it by less than 1/16 of that value.
struct LatencyBuckets {
  /// Longer times, from 38 hours on, count as this one.
  static constexpr Word longest = (Word{1} << 37) - 1;

  static constexpr std::size_t index(Span span) noexcept {
    const auto value = static_cast<std::uint64_t>(std::clamp(span.count(), Word{0}, longest));
    const auto bits = static_cast<unsigned>(std::bit_width(value));
    const unsigned shift = bits > 5 ? bits - 5 : 0;
    return std::size_t{16} * shift + static_cast<std::size_t>(value >> shift);
  }
  /// The last value of a bucket.
  static constexpr Span last(std::size_t index) noexcept {
    const std::size_t shift = index < 32 ? 0 : index / 16 - 1;
    return Span{static_cast<Word>(((index - 16 * shift + 1) << shift) - 1)};
  }

  static constexpr std::size_t count = 16 * 32 + 32;
};
static_assert(LatencyBuckets::index(Span{LatencyBuckets::longest}) + 1 == LatencyBuckets::count);

class LatencyHistogram;

/// What one or several histograms have counted, at one time. A plain value, 4 KiB.
class LatencyCounts {
 public:
  void add(const LatencyHistogram& histogram) noexcept;

  [[nodiscard]] std::uint64_t total() const noexcept {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : counts_) sum += count;
    return sum;
  }

  /// The last value of the first bucket with which at least `parts`/`of` of the times are counted
  /// (for p99: 99, 100); zero if there are none. It is not below the true quantile, and above it by
  /// less than 1/16 of it. REQUIRES: parts <= of, of > 0, and total() * parts < 2^64.
  [[nodiscard]] Span quantile(std::uint64_t parts, std::uint64_t of) const noexcept {
    const std::uint64_t all = total();
    if (all == 0) return Span{0};
    const std::uint64_t wanted = std::max(std::uint64_t{1}, (all * parts + of - 1) / of);
    std::size_t bucket = 0;
    for (std::uint64_t seen = counts_[0]; seen < wanted; seen += counts_[bucket]) ++bucket;
    return LatencyBuckets::last(bucket);
  }

 private:
  std::array<std::uint64_t, LatencyBuckets::count> counts_{};
};

/// Counts times. record() is one addition without a lock; the counts are independent of each other
/// and order nothing, so that all memory orders are relaxed. 4 KiB.
class LatencyHistogram {
 public:
  /// A time below zero counts as zero.
  void record(Span span) noexcept {
    counts_[LatencyBuckets::index(span)].fetch_add(1, std::memory_order_relaxed);
  }
  /// Times that are recorded meanwhile may be lost.
  void clear() noexcept {
    for (auto& count : counts_) count.store(0, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t count_at(std::size_t bucket) const noexcept {
    return counts_[bucket].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::uint64_t>, LatencyBuckets::count> counts_{};
};

inline void LatencyCounts::add(const LatencyHistogram& histogram) noexcept {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += histogram.count_at(i);
}

}  // namespace sluice::redis_detail
