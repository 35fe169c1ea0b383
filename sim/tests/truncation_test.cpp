// MSER-5 against its definition in floating point, and shapes whose cut is known.
// Threading: single-threaded.
#include "sluice/sim/truncation.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::sim;

namespace {

using Series = std::vector<std::uint64_t>;

/// A series with these sums of five values.
Series series_of(const std::vector<std::uint64_t>& batches) {
  Series series;
  for (const std::uint64_t batch : batches) {
    series.insert(series.end(),
                  {batch / 5, batch / 5, batch / 5, batch / 5, batch / 5 + batch % 5});
  }
  return series;
}

/// The squared standard error of what a cut leaves, as the formula has it.
long double error_of(const Series& series, std::size_t cut) {
  const std::size_t batches = series.size() / 5;
  std::vector<long double> sums(batches, 0);
  for (std::size_t i = 0; i < batches * 5; ++i) sums[i / 5] += static_cast<long double>(series[i]);
  const auto left = static_cast<long double>(batches - cut);
  long double mean = 0;
  for (std::size_t i = cut; i < batches; ++i) mean += sums[i] / left;
  long double error = 0;
  for (std::size_t i = cut; i < batches; ++i) {
    error += (sums[i] - mean) * (sums[i] - mean) / left / left;
  }
  return error;
}

/// The first of the cuts whose errors are within rounding of the least.
std::size_t cut_by_definition(const Series& series) {
  const std::size_t most = series.size() / 5 * 3 / 4;
  long double least = error_of(series, 0);
  for (std::size_t cut = 1; cut <= most; ++cut) least = std::min(least, error_of(series, cut));
  std::size_t first = 0;
  while (error_of(series, first) > least * (1 + 1e-15L)) ++first;
  return first;
}

}  // namespace

TEST_CASE("a step is cut where it is, up to the half; later ones call for a longer series") {
  for (std::size_t step = 0; step <= 15; ++step) {
    CAPTURE(step);
    std::vector<std::uint64_t> batches(20, 100);
    std::fill_n(batches.begin(), step, 20);
    const Truncation truncation = mser5(series_of(batches));
    CHECK(truncation.cut == step);
    CHECK(truncation.is_settled() == (step <= 10));
    // Downwards as well.
    std::fill_n(batches.begin(), step, 400);
    CHECK(mser5(series_of(batches)).cut == step);
  }
}

TEST_CASE("of a ramp all is cut that may be, which is too much") {
  Series series(400);
  for (std::size_t i = 0; i < series.size(); ++i) series[i] = 3 * i;
  const Truncation rising = mser5(series);
  CHECK(rising.batches == 80);
  CHECK(rising.cut == 60);
  CHECK_FALSE(rising.is_settled());
  std::ranges::reverse(series);
  CHECK(mser5(series).cut == 60);
}

TEST_CASE("the cut is that of the definition, for values of every size") {
  test::Random random("the cut is that of the definition, for values of every size");
  CAPTURE(random.repeat());
  const std::size_t rounds = test::scaled(300, 50);
  for (std::size_t i = 0; i < rounds; ++i) {
    Series series(static_cast<std::size_t>(random.between(100, 600)));
    const std::uint64_t most = std::uint64_t{1} << random.between(0, 36);
    const auto start = static_cast<std::size_t>(random.between(0, 300));
    for (std::size_t k = 0; k < series.size(); ++k) {
      series[k] = random.below(k < start ? most / 2 + 1 : most);
    }
    CAPTURE(i, series.size(), most, start);
    CHECK(mser5(series).cut == cut_by_definition(series));
  }
}

TEST_CASE("the longest series of the largest values has no overflow") {
  constexpr std::uint64_t most = (std::uint64_t{1} << 36) - 1;
  std::vector<std::uint64_t> series(5000, 0);
  // Half nothing and half the most: the largest deviation.
  std::fill_n(series.begin(), 2500, most);
  CHECK(mser5(series).cut == 500);
  CHECK(mser5(series).is_settled());
  for (std::size_t i = 0; i < series.size(); ++i) series[i] = i / 5 % 2 == 0 ? 0 : most;
  CHECK(mser5(series).cut == 0);
}

TEST_CASE("values behind the last whole batch are not looked at") {
  Series series(104, 3);
  std::fill(series.begin() + 100, series.end(), ~std::uint64_t{0});
  CHECK(mser5(series).batches == 20);
  CHECK(mser5(series).cut == 0);
}

TEST_CASE("series of a length or with values that it cannot take are refused") {
  const std::string length = "mser5: a series must have 100 to 5004 values, got ";
  CHECK_THROWS_WITH(mser5({}), length + "0");
  CHECK_THROWS_WITH(mser5(Series(99, 1)), length + "99");
  CHECK_THROWS_WITH(mser5(Series(5005, 1)), length + "5005");
  CHECK_NOTHROW(mser5(Series(5004, 1)));
  Series large(100, 1);
  large[99] = std::uint64_t{1} << 36;
  CHECK_THROWS_WITH(mser5(large), "mser5: values must be below 2^36, got 68719476736 at index 99");
}
