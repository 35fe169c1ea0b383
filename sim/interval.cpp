#include "sluice/sim/interval.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice::sim {
namespace {

constexpr std::uint64_t most_degrees = 1'000'000;

/// P(|T| <= sqrt(degrees) * tan(angle)), for 0 <= angle <= pi / 2.
double student_probability(std::uint64_t degrees, double angle) noexcept {
  const double cosine = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  // The terms are cos, 2/3 cos^3, 2*4/(3*5) cos^5, ... or 1, 1/2 cos^2, 1*3/(2*4) cos^4, ...
  double term = odd ? cosine : 1;
  double sum = 0;
  for (std::uint64_t power = odd ? 1 : 0; power + 2 <= degrees; power += 2) {
    sum += term;
    term *= cosine * cosine * static_cast<double>(power + 1) / static_cast<double>(power + 2);
  }
  const double part = std::sin(angle) * sum;
  return odd ? (angle + part) * 2 / std::numbers::pi : part;
}

double checked_mean(std::span<const double> values) {
  if (values.size() < 2) {
    throw std::invalid_argument("an interval needs at least 2 values, got " +
                                std::to_string(values.size()));
  }
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      throw std::invalid_argument("an interval needs finite values, got " +
                                  std::to_string(values[i]) + " at index " + std::to_string(i));
    }
    sum += values[i];
  }
  return sum / static_cast<double>(values.size());
}

}  // namespace

double student_t(std::uint64_t degrees, double confidence) {
  if (degrees == 0) throw std::invalid_argument("degrees of freedom must be 1 or more, got 0");
  if (!(confidence > 0 && confidence <= 1 - 1e-6)) {
    throw std::invalid_argument("a confidence must be above 0 and at most 0.999999, got " +
                                std::to_string(confidence));
  }
  degrees = std::min(degrees, most_degrees);
  double low = 0;
  double high = std::numbers::pi / 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = low + (high - low) / 2;
    (student_probability(degrees, middle) < confidence ? low : high) = middle;
  }
  return std::sqrt(static_cast<double>(degrees)) * std::tan(low);
}

Interval student_interval(std::span<const double> values, double confidence) {
  const double mean = checked_mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto count = static_cast<double>(values.size());
  const double error = std::sqrt(squares / (count - 1) / count);
  return {mean, student_t(values.size() - 1, confidence) * error};
}

Interval paired_interval(std::span<const double> a, std::span<const double> b, double confidence) {
  if (a.size() != b.size()) {
    throw std::invalid_argument("paired values must be as many on both sides, got " +
                                std::to_string(a.size()) + " and " + std::to_string(b.size()));
  }
  std::vector<double> differences(a.size());
  std::transform(a.begin(), a.end(), b.begin(), differences.begin(), std::minus<>());
  return student_interval(differences, confidence);
}

}  // namespace sluice::sim
