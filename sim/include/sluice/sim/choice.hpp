// Choice: which of n keys, tenants or workers a call of a simulation belongs to. A plain value; may
// be drawn from on several threads, each with its own generator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/rng.hpp"

namespace sluice::sim {

/// A distribution over 0 to n - 1. Draws are integer arithmetic, so that they are equal everywhere.
/// Copying is cheap. Every function that makes one throws std::invalid_argument, with the value
/// and the range, unless 1 <= n <= 2^24.
class Choice {
 public:
  static constexpr std::size_t largest = std::size_t{1} << 24;

  /// Each with the same probability.
  static Choice uniform(std::size_t n);
  /// Zipf's law: P(i) is in proportion to 1 / (i + 1)^exponent. The exponent is rounded to a
  /// multiple of 2^-32, the probabilities to 2^-38. Takes 24 bytes and 0.4 us for each of n.
  /// REQUIRES: 0 <= exponent <= 20.
  static Choice zipf(std::size_t n, double exponent);
  /// 0 has this share, all others have equal parts of the rest. REQUIRES: 0 <= share <= 1. If n =
  /// 1, 0 has all.
  static Choice hot(std::size_t n, double share);
  /// In proportion to these weights. REQUIRES: each is 0 to 2^20 in multiples of 2^-32, at least
  /// one positive.
  static Choice weights(const std::vector<double>& weights);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// One draw. O(1), by the alias method (Walker 1977, Vose 1991). Uses the generator once, hot()
  /// once more for what is not 0.
  [[nodiscard]] std::size_t draw(Rng& rng) const;
  /// The probability of `i`; that of draw() differs by at most 2^-60. REQUIRES: i < size().
  [[nodiscard]] double share(std::size_t i) const noexcept;

 private:
  enum class Kind : std::uint8_t { uniform, hot, table };
  struct Table;
  Choice(Kind kind, std::size_t size, std::uint64_t share) noexcept
      : kind_(kind), size_(size), hot_share_(share) {}
  static Choice of_weights(std::vector<std::uint64_t> weights);

  Kind kind_;
  std::size_t size_;
  std::uint64_t hot_share_;  // in units of 2^-64; all ones: 1
  std::shared_ptr<const Table> table_;
};

}  // namespace sluice::sim
