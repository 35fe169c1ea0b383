// Streams, choices (shares against the formulas, draws against the shares), the histogram and the
// trace hash. Threading: single-threaded.
#include "sluice/sim/choice.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "sim/tests/pinned_models.hpp"
#include "sluice/sim/histogram.hpp"
#include "sluice/sim/random.hpp"
#include "sluice/sim/trace.hpp"
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
  CHECK_THROWS_WITH(Choice::uniform(0), "the number of choices must be 1 to 16777216, got 0");
  CHECK_THROWS_AS(Choice::uniform(Choice::largest + 1), std::invalid_argument);
  CHECK_THROWS_AS(Choice::zipf(0, 1), std::invalid_argument);
  CHECK_THROWS_AS(Choice::zipf(10, -0.1), std::invalid_argument);
  CHECK_THROWS_WITH(Choice::zipf(10, 21), "the exponent of Zipf's law must be 0 to 20, got 21");
  CHECK_THROWS_AS(Choice::zipf(10, std::numeric_limits<double>::quiet_NaN()),
                  std::invalid_argument);
  CHECK_THROWS_AS(Choice::hot(10, 1.1), std::invalid_argument);
  CHECK_THROWS_AS(Choice::hot(0, 0.5), std::invalid_argument);
  CHECK_THROWS_AS(Choice::weights({}), std::invalid_argument);
  CHECK_THROWS_AS(Choice::weights({0, 0}), std::invalid_argument);
  CHECK_THROWS_WITH(Choice::weights({1, -1}), "weight 1 must be 0 to 1048576, got -1");
}

TEST_CASE("a stream depends on seed, entity and purpose, each by itself") {
  std::vector<std::uint64_t> firsts;
  for (const std::uint64_t seed : {0U, 1U, 2U}) {
    for (const std::uint64_t entity : {0U, 1U, 2U}) {
      for (const std::uint64_t purpose : {0U, 1U, 2U}) {
        firsts.push_back(stream(seed, entity, purpose).next());
        CHECK(stream(seed, entity, purpose).next() == firsts.back());
      }
    }
  }
  std::sort(firsts.begin(), firsts.end());
  CHECK(std::adjacent_find(firsts.begin(), firsts.end()) == firsts.end());
}

TEST_CASE("a histogram's quantile is at most 1/64 above the exact one and never below it") {
  SeededRng rng = stream(3, 0, 0);
  Histogram histogram;
  std::vector<Word> values;
  for (int i = 0; i < 10'000; ++i) {
    values.push_back(static_cast<Word>(rng.next() >> (12 + rng.below(50))));
    histogram.add(Span{values.back()});
  }
  std::sort(values.begin(), values.end());
  for (const std::size_t parts : {1U, 10U, 50U, 90U, 99U, 100U}) {
    const Word exact = values[values.size() * parts / 100 - 1];
    const Word given = histogram.quantile(parts, 100).count();
    CHECK(given >= exact);
    CHECK(given - exact <= exact / 64);
    CHECK(given <= values.back());
  }
  CHECK(histogram.max().count() == values.back());
  CHECK(histogram.count() == values.size());
  CHECK(Histogram().quantile(1, 2) == Span{0});
}

TEST_CASE("a trace hash tells a changed, a missing and a swapped event") {
  const auto hash = [](std::vector<std::array<std::uint64_t, 4>> events) {
    TraceHash trace;
    for (const auto& e : events) {
      trace.fold(to_time(static_cast<Word>(e[0])), static_cast<std::uint32_t>(e[1]),
                 static_cast<std::uint32_t>(e[2]), e[3]);
    }
    return trace.value();
  };
  const auto original = hash({{1, 2, 3, 4}, {5, 6, 7, 8}});
  CHECK(hash({{1, 2, 3, 4}, {5, 6, 7, 8}}) == original);
  CHECK(hash({{1, 2, 3, 5}, {5, 6, 7, 8}}) != original);
  CHECK(hash({{1, 2, 4, 4}, {5, 6, 7, 8}}) != original);
  CHECK(hash({{1, 3, 3, 4}, {5, 6, 7, 8}}) != original);
  CHECK(hash({{2, 2, 3, 4}, {5, 6, 7, 8}}) != original);
  CHECK(hash({{1, 2, 3, 4}}) != original);
  CHECK(hash({{5, 6, 7, 8}, {1, 2, 3, 4}}) != original);
}

// sim_trace has it from other compilers.
TEST_CASE("the draws of every model are those they have always been") {
  CHECK(test::trace_of_models() == test::pinned_models);
}
