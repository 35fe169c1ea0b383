// Student's quantiles against a table, and intervals against their definition. Threading:
// single-threaded.
#include "sluice/sim/interval.hpp"

#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "sluice/rng.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;

namespace {

struct Row {
  std::uint64_t degrees;
  double at_90, at_95, at_99, at_999;
};

// The table of every textbook, two-sided.
constexpr Row table[] = {
    {1, 6.314, 12.706, 63.657, 636.619}, {2, 2.920, 4.303, 9.925, 31.599},
    {3, 2.353, 3.182, 5.841, 12.924},    {4, 2.132, 2.776, 4.604, 8.610},
    {5, 2.015, 2.571, 4.032, 6.869},     {9, 1.833, 2.262, 3.250, 4.781},
    {10, 1.812, 2.228, 3.169, 4.587},    {19, 1.729, 2.093, 2.861, 3.883},
    {29, 1.699, 2.045, 2.756, 3.659},    {30, 1.697, 2.042, 2.750, 3.646},
    {60, 1.671, 2.000, 2.660, 3.460},    {120, 1.658, 1.980, 2.617, 3.373},
};

/// Nearly normal: the sum of twelve uniform draws less six.
double normal(Rng& rng) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(rng.next() >> 11) * 0x1p-53;
  return sum;
}

}  // namespace

TEST_CASE("Student's quantiles are those of the table") {
  for (const Row& row : table) {
    CAPTURE(row.degrees);
    CHECK(std::abs(student_t(row.degrees, 0.90) - row.at_90) < 0.00051);
    CHECK(std::abs(student_t(row.degrees, 0.95) - row.at_95) < 0.00051);
    CHECK(std::abs(student_t(row.degrees, 0.99) - row.at_99) < 0.00051);
    CHECK(std::abs(student_t(row.degrees, 0.999) - row.at_999) < 0.00051);
  }
}

TEST_CASE("Student's quantiles have a closed form for one and two degrees, and the normal limit") {
  for (const double p : {1e-6, 0.1, 0.5, 0.9, 0.99, 0.999'999}) {
    CAPTURE(p);
    const double one = std::tan(p * std::numbers::pi / 2);
    const double two = p * std::sqrt(2 / (1 - p * p));
    CHECK(std::abs(student_t(1, p) / one - 1) < 1e-9);
    CHECK(std::abs(student_t(2, p) / two - 1) < 1e-9);
  }
  CHECK(std::abs(student_t(~std::uint64_t{0}, 0.99) - 2.575'829) < 1e-5);
  CHECK(std::abs(student_t(~std::uint64_t{0}, 0.95) - 1.959'964) < 1e-5);
}

TEST_CASE("an interval is the mean and t standard errors") {
  const std::vector<double> values{2, 4, 4, 4, 5, 5, 7, 9};  // the squares of the differences: 32
  const Interval interval = student_interval(values);
  CHECK(interval.mean == 5);
  CHECK(std::abs(interval.half_width - 3.499'483 * std::sqrt(32.0 / 7 / 8)) < 1e-5);
  CHECK(interval.contains(5));
  CHECK(interval.contains(interval.low()));
  CHECK(interval.contains(interval.high()));
  CHECK_FALSE(interval.contains(interval.high() + 1e-9));
  CHECK_FALSE(interval.contains(interval.low() - 1e-9));
  CHECK(student_interval(values, 0.95).half_width < interval.half_width);

  const std::vector<double> same(30, 0.1);
  CHECK(student_interval(same).half_width < 1e-15);
}

TEST_CASE("paired differences forget what both sides have in common") {
  SeededRng rng(1);
  std::vector<double> a;
  std::vector<double> b;
  for (int i = 0; i < 30; ++i) {
    const double common = 1'000 * normal(rng);
    a.push_back(common + 3 + normal(rng));
    b.push_back(common);
  }
  CHECK(paired_interval(a, b).contains(3));
  CHECK(paired_interval(a, b).half_width < 1);
  CHECK(student_interval(a).half_width > 100);
}

TEST_CASE("an interval says what is wrong with its values") {
  const std::vector<double> one{1};
  const std::vector<double> two{1, 2};
  const std::vector<double> odd{1, std::numeric_limits<double>::quiet_NaN()};
  const auto with = [](const char* text) { return test::contains_text(text); };
  CHECK_THROWS_WITH(student_interval(one), with("at least 2 values, got 1"));
  CHECK_THROWS_WITH(student_interval(odd), with("got nan at index 1"));
  CHECK_THROWS_WITH(paired_interval(one, two), with("got 1 and 2"));
  CHECK_THROWS_WITH(student_t(0, 0.99), with("got 0"));
  for (const double wrong : {0.0, -1.0, 1.0, 99.0, odd[1]}) {
    CHECK_THROWS_WITH(student_t(9, wrong), with("at most 0.999999, got "));
  }
}
