// Truncation: how much of a series, which begins with an empty system, is to be left out of its
// mean. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::sim {

/// What MSER-5 says of a series.
struct Truncation {
  static constexpr std::size_t batch = 5;  ///< values of the series
  static constexpr std::size_t fewest_batches = 20;
  static constexpr std::size_t most_batches = 1000;

  std::size_t batches = 0;  ///< in the series; values behind the last whole one are not looked at
  std::size_t cut = 0;      ///< batches to leave out, from the first on

  /// False: the cut lies in the second half, and the series is too short for its start.
  [[nodiscard]] bool is_settled() const noexcept { return 2 * cut <= batches; }
};

/// The marginal standard error rule on batches of five (K. P. White, "An effective truncation
/// heuristic for bias reduction in simulation output", Simulation 69(6), 1997; K. P. White, M. J.
/// Cobb, S. C. Spratt, "A comparison of five steady-state truncation heuristics for simulation",
/// Winter Simulation Conference 2000). Y(1) ... Y(n) are the sums of five values each. The rule
/// leaves out the first d of them for which
///
///     sum of (Y(i) - M)^2 / (n - d)^2 over i = d + 1 ... n, where M is the mean of these Y(i),
///
/// is least: the square of the standard error of M if the batches were independent. d is 0 to
/// 3 n / 4, because few equal batches at the end have an error of 0; of equal errors, the smallest
/// d. In whole numbers and without rounding, the same on every platform. O(n). Throws
/// std::invalid_argument unless 20 <= n <= 1000, and if a value is 2^36 or more.
[[nodiscard]] Truncation mser5(std::span<const std::uint64_t> series);

}  // namespace sluice::sim
