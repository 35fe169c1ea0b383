// Streams, delays and the histogram: moments and quantiles against what they must be.
// Threading: single-threaded.
#include "sluice/sim/random.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "sluice/sim/histogram.hpp"
#include "sluice/sim/trace.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t draws = 200'000;

std::vector<Word> sorted_draws(const Delay& delay) {
  SeededRng rng = stream(7, 1, 2);
  std::vector<Word> values(draws);
  for (Word& value : values) value = delay.sample(rng).count();
  std::sort(values.begin(), values.end());
  return values;
}

Word mean(const std::vector<Word>& values) {
  Word sum = 0;
  for (const Word value : values) sum += value;
  return sum / static_cast<Word>(values.size());
}

Word quantile(const std::vector<Word>& sorted, std::size_t per_thousand) {
  return sorted[sorted.size() * per_thousand / 1'000];
}

/// Whether `value` is within `per_thousand` of `expected`.
bool is_near(Word value, Word expected, Word per_thousand) {
  return std::abs(value - expected) * 1'000 <= expected * per_thousand;
}

}  // namespace

TEST_CASE("a constant delay is what it says and draws nothing") {
  SeededRng rng = stream(1, 2, 3);
  SeededRng untouched = stream(1, 2, 3);
  CHECK(Delay::constant(5ms).sample(rng) == 5ms);
  CHECK(rng.next() == untouched.next());
}

TEST_CASE("a uniform delay reaches both ends and has their mean") {
  const auto values = sorted_draws(Delay::uniform(10us, 1'010us));
  CHECK(values.front() == 10);
  CHECK(values.back() == 1'010);
  CHECK(is_near(mean(values), 510, 5));
}

TEST_CASE("an exponential delay has its mean, its median and its tail") {
  const auto values = sorted_draws(Delay::exponential(1s));
  CHECK(is_near(mean(values), 1'000'000, 8));
  CHECK(is_near(quantile(values, 500), 693'147, 10));
  CHECK(is_near(quantile(values, 990), 4'605'170, 20));
  CHECK(values.front() >= 0);
}

TEST_CASE("a log-normal delay has the median and the p99 that were asked for") {
  const auto values = sorted_draws(Delay::log_normal(20ms, 80ms));
  CHECK(is_near(quantile(values, 500), 20'000, 10));
  CHECK(is_near(quantile(values, 990), 80'000, 20));
  // By symmetry of the logarithm: 20 ms squared, divided by 80 ms.
  CHECK(is_near(quantile(values, 10), 5'000, 20));
  CHECK(values.front() >= Delay::log_normal(20ms, 80ms).min().count());
  CHECK(values.back() <= Delay::log_normal(20ms, 80ms).max().count());
}

TEST_CASE("a log-normal delay with p99 = p50 is constant") {
  const Delay delay = Delay::log_normal(3ms, 3ms);
  CHECK(delay.min() == delay.max());
  CHECK(is_near(delay.max().count(), 3'000, 1));
}

TEST_CASE("delays are the same integers on every compiler") {
  SeededRng rng = stream(42, 7, 1);
  const Delay exponential = Delay::exponential(1s);
  const Delay log_normal = Delay::log_normal(20ms, 80ms);
  std::vector<Word> values;
  for (int i = 0; i < 3; ++i) values.push_back(exponential.sample(rng).count());
  for (int i = 0; i < 3; ++i) values.push_back(log_normal.sample(rng).count());
  CHECK(values == std::vector<Word>{753'452, 568'099, 304'586, 12'798, 16'948, 11'913});
}

TEST_CASE("a delay out of range is refused with the range") {
  CHECK_THROWS_AS(Delay::constant(-1us), std::invalid_argument);
  CHECK_THROWS_AS(Delay::constant(721h), std::invalid_argument);
  CHECK_THROWS_AS(Delay::uniform(2us, 1us), std::invalid_argument);
  CHECK_THROWS_AS(Delay::exponential(0us), std::invalid_argument);
  CHECK_THROWS_AS(Delay::log_normal(0us, 1us), std::invalid_argument);
  CHECK_THROWS_AS(Delay::log_normal(2us, 1us), std::invalid_argument);
  CHECK_THROWS_AS(Delay::log_normal(1us, 65us), std::invalid_argument);
  CHECK_NOTHROW(Delay::log_normal(1us, 64us));
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
