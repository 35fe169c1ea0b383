// Interval: the mean of independent replications with its Student interval. In double: these are
// figures for people, and no model decides by them. Plain values; no threading rule.
#pragma once

#include <cstdint>
#include <span>

namespace sluice::sim {

/// A confidence interval that is symmetric about its mean.
struct Interval {
  double mean = 0;
  double half_width = 0;

  [[nodiscard]] double low() const noexcept { return mean - half_width; }
  [[nodiscard]] double high() const noexcept { return mean + half_width; }
  [[nodiscard]] bool contains(double value) const noexcept {
    return low() <= value && value <= high();
  }
};

/// The t for which a variable with Student's distribution is in [-t, t] with this probability: for
/// a confidence of 0.99, the 0.995 quantile. The distribution of a whole number of degrees of
/// freedom is a finite series (Abramowitz and Stegun, 26.7.3 and 26.7.4), which is inverted by
/// bisection; the relative error is below 1e-9. More than a million degrees count as a million.
/// O(degrees). Throws std::invalid_argument unless 1 <= degrees and 0 < confidence <= 1 - 1e-6.
[[nodiscard]] double student_t(std::uint64_t degrees, double confidence);

/// The mean of the values and its Student interval: mean +- t * s / sqrt(n), with n - 1 degrees of
/// freedom and s the standard deviation. It is exact for independent values of one normal
/// distribution, and for the means of long replications nearly so. Throws std::invalid_argument if
/// there are fewer than two values, if one is not finite, or as student_t() does.
[[nodiscard]] Interval student_interval(std::span<const double> values, double confidence = 0.99);

/// student_interval() of the differences a[i] - b[i], for two systems under the same random
/// numbers: what both have in common cancels out. Throws also if the sizes differ.
[[nodiscard]] Interval paired_interval(std::span<const double> a, std::span<const double> b,
                                       double confidence = 0.99);

}  // namespace sluice::sim
