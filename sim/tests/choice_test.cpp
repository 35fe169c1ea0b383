// Choices: shares against the formulas, draws against the shares. Threading: single-threaded.
#include "sluice/sim/choice.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "sluice/sim/random.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;

namespace {

double sum_of_shares(const Choice& choice) {
  double sum = 0;
  for (std::size_t i = 0; i < choice.size(); ++i) sum += choice.share(i);
  return sum;
}

/// The statistic of a chi-square test, in terms of its standard deviation above its mean. Requires
/// that what has no share is never drawn.
double excess(const Choice& choice) {
  constexpr std::size_t draws = 400'000;
  std::vector<double> counts(choice.size());
  SeededRng rng = stream(3, 1, 4);
  for (std::size_t i = 0; i < draws; ++i) ++counts.at(choice.draw(rng));
  double statistic = 0;
  double degrees = -1;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = choice.share(i) * draws;
    if (expected == 0) {
      REQUIRE(counts[i] == 0);
      continue;
    }
    statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
    ++degrees;
  }
  return degrees == 0 ? 0 : (statistic - degrees) / std::sqrt(2 * degrees);
}

}  // namespace

TEST_CASE("draws follow the shares, and the shares add up to 1") {
  const std::vector<Choice> choices{
      Choice::uniform(1),          Choice::uniform(7),        Choice::zipf(1, 1),
      Choice::zipf(1'000, 1),      Choice::zipf(50, 0),       Choice::zipf(300, 0.99),
      Choice::zipf(100, 2.5),      Choice::hot(1, 0.3),       Choice::hot(10, 0.9),
      Choice::hot(10, 0),          Choice::hot(10, 1),        Choice::weights({0, 1, 0, 2, 5, 0}),
      Choice::weights({1, 1}),     Choice::weights({0.1, 3}), Choice::weights({7}),
      Choice::weights({1e-9, 1e6})};
  for (std::size_t i = 0; i < choices.size(); ++i) {
    INFO("choice " << i);
    CHECK(std::abs(sum_of_shares(choices[i]) - 1) < 1e-9);
    CHECK(excess(choices[i]) < 3.5);
  }
}

TEST_CASE("Zipf's law, the hot choice and weights have the shares of their formulas") {
  double harmonic = 0;
  for (int i = 1; i <= 1'000'000; ++i) harmonic += std::pow(i, -1.1);
  const Choice zipf = Choice::zipf(1'000'000, 1.1);
  for (const std::size_t i : {0U, 1U, 9U, 999'999U}) {
    const double share = std::pow(static_cast<double>(i + 1), -1.1) / harmonic;
    CHECK(std::abs(zipf.share(i) - share) < 1e-7 * share + 1e-11);
  }
  CHECK(Choice::hot(10, 0.9).share(0) == Approx(0.9));
  CHECK(Choice::hot(10, 0.9).share(9) == Approx(0.1 / 9));
  CHECK(Choice::hot(1, 0.5).share(0) == 1);
  CHECK(Choice::weights({1, 0, 3}).share(2) == 0.75);
  CHECK(Choice::weights({1, 0, 3}).share(1) == 0);
  CHECK(Choice::uniform(8).share(3) == 0.125);
}

TEST_CASE("a weight of one in 10^15 does not disturb the others") {
  const Choice choice = Choice::weights({1e-9, 1e6, 1e6});
  SeededRng rng = stream(1, 2, 3);
  std::vector<int> counts(3);
  for (int i = 0; i < 100'000; ++i) ++counts.at(choice.draw(rng));
  CHECK(counts[0] == 0);
  CHECK(std::abs(counts[1] - counts[2]) < 1'200);
}

TEST_CASE("choices are the same on every compiler") {
  SeededRng rng = stream(42, 7, 1);
  std::vector<std::size_t> values;
  for (const Choice& choice : {Choice::uniform(1'000), Choice::zipf(1'000, 1.2),
                               Choice::hot(1'000, 0.5), Choice::weights({1, 2, 3, 4})}) {
    for (int i = 0; i < 4; ++i) values.push_back(choice.draw(rng));
  }
  CHECK(values ==
        std::vector<std::size_t>{477, 351, 978, 227, 94, 3, 18, 41, 0, 0, 480, 933, 3, 0, 1, 2});
}

TEST_CASE("every draw is below the size, at the extremes of the generator") {
  struct Extreme final : Rng {
    explicit Extreme(std::uint64_t draw) : value(draw) {}
    std::uint64_t next() override { return value; }
    std::uint64_t value;
  };
  for (const Choice& choice : {Choice::zipf(3, 1), Choice::hot(3, 0.5), Choice::hot(1, 0),
                               Choice::weights({0, 1, 0}), Choice::uniform(3)}) {
    // Not all ones: uniform draws would be rejected for ever.
    for (const std::uint64_t draw : {std::uint64_t{1}, ~std::uint64_t{0} - 1}) {
      Extreme rng(draw);
      CHECK(choice.draw(rng) < choice.size());
      CHECK(choice.share(choice.draw(rng)) > 0);
    }
  }
}

TEST_CASE("a choice out of range is refused with the range") {
  using Catch::Matchers::Message;
  CHECK_THROWS_MATCHES(Choice::uniform(0), std::invalid_argument,
                       Message("the number of choices must be 1 to 16777216, got 0"));
  CHECK_THROWS_AS(Choice::uniform(Choice::largest + 1), std::invalid_argument);
  CHECK_THROWS_AS(Choice::zipf(0, 1), std::invalid_argument);
  CHECK_THROWS_AS(Choice::zipf(10, -0.1), std::invalid_argument);
  CHECK_THROWS_MATCHES(Choice::zipf(10, 21), std::invalid_argument,
                       Message("the exponent of Zipf's law must be 0 to 20, got 21"));
  CHECK_THROWS_AS(Choice::zipf(10, std::numeric_limits<double>::quiet_NaN()),
                  std::invalid_argument);
  CHECK_THROWS_AS(Choice::hot(10, 1.1), std::invalid_argument);
  CHECK_THROWS_AS(Choice::hot(0, 0.5), std::invalid_argument);
  CHECK_THROWS_AS(Choice::weights({}), std::invalid_argument);
  CHECK_THROWS_AS(Choice::weights({0, 0}), std::invalid_argument);
  CHECK_THROWS_MATCHES(Choice::weights({1, -1}), std::invalid_argument,
                       Message("weight 1 must be 0 to 1048576, got -1"));
}
