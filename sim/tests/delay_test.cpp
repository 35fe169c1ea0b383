// Delays: means, quantiles and shapes against closed forms. Threading: single-threaded.
#include "sluice/sim/delay.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/sim/random.hpp"
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

double mean_of(const Delay& delay) { return static_cast<double>(delay.mean().count()) / 1'000; }

/// The statistic of a chi-square test of `draws` draws against a distribution function, in `bins`
/// bins between 0 and `high` and one above it.
template <class Cdf>
double chi_square(const Delay& delay, double high, Cdf cdf) {
  constexpr std::size_t bins = 30;
  std::vector<double> counts(bins + 1);
  SeededRng rng = stream(11, 1, 2);
  for (std::size_t i = 0; i < draws; ++i) {
    const double place = static_cast<double>(delay.sample(rng).count()) / high * bins;
    ++counts[std::min(static_cast<std::size_t>(place), bins)];
  }
  double statistic = 0;
  double below = 0;
  for (std::size_t i = 0; i <= bins; ++i) {
    const double to = i == bins ? 1 : cdf(high * static_cast<double>(i + 1) / bins);
    const double expected = (to - below) * draws;
    below = to;
    if (expected == 0 && counts[i] == 0) continue;
    statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return statistic;
}

// The 99.9 % quantile of chi-square with 30 degrees of freedom.
constexpr double chi_square_bound = 59.7;

}  // namespace

TEST_CASE("a constant delay is what it says and draws nothing") {
  SeededRng rng = stream(1, 2, 3);
  SeededRng untouched = stream(1, 2, 3);
  CHECK(Delay::constant(5ms).sample(rng) == 5ms);
  CHECK(rng.next() == untouched.next());
}

TEST_CASE("a log-normal delay has the median and the p99 that were asked for") {
  const auto values = sorted_draws(Delay::log_normal(20ms, 80ms));
  CHECK(is_near(quantile(values, 500), 20'000, 10));
  CHECK(is_near(quantile(values, 990), 80'000, 20));
  // By symmetry of the logarithm: 20 ms squared, divided by 80 ms.
  CHECK(is_near(quantile(values, 10), 5'000, 20));
  const Delay equal = Delay::log_normal(3ms, 3ms);
  CHECK(equal.min() == equal.max());
  CHECK(is_near(equal.max().count(), 3'000, 1));
}

TEST_CASE("a delay out of range is refused") {
  CHECK_THROWS_AS(Delay::constant(-1us), std::invalid_argument);
  CHECK_THROWS_AS(Delay::constant(721h), std::invalid_argument);
  CHECK_THROWS_AS(Delay::uniform(2us, 1us), std::invalid_argument);
  CHECK_THROWS_AS(Delay::exponential(0us), std::invalid_argument);
  CHECK_THROWS_AS(Delay::log_normal(0us, 1us), std::invalid_argument);
  CHECK_THROWS_AS(Delay::log_normal(2us, 1us), std::invalid_argument);
  CHECK_THROWS_AS(Delay::log_normal(1us, 65us), std::invalid_argument);
  CHECK_NOTHROW(Delay::log_normal(1us, 64us));
}

TEST_CASE("mean() is the mean of the formula") {
  const auto e = [](double m) { return 1 / (std::exp(1 / m) - 1); };  // of whole microseconds
  const auto bounded = [](double least, double alpha, double most) {
    return std::pow(least, alpha) / (1 - std::pow(least / most, alpha)) * alpha / (alpha - 1) *
           (std::pow(least, 1 - alpha) - std::pow(most, 1 - alpha));
  };
  const double month = 30.0 * 86'400 * 1e6;
  struct Case {
    const char* name;
    Delay delay;
    double mean;
  };
  const std::vector<Case> cases{
      {"constant", Delay::constant(7us), 7},
      {"uniform", Delay::uniform(1us, 4us), 2.5},
      {"exponential, 1 us", Delay::exponential(1us), e(1)},
      {"exponential, 7 us", Delay::exponential(7us), e(7)},
      {"exponential, 12 us", Delay::exponential(12us), e(12)},
      {"exponential, 1 s", Delay::exponential(1s), e(1e6)},
      {"normal", Delay::normal(20ms, 4ms), 20'000},
      {"normal, 10 us", Delay::normal(10us, 1us), 10},
      {"normal, without a deviation", Delay::normal(10us, 0us), 10},
      {"half a normal", Delay::normal(0us, 1ms), 1'000 / std::sqrt(2 * std::acos(-1.0))},
      {"gamma, 0.05", Delay::gamma(12us, 0.05), 12},
      {"gamma, 0.5", Delay::gamma(20ms, 0.5), 20'000},
      {"gamma, 1", Delay::gamma(1us, 1), 1},
      {"gamma, 2.7", Delay::gamma(20ms, 2.7), 20'000},
      {"gamma, 1000", Delay::gamma(20ms, 1'000), 20'000},
      {"Pareto, 0.1", Delay::pareto(1ms, 0.1, 1s), bounded(1'000, 0.1, 1e6)},
      {"Pareto, 1", Delay::pareto(1ms, 1, 1s), 1'000 * std::log(1'000) / (1 - 1e-3)},
      {"Pareto, 1.1", Delay::pareto(1us, 1.1), bounded(1, 1.1, month)},
      {"Pareto, 1.5", Delay::pareto(10us, 1.5, 20us), bounded(10, 1.5, 20)},
      {"Pareto, 2.5", Delay::pareto(50ms, 2.5), bounded(5e4, 2.5, month)},
      {"Pareto, 100", Delay::pareto(1ms, 100), bounded(1'000, 100, month)},
      {"Weibull, 0.2", Delay::weibull(12us, 0.2), 12 * 120},
      {"Weibull, 0.5", Delay::weibull(20ms, 0.5), 40'000},
      {"Weibull, 2", Delay::weibull(20ms, 2), 20'000 * std::tgamma(1.5)},
      {"Weibull, 100", Delay::weibull(20ms, 100), 20'000 * std::tgamma(1.01)},
      {"empirical", Delay::empirical({{0, 5ms}, {0.5, 20ms}, {0.99, 80ms}, {1, 200ms}}),
       0.5 * 12'500 + 0.49 * 50'000 + 0.01 * 140'000},
      {"empirical with steps",
       Delay::empirical({{0, 5us}, {0, 6us}, {0.5, 6us}, {0.5, 8us}, {1, 9us}, {1, 10us}}),
       0.5 * 6 + 0.5 * 8.5},
      {"mixture", Delay::mixture({{9, Delay::constant(1ms)}, {1, Delay::exponential(50ms)}}),
       0.9 * 1'000 + 0.1 * e(5e4)},
  };
  for (const Case& c : cases) {
    INFO(c.name << ": " << mean_of(c.delay) << " us, not " << c.mean << " us");
    CHECK(std::abs(mean_of(c.delay) - c.mean) <= 0.000'1 * c.mean + 0.0006);
  }
}

TEST_CASE("a million draws have the mean that mean() states, and stay within min() and max()") {
  const Delay log_normal = Delay::log_normal(20ms, 80ms);
  const std::vector<Delay> delays{
      Delay::uniform(10us, 1'010us),
      Delay::exponential(3us),
      Delay::log_normal(1us, 64us),
      Delay::log_normal(5us, 6us),
      Delay::log_normal(12us, 12us),
      log_normal,
      Delay::normal(3us, 2us),
      Delay::gamma(12us, 0.5),
      Delay::gamma(20ms, 30),
      Delay::pareto(5us, 3),
      Delay::weibull(2us, 0.8),
      Delay::empirical({{0, 1us}, {0.3, 2us}, {0.3, 4us}, {1, 1s}}),
      Delay::mixture({{0.25, log_normal}, {0.75, Delay::uniform(1us, 2us)}}),
      // Nested, with parts that have no weight, and do not count in min() and max().
      Delay::mixture({{0, Delay::constant(9s)},
                      {3, Delay::constant(1us)},
                      {1, Delay::mixture({{1, Delay::constant(2us)}, {1, Delay::constant(3us)}})},
                      {0, Delay::constant(0us)}}),
  };
  constexpr std::size_t count = 1'000'000;
  for (std::size_t i = 0; i < delays.size(); ++i) {
    SeededRng rng = stream(5, i, 1);
    double sum = 0;
    double squares = 0;
    Span least = delays[i].max();
    Span most = delays[i].min();
    for (std::size_t n = 0; n < count; ++n) {
      const Span draw = delays[i].sample(rng);
      least = std::min(least, draw);
      most = std::max(most, draw);
      sum += static_cast<double>(draw.count());
      squares += static_cast<double>(draw.count()) * static_cast<double>(draw.count());
    }
    const double average = sum / count;
    const double error = std::sqrt(std::max(0.0, squares / count - average * average) / count);
    INFO("delay " << i << ": " << average << " +- " << error << ", mean() " << mean_of(delays[i]));
    CHECK(std::abs(average - mean_of(delays[i])) <= 3.5 * error + 0.001);
    CHECK(least >= delays[i].min());
    CHECK(most <= delays[i].max());
    const bool reaches_both = i == 0 || i + 1 == delays.size();
    if (reaches_both) CHECK((least == delays[i].min() && most == delays[i].max()));
  }
}

TEST_CASE("draws have the distribution function of the formula") {
  CHECK(chi_square(Delay::uniform(0us, 2999us), 3'000, [](double x) { return x / 3'000; }) <
        chi_square_bound);
  CHECK(chi_square(Delay::exponential(1s), 6e6, [](double x) { return 1 - std::exp(-x / 1e6); }) <
        chi_square_bound);
  CHECK(chi_square(Delay::normal(50ms, 10ms), 90'000, [](double x) {
          return std::erfc((5e4 - x) / 1e4 / std::sqrt(2.0)) / 2;
        }) < chi_square_bound);
  CHECK(chi_square(Delay::gamma(2s, 2), 8e6, [](double x) {
          return 1 - std::exp(-x / 1e6) * (1 + x / 1e6);
        }) < chi_square_bound);
  CHECK(chi_square(Delay::gamma(500ms, 0.5), 4e6,
                   [](double x) { return std::erf(std::sqrt(x / 1e6)); }) < chi_square_bound);
  CHECK(chi_square(Delay::pareto(100ms, 1.5, 10s), 1e6, [](double x) {
          const double q = 1e-3;
          return x < 1e5 ? 0 : 1 - (std::pow(1e5 / x, 1.5) - q) / (1 - q);
        }) < chi_square_bound);
  CHECK(chi_square(Delay::weibull(1s, 0.7), 6e6, [](double x) {
          return 1 - std::exp(-std::pow(x / 1e6, 0.7));
        }) < chi_square_bound);
  CHECK(chi_square(Delay::empirical({{0, 0us}, {0.5, 1s}, {0.9, 3s}, {1, 3s}}), 4e6, [](double x) {
          return x < 1e6 ? x / 2e6 : x < 3e6 ? 0.5 + (x - 1e6) / 5e6 : 1;
        }) < chi_square_bound);
}

TEST_CASE("quantiles deep in the tails are those of the formula") {
  // The draws that are the quantiles of P(X > x) = 2^-20 and P(X < x) = 2^-20.
  struct Fixed final : Rng {
    explicit Fixed(std::uint64_t draw) : value(draw) {}
    std::uint64_t next() override { return value; }
    std::uint64_t value;
  };
  Fixed upper(std::uint64_t{1} << 63 | std::uint64_t{1} << 44);
  Fixed lower(std::uint64_t{1} << 44);
  CHECK(is_near(Delay::normal(100s, 10s).sample(upper).count(), 147'630'090, 1));
  CHECK(is_near(Delay::normal(100s, 10s).sample(lower).count(), 52'369'910, 1));
  CHECK(is_near(Delay::exponential(1s).sample(lower).count(), 13'862'944, 1));
  CHECK(is_near(Delay::gamma(1s, 1).sample(upper).count(), 13'862'944, 1));
  CHECK(is_near(Delay::gamma(1s, 0.5).sample(upper).count(), 23'990'000, 3));
  CHECK(is_near(Delay::pareto(1ms, 1).sample(upper).count(), 1'048'171'000, 1));
  CHECK(is_near(Delay::weibull(1s, 0.5).sample(upper).count(), 192'181'200, 1));
  CHECK(is_near(Delay::weibull(1000s, 2).sample(lower).count(), 976'562, 1));
  CHECK(is_near(Delay::gamma(1000s, 2).sample(lower).count(), 690'854, 1));
}

TEST_CASE("delays of the tables stay within what they state, at the extremes") {
  struct Extreme final : Rng {
    explicit Extreme(std::uint64_t draw) : value(draw) {}
    std::uint64_t next() override { return value; }
    std::uint64_t value;
  };
  for (const Delay& delay :
       {Delay::normal(720h, 720h), Delay::normal(0us, 0us), Delay::gamma(720h, 0.05),
        Delay::gamma(1us, 1'000), Delay::pareto(1us, 0.1), Delay::pareto(1us, 100),
        Delay::pareto(720h - 1us, 100), Delay::weibull(720h, 0.1), Delay::weibull(1us, 100),
        Delay::empirical({{0, 0us}, {1, 720h}}),
        Delay::empirical({{0, 1us}, {1, 1us}, {1, 5us}})}) {
    CHECK(delay.min() >= 0us);
    CHECK(delay.max() <= Delay::longest_draw);
    for (const std::uint64_t p :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{63}, std::uint64_t{64},
          std::uint64_t{1} << 30, (std::uint64_t{1} << 63) - 1}) {
      Extreme low(p);
      CHECK(delay.sample(low) >= delay.min());
      CHECK(delay.sample(low) <= delay.max());
      Extreme high(~p);
      CHECK(delay.sample(high) >= delay.min());
      CHECK(delay.sample(high) <= delay.max());
    }
    CHECK(delay.mean() >= delay.min());
    CHECK(delay.mean() <= delay.max());
  }
}

TEST_CASE("the parameters of a delay are checked, and the message has value and range") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(Delay::gamma(1s, 0), "its shape must be 0.05 to 1000, got 0");
  CHECK_THROWS_WITH(Delay::gamma(0s, 1),
                    "the mean of a gamma delay must be 1 us to 30 days, got 0 us");
  CHECK_THROWS_AS(Delay::gamma(1s, nan), std::invalid_argument);
  CHECK_THROWS_AS(Delay::gamma(1s, 1'000.1), std::invalid_argument);
  CHECK_THROWS_AS(Delay::normal(-1us, 1us), std::invalid_argument);
  CHECK_THROWS_AS(Delay::normal(1us, -1us), std::invalid_argument);
  CHECK_THROWS_AS(Delay::normal(1us, 721h), std::invalid_argument);
  CHECK_THROWS_WITH(Delay::pareto(1ms, 0.05), "its alpha must be 0.1 to 100, got 0.05");
  CHECK_THROWS_AS(Delay::pareto(0us, 1), std::invalid_argument);
  CHECK_THROWS_WITH(Delay::pareto(1ms, 1, 1ms),
                    "its bound must be 1001 us to 30 days, got 1000 us");
  CHECK_THROWS_AS(Delay::weibull(0us, 1), std::invalid_argument);
  CHECK_THROWS_AS(Delay::weibull(1s, std::numeric_limits<double>::infinity()),
                  std::invalid_argument);
  CHECK_THROWS_AS(Delay::empirical({}), std::invalid_argument);
  CHECK_THROWS_AS(Delay::empirical({{1, 1s}}), std::invalid_argument);
  CHECK_THROWS_AS(Delay::empirical({{0.5, 1s}, {1, 2s}}), std::invalid_argument);
  CHECK_THROWS_AS(Delay::empirical({{0, 1s}, {0.9, 2s}}), std::invalid_argument);
  CHECK_THROWS_AS(Delay::empirical({{0, -1us}, {1, 2s}}), std::invalid_argument);
  CHECK_THROWS_WITH(Delay::empirical({{0, 1s}, {0.9, 2s}, {0.8, 3s}, {1, 4s}}),
                    "the share of point 3 must be 0.9 to 1, got 0.8");
  CHECK_THROWS_WITH(Delay::empirical({{0, 1s}, {0.5, 3s}, {1, 2s}}),
                    "the delay of point 3 must be 3000000 us to 30 days, got 2000000 us");
  CHECK_THROWS_AS(Delay::empirical({{0, 1s}, {nan, 2s}, {1, 2s}}), std::invalid_argument);
  CHECK_THROWS_AS(Delay::mixture({}), std::invalid_argument);
  CHECK_THROWS_WITH(Delay::mixture({{0, Delay::constant(1s)}}),
                    "the sum of the weights must be positive, got 0");
  CHECK_THROWS_WITH(Delay::mixture({{1, Delay::constant(1s)}, {-1, Delay::constant(1s)}}),
                    "the weight of part 2 must be 0 to 1048576, got -1");
  CHECK_THROWS_WITH(Delay::phases(Delay::constant(1ms), 1s, Delay::constant(2ms), 1us),
                    "the mean time of the slow delay must be 1000 us to 30 days, got 1 us");
  CHECK_THROWS_WITH(Delay::runs(Delay::constant(1ms), 0.5, Delay::constant(2ms), 1),
                    "the mean run of the fast delay must be 1 to 1048576, got 0.5");
  CHECK_THROWS_AS(Delay::runs(Delay::constant(1ms), 1, Delay::constant(2ms), nan),
                  std::invalid_argument);
  const Delay state = Delay::runs(Delay::constant(1ms), 1, Delay::constant(2ms), 1);
  CHECK_THROWS_WITH(Delay::phases(Delay::constant(1ms), 1s, state, 1s),
                    "the delay of a state cannot be one of phases() or runs(), whose "
                    "states would be lost");
  CHECK_THROWS_WITH(Delay::mixture({{1, Delay::constant(1s)}, {1, state}}),
                    "part 2 of a mixture cannot be one of phases() or runs(), whose "
                    "states would be lost");
}

namespace {

/// Slow a fifth of the time, for 2 s in the mean.
Delay slow_phases() {
  return Delay::phases(Delay::uniform(5ms, 15ms), 8s, Delay::exponential(100ms), 2s);
}
/// Slow a fifth of the draws, for 10 in the mean.
Delay slow_runs() {
  return Delay::runs(Delay::uniform(5ms, 15ms), 40, Delay::exponential(100ms), 10);
}
/// Draws at these distances.
std::vector<Word> draws_in_turn(const Delay& delay, std::size_t count, Span gap,
                                std::uint64_t seed = 1) {
  DelayProcess process(delay, stream(seed, 1, 1));
  SeededRng rng = stream(seed, 1, 2);
  std::vector<Word> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(process.sample(Time{gap * static_cast<Word>(i)}, rng).count());
  }
  return values;
}

/// How many of the draws `lag` after a slow one (1) are slow, of all.
double slow_after_slow(const std::vector<Word>& states, std::size_t lag) {
  double slow = 0;
  double both = 0;
  for (std::size_t i = 0; i + lag < states.size(); ++i) {
    slow += static_cast<double>(states[i]);
    both += static_cast<double>(states[i] * states[i + lag]);
  }
  return both / slow;
}

}  // namespace

TEST_CASE("delays with states have the mean that mean() states, with memory and without") {
  for (const Delay& delay : {slow_phases(), slow_runs()}) {
    CAPTURE(delay.min());
    CHECK(mean_of(delay) == Approx(0.8 * 10'000 + 0.2 * 100'000).epsilon(0.001));
    CHECK(delay.min() == 0us);
    CHECK(delay.max() == Delay::exponential(100ms).max());
    CHECK(delay.has_state());
    // Standard deviations of 0.5 %, and of 0.1 % without memory.
    CHECK(is_near(mean(draws_in_turn(delay, 2'000'000, 500ms)), 28'000, 20));
    CHECK(is_near(mean(sorted_draws(delay)), 28'000, 10));
  }
  CHECK_FALSE(Delay::constant(1ms).has_state());
}

TEST_CASE("the state of a delay persists for a time") {
  const Delay states = Delay::phases(Delay::constant(0us), 8s, Delay::constant(1us), 2s);
  const auto drawn = draws_in_turn(states, 2'000'000, 500ms);
  // The chance to be slow t after it was: q + (1 - q) exp(-r t), r = 1 / 8 + 1 / 2.
  for (const std::size_t lag : {1U, 2U, 4U, 8U, 40U}) {
    CAPTURE(lag);
    const double t = static_cast<double>(lag) / 2;
    CHECK(slow_after_slow(drawn, lag) ==
          Approx(0.2 + 0.8 * std::exp(-(1.0 / 8 + 1.0 / 2) * t)).margin(0.015));
  }
}

TEST_CASE("the state of a delay persists from draw to draw") {
  const Delay states = Delay::runs(Delay::constant(0us), 40, Delay::constant(1us), 10);
  const auto drawn = draws_in_turn(states, 2'000'000, 0us);
  double runs = 0;
  double slow = 0;
  for (std::size_t i = 1; i < drawn.size(); ++i) {
    slow += static_cast<double>(drawn[i]);
    if (drawn[i] == 1 && drawn[i - 1] == 0) ++runs;
  }
  CHECK(slow / static_cast<double>(drawn.size()) == Approx(0.2).margin(0.006));
  CHECK(slow / runs == Approx(10).margin(0.2));
  for (const std::size_t lag : {1U, 5U, 20U}) {
    CAPTURE(lag);
    CHECK(slow_after_slow(drawn, lag) ==
          Approx(0.2 + 0.8 * std::pow(1 - 1.0 / 40 - 1.0 / 10, lag)).margin(0.015));
  }
  const auto always =
      draws_in_turn(Delay::runs(Delay::constant(0us), 1, Delay::constant(1us), 1), 1'000, 0us);
  for (std::size_t i = 1; i < always.size(); ++i) REQUIRE(always[i] != always[i - 1]);
}

TEST_CASE("a state after a long silence is a new one, at no cost") {
  const Delay states = Delay::phases(Delay::constant(0us), 4ms, Delay::constant(1us), 1ms);
  const auto drawn = draws_in_turn(states, 20'000, 24h);
  CHECK(static_cast<double>(std::count(drawn.begin(), drawn.end(), 1)) ==
        Approx(4'000).margin(230));  // 4 standard deviations
  CHECK(slow_after_slow(drawn, 1) == Approx(0.2).margin(0.03));
}

TEST_CASE("states are drawn apart: delays without them are those of sample()") {
  const Delay delay = Delay::gamma(20ms, 2);
  DelayProcess process(delay, stream(1, 1, 1));
  SeededRng rng = stream(1, 2, 3);
  SeededRng same = stream(1, 2, 3);
  for (Word i = 0; i < 1'000; ++i) {
    REQUIRE(process.sample(Time{Span{i}}, rng) == delay.sample(same));
  }
  // And the states do not depend on what the delays in them draw.
  const Delay constant = Delay::phases(Delay::constant(1s), 8s, Delay::constant(2s), 2s);
  const Delay drawing = Delay::phases(Delay::uniform(0us, 1s), 8s, Delay::uniform(1001ms, 2s), 2s);
  const auto a = draws_in_turn(constant, 10'000, 500ms);
  const auto b = draws_in_turn(drawing, 10'000, 500ms);
  for (std::size_t i = 0; i < a.size(); ++i) REQUIRE((a[i] > 1'000'000) == (b[i] > 1'000'000));
}
