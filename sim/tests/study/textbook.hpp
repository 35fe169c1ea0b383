// Figures of random replications, and what the textbooks say of them: intervals and verdicts, once
// more. Threading: pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "sim/study/study_run.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

// The two-sided quantiles of every textbook, by degrees of freedom from 1 on.
inline constexpr double t_99[] = {63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355};
inline constexpr double t_95[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306};

/// Equal but for the digits of the table.
inline bool is_near(double value, double expected, double half) {
  return std::abs(value - expected) <= 0.001 * half + 1e-9;
}

inline constexpr double infinite = std::numeric_limits<double>::infinity();

/// A mean and half of its interval; none of fewer than two values.
struct Textbook {
  std::size_t count = 0;
  double mean = NAN;
  double half = NAN;

  Textbook(const std::vector<double>& values, double confidence) : count(values.size()) {
    if (count == 0) return;
    mean = 0;
    for (const double value : values) mean += value / static_cast<double>(count);
    if (count == 1) return;
    double squares = 0;
    for (const double value : values) squares += std::pow(value - mean, 2);
    const double t = (confidence == 0.99 ? t_99 : t_95)[count - 2];
    half = t * std::sqrt(squares / static_cast<double>(count - 1) / static_cast<double>(count));
  }
};

inline constexpr sim::Metric asked_of[] = {sim::Metric::share_429, sim::Metric::goodput,
                                           sim::Metric::recovery,  sim::Metric::shadow_deviation,
                                           sim::Metric::wait_p99,  sim::Metric::late_429};

/// A row of figures that are not always there; a recovery may never come.
inline std::vector<sim::Figures> random_figures(test::Random& random, std::size_t count) {
  std::vector<sim::Figures> all(count);
  for (const sim::Metric metric : asked_of) {
    const double middle = static_cast<double>(random.between(0, 90));
    const Word spread = random.one_in(4) ? 0 : random.between(1, 9);
    const bool may_miss = random.one_in(4);
    for (sim::Figures& each : all) {
      double value = middle + static_cast<double>(random.between(-spread, spread));
      if (metric != sim::Metric::shadow_deviation) value = std::max(value, 0.0);
      if (metric == sim::Metric::recovery && may_miss && random.one_in(3)) value = infinite;
      if (may_miss && random.one_in(3)) value = NAN;
      each[metric] = value;
    }
  }
  return all;
}

inline bool has_infinite(const std::vector<double>& values) {
  return std::ranges::any_of(values, [](double value) { return std::isinf(value); });
}
inline std::vector<double> finite(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  return values;
}

/// What a figure of asked_of can be.
inline sim::scenario::Range possible_of(sim::Metric metric) {
  return {metric == sim::Metric::shadow_deviation ? -100.0 : 0.0,
          metric == sim::Metric::share_429 ? 100.0 : infinite};
}

/// The verdict on the values of an expectation. `remain`: the seconds in which what never came was
/// awaited; not a number if nothing is known from that. None: too near to a border for the table.
inline std::optional<sim::scenario::Status> expected_status(
    const sim::scenario::Expectation& expectation, const std::vector<double>& values,
    sim::scenario::Range possible, double remain, double confidence) {
  using sim::scenario::Status;
  const bool never = has_infinite(values);
  // What never came took at least as long as was seen.
  std::vector<double> at_least = values;
  for (double& value : at_least) value = std::isinf(value) ? remain : value;
  const Textbook book(finite(at_least), confidence);
  if (book.count == 0 && !never) return Status::undecided;
  const double half = book.count > 1 ? book.half : 0;
  const bool is_unseen = never && std::isnan(remain);
  const double low = is_unseen ? NAN : std::max(book.mean - half, possible.least);
  const double high = std::min(book.mean + half, possible.most);
  const auto near = [&](const std::optional<double>& border) {
    return border && (std::abs(*border - low) < 0.001 * (1 + half) ||
                      std::abs(*border - high) < 0.001 * (1 + half));
  };
  if (half != 0 && (near(expectation.least) || near(expectation.most) ||
                    (expectation.equals && (near(*expectation.equals - expectation.within) ||
                                            near(*expectation.equals + expectation.within))))) {
    return {};
  }
  constexpr double digits = 1e-9;
  bool holds = true;
  bool fails = false;
  const auto worsen = [&](bool good, bool bad) {
    holds = holds && good;
    fails = fails || bad;
  };
  if (expectation.least) {
    worsen(low >= *expectation.least - digits, !never && high < *expectation.least - digits);
  }
  if (expectation.most) {
    worsen(!never && high <= *expectation.most + digits, never || low > *expectation.most + digits);
  }
  if (expectation.equals) {
    const bool is_in = !never && *expectation.equals >= low - expectation.within - digits &&
                       *expectation.equals <= high + expectation.within + digits;
    worsen(is_in, !is_in);
  }
  return fails ? Status::fails : holds ? Status::holds : Status::undecided;
}

}  // namespace sluice::test
