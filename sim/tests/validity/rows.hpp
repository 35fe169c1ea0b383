// What is simulated beside its closed form. Threading: none.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "sluice/sim/interval.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

/// The number of replications of each row, with the seeds first_seed and up.
inline constexpr std::size_t replications = 32;
inline constexpr std::uint64_t first_seed = 1;

/// The 99 % interval of what `measure` returns for each of the replications.
template <class Runs, class Measure>
[[nodiscard]] sim::Interval interval_of(const Runs& runs, Measure measure) {
  std::vector<double> values;
  for (const auto& run : runs) values.push_back(measure(run));
  return sim::student_interval(values, 0.99);
}

/// Checks that an interval contains the value and is no wider than `precision` of it on each side,
/// and prints both.
///
/// A right simulation fails by chance in one of a hundred rows, for one seed in a hundred: the
/// seeds are fixed, so that a row that passes does so each time, until a change draws other
/// numbers. Then about one row in a hundred fails although nothing is wrong. Run it with other
/// seeds (first_seed): if a row fails again, the change is at fault; if it does not, keep those
/// seeds.
inline void check_row(const std::string& row, const sim::Interval& interval, double value,
                      double precision) {
  std::printf("%-50s %9.5g +- %-8.2g closed form %.6g\n", row.c_str(), interval.mean,
              interval.half_width, value);
  CAPTURE(row, interval.mean, interval.half_width);
  CHECK(interval.contains(value));
  CHECK(interval.half_width <= precision * value);
}

}  // namespace sluice::test
