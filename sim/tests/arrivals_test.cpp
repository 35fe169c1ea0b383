// Arrivals: exact ones to the microsecond, random ones by counts and gaps. Threading:
// single-threaded.
#include "sluice/sim/arrivals.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "sluice/sim/random.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace std::chrono_literals;

namespace {

std::vector<Word> first_calls(const Arrivals& arrivals, std::size_t count, std::uint64_t seed = 1) {
  ArrivalProcess process(arrivals, stream(seed, 2, 3));
  std::vector<Word> calls;
  while (calls.size() < count) {
    const auto next = process.next();
    if (!next) break;
    calls.push_back(next->count());
  }
  return calls;
}

/// The calls before `end`. Requires that their times ascend.
std::vector<Word> calls_until(const Arrivals& arrivals, Span end, std::uint64_t seed = 1) {
  ArrivalProcess process(arrivals, stream(seed, 2, 3));
  std::vector<Word> calls;
  Word last = 0;
  for (auto next = process.next(); next && *next < end; next = process.next()) {
    REQUIRE(next->count() >= last);
    calls.push_back(last = next->count());
  }
  return calls;
}

double count_between(const std::vector<Word>& calls, Span from, Span to) {
  const auto begin = std::lower_bound(calls.begin(), calls.end(), from.count());
  return static_cast<double>(std::lower_bound(begin, calls.end(), to.count()) - begin);
}

/// Compares the calls in each of `bins` equal parts of `end` with what is expected there: the
/// chi-square statistic in terms of its standard deviation above its mean.
double excess(const std::vector<Word>& calls, const Arrivals& arrivals, Span end, Word bins) {
  double statistic = 0;
  for (Word i = 0; i < bins; ++i) {
    const Span from = end * i / bins;
    const Span to = end * (i + 1) / bins;
    const double expected = arrivals.expected(to) - arrivals.expected(from);
    const double difference = count_between(calls, from, to) - expected;
    if (expected == 0) {
      REQUIRE(difference == 0);
      continue;
    }
    statistic += difference * difference / expected;
  }
  const auto degrees = static_cast<double>(bins);
  return (statistic - degrees) / std::sqrt(2 * degrees);
}

std::vector<Word> merged(std::vector<Word> a, const std::vector<Word>& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end());
  return a;
}

}  // namespace

TEST_CASE("constant arrivals are exact for ever, whatever the rate") {
  CHECK(first_calls(Arrivals::constant({3, 1s}), 4) ==
        std::vector<Word>{333'333, 666'666, 1'000'000, 1'333'333});
  CHECK(first_calls(Arrivals::constant({1, 1us}), 3) == std::vector<Word>{1, 2, 3});
  CHECK(first_calls(Arrivals::constant({5, 2us}), 6) == std::vector<Word>{0, 0, 1, 1, 2, 2});
  CHECK(first_calls(Arrivals::constant({0, 1s}), 3).empty());
  const Arrivals arrivals = Arrivals::constant({9'000, 1s});
  const auto calls = calls_until(arrivals, 100s);
  CHECK(calls.size() == 9'000 * 100 - 1);  // the last comes at 100 s
  CHECK(arrivals.expected(100s) == 899'999);
  CHECK(arrivals.expected(100s + 1us) == 900'000);
  CHECK(arrivals.mean_rate() == Approx(9'000));
  CHECK(arrivals.peak() == Approx(9'000));
}

namespace {

/// Phases of 2 s at 30/s and of 6 s at 2/s.
Arrivals bursty(std::uint64_t phases = 1) {
  return Arrivals::mmpp({{30, 1s}, 2s}, {{2, 1s}, 6s}, stream(phases, 0, 9));
}

struct Moments {
  double mean = 0;
  double variance = 0;
};

/// Of the numbers of calls in windows of `window`.
Moments moments_of(const std::vector<Word>& calls, Span end, Span window) {
  Moments m;
  double squares = 0;
  const auto windows = static_cast<double>(end / window);
  for (Span at{0}; at < end; at += window) {
    const double count = count_between(calls, at, at + window);
    m.mean += count / windows;
    squares += count * count / windows;
  }
  m.variance = squares - m.mean * m.mean;
  return m;
}

/// Fischer, Meier-Hellstern, "The Markov-modulated Poisson process cookbook" (1992): of bursty() in
/// t seconds, 9 t + 2 q (1 - q) 28^2 (t / r - (1 - exp(-r t)) / r^2), q = 2 / 8, r = 1 / 2 + 1 / 6.
double bursty_variance(double t) {
  const double r = 1.0 / 2 + 1.0 / 6;
  return 9 * t + 2 * 0.25 * 0.75 * 28 * 28 * (t / r - (1 - std::exp(-r * t)) / (r * r));
}

}  // namespace

TEST_CASE("Markov-modulated arrivals have the mean and the variance that are stated") {
  const Span end = 400'000s;
  const Arrivals arrivals = bursty();
  CHECK(arrivals.mean_rate() == Approx(9));
  CHECK(arrivals.expected(100s) == Approx(900));
  CHECK(arrivals.peak() == Approx(30));
  const auto calls = calls_until(arrivals, end);
  for (const Span window : {1s, 8s, 80s}) {
    CAPTURE(window.count());
    const Moments found = moments_of(calls, end, window);
    const double t = static_cast<double>(window.count()) / 1e6;
    // Standard deviations of the mean: 0.08; of the variance: 1.5 % in the longest windows.
    CHECK(found.mean / t == Approx(9).margin(0.3));
    CHECK(found.variance == Approx(bursty_variance(t)).epsilon(0.06));
  }
}

TEST_CASE("the parts of Markov-modulated arrivals change phase together") {
  const Span end = 100'000s;
  const auto a = calls_until(bursty().part(0, 2), end, 5);
  const auto b = calls_until(bursty().part(1, 2), end, 6);
  const auto with = merged(a, b);
  const auto without = merged(a, calls_until(bursty(2).part(1, 2), end, 6));
  CHECK(moments_of(with, end, 8s).variance == Approx(bursty_variance(8)).epsilon(0.1));
  // Half of the variance of the rates is gone if the phases of both are independent.
  CHECK(moments_of(without, end, 8s).variance < 0.65 * bursty_variance(8));
  CHECK(moments_of(with, end, 8s).mean == Approx(72).margin(4));
  CHECK(bursty().part(0, 2).mean_rate() == Approx(4.5));
  CHECK(bursty().scaled(3, 1).mean_rate() == Approx(27));
}

TEST_CASE("Markov-modulated arrivals begin in either phase, as often as it lasts") {
  int busy = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    const Arrivals arrivals = Arrivals::mmpp({{1, 1us}, 1s}, {{0, 1s}, 3s}, stream(seed, 0, 9));
    if (first_calls(arrivals, 1).at(0) < 1000) ++busy;
  }
  CHECK(busy == Approx(1000).margin(110));  // 4 standard deviations
}

TEST_CASE("arrivals look for no call after the time that was given") {
  // Short phases and rare calls: without an end, the first call is years and 10^11 phases away.
  const Arrivals rare = Arrivals::mmpp({{1, 365 * 24h}, 1ms}, {{0, 1s}, 1ms}, stream(1, 0, 9));
  ArrivalProcess process(rare, stream(1, 2, 3), 60s);
  CHECK_FALSE(process.next());
  CHECK_FALSE(process.next());
  const Arrivals all[] = {Arrivals::constant({1, 1s}), Arrivals::poisson({1'000, 1s}),
                          Arrivals::trace({1s, 5s, 61s, 62s}), bursty()};
  for (const Arrivals& arrivals : all) {
    ArrivalProcess unbounded(arrivals, stream(1, 2, 3));
    ArrivalProcess bounded(arrivals, stream(1, 2, 3), 60s);
    for (auto next = unbounded.next(); next && *next <= 60s; next = unbounded.next()) {
      REQUIRE(bounded.next() == next);
    }
    CHECK_FALSE(bounded.next());
  }
}

TEST_CASE("arrivals end with the last representable time") {
  const Arrivals rare = Arrivals::constant({1, 365 * 24h});
  const auto calls = first_calls(rare, 1'000);
  CHECK(calls.size() == 142);
  CHECK(calls.back() <= word_limit);
  CHECK(first_calls(Arrivals::poisson({1, 365 * 24h}), 1'000).size() < 300);
  CHECK(first_calls(Arrivals::poisson({0, 1s}), 1).empty());
}

TEST_CASE("parts of constant arrivals and of a trace are together the whole") {
  std::vector<Span> offsets;
  for (int i = 0; i < 20; ++i) offsets.emplace_back(i * i);
  for (const Arrivals& whole : {Arrivals::constant({7, 10us}), Arrivals::trace(offsets)}) {
    const auto all = calls_until(whole, 300us);
    for (const std::uint32_t of : {1U, 2U, 3U, 50U}) {
      std::vector<Word> together;
      double expected = 0;
      for (std::uint32_t i = 0; i < of; ++i) {
        const auto calls = calls_until(whole.part(i, of), 300us);
        CHECK(static_cast<double>(calls.size()) == whole.part(i, of).expected(300us));
        expected += whole.part(i, of).expected(300us);
        together = merged(together, calls);
      }
      CHECK(together == all);
      CHECK(expected == whole.expected(300us));
    }
    CHECK(calls_until(whole.part(1, 2).part(2, 3), 300us) == calls_until(whole.part(5, 6), 300us));
  }
}

TEST_CASE("Poisson arrivals have exponential gaps, whose rounding does not accumulate") {
  const Arrivals arrivals = Arrivals::poisson({9'000, 1s});  // 111.1 us apart
  const auto calls = calls_until(arrivals, 60s);
  CHECK(std::abs(static_cast<double>(calls.size()) - 540'000) < 3.5 * std::sqrt(540'000.0));
  CHECK(excess(calls, arrivals, 60s, 300) < 3.5);
  constexpr std::size_t bins = 20;
  std::vector<double> gaps(bins + 1);
  for (std::size_t i = 1; i < calls.size(); ++i) {
    ++gaps[std::min(static_cast<std::size_t>(calls[i] - calls[i - 1]) / 40, bins)];
  }
  double statistic = 0;
  const auto total = static_cast<double>(calls.size() - 1);
  // P(gap < 40 k) for a gap between the whole microseconds of two calls: between 40 k - 1/2 and
  // 40 k + 1/2 it is the average, which is the value at 40 k - 1/2 to 10^-5.
  const auto cdf = [](std::size_t k) {
    return k == 0 ? 0 : 1 - std::exp(-(40.0 * static_cast<double>(k) - 0.5) * 0.009);
  };
  for (std::size_t k = 0; k <= bins; ++k) {
    const double expected = ((k == bins ? 1 : cdf(k + 1)) - cdf(k)) * total;
    statistic += (gaps[k] - expected) * (gaps[k] - expected) / expected;
  }
  CHECK(statistic < 45.3);  // the 99.9 % quantile of chi-square with 20 degrees of freedom
}

TEST_CASE("two workers with a part of the rate each are together the whole") {
  const Arrivals whole = Arrivals::on_off({4'000, 1s}, {500, 1s}, 3s);
  const auto calls =
      merged(calls_until(whole.scaled(1, 4), 60s, 1), calls_until(whole.scaled(3, 4), 60s, 2));
  CHECK(excess(calls, whole, 60s, 400) < 3.5);
  const auto halves =
      merged(calls_until(whole.part(0, 2), 60s, 1), calls_until(whole.part(1, 2), 60s, 2));
  CHECK(excess(halves, whole, 60s, 400) < 3.5);
  CHECK(whole.scaled(1, 4).mean_rate() + whole.scaled(3, 4).mean_rate() ==
        Approx(whole.mean_rate()));
}

TEST_CASE("a pattern whose calls are rarer than its phases does not walk through them all") {
  const Arrivals rare = Arrivals::on_off({1, 24h}, {0, 24h}, 1us);
  const auto calls = first_calls(rare, 2'000);
  REQUIRE(calls.size() == 2'000);
  CHECK(std::abs(static_cast<double>(calls.back()) / (2'000 * 2 * 86'400e6) - 1) < 0.08);
  CHECK(std::all_of(calls.begin(), calls.end(), [](Word at) { return at % 2 == 0; }));
  CHECK(first_calls(Arrivals::on_off({0, 1s}, {0, 1s}, 1us), 1).empty());
  CHECK(first_calls(Arrivals::on_off({1, 365 * 24h}, {0, 1s}, 1us), 1'000).size() < 200);
}

TEST_CASE("calls follow the rates of on/off, diurnal and spike, whose integrals are those stated") {
  const double pi = std::acos(-1.0);
  const auto sine = [&](double t) {  // its integral
    return 1'000 * (t + 0.8 * 100 / (2 * pi) * (1 - std::cos(2 * pi * t / 100)));
  };
  const struct {
    Arrivals arrivals;
    Span end;
    Word bins;
    double mean, peak;
    std::vector<std::pair<Span, double>> expected;
  } rows[] = {{Arrivals::on_off({10'000, 1s}, {0, 1s}, 10ms),
               10s,
               1'000,
               5'000,
               10'000,
               {{15ms, 100}, {10s + 5ms, 50'050}}},
              {Arrivals::diurnal({1'000, 1s}, 0.8, 100s),
               200s,
               576,
               1'000,
               1'800,
               {{1s, sine(1)},
                {10s, sine(10)},
                {25s, sine(25)},
                {50s, sine(50)},
                {75s, sine(75)},
                {99s, sine(99)},
                {100s, sine(100)}}},
              {Arrivals::spike({2'000, 1s}, 10, 10s, 5s),
               20s,
               200,
               2'000,
               20'000,
               {{10s, 20'000}, {15s, 120'000}, {20s, 130'000}}}};
  for (const auto& row : rows) {
    CAPTURE(row.bins);
    for (const auto& [length, calls] : row.expected) {
      CHECK(row.arrivals.expected(length) == Approx(calls).epsilon(0.001));
    }
    CHECK(row.arrivals.mean_rate() == Approx(row.mean).epsilon(1e-5));
    CHECK(row.arrivals.peak() == Approx(row.peak).epsilon(0.001));
    CHECK(excess(calls_until(row.arrivals, row.end), row.arrivals, row.end, row.bins) < 3.5);
  }
  const auto calls = calls_until(rows[0].arrivals, 10s);  // to the microsecond
  CHECK(std::all_of(calls.begin(), calls.end(), [](Word at) { return at % 20'000 < 10'000; }));
  CHECK(Arrivals::diurnal({1'000, 1s}, 0, 24h).peak() == Approx(1'000));
  const Arrivals full = Arrivals::diurnal({1'000, 1s}, 1, 1s);
  CHECK(full.mean_rate() == Approx(1'000).epsilon(2e-4));
  CHECK(full.peak() == Approx(2'000).epsilon(0.001));
  CHECK(first_calls(Arrivals::spike({2'000, 1s}, 0, 0s, 5s), 1).at(0) >= 5'000'000);
}

TEST_CASE("a trace is replayed, thinned and multiplied") {
  std::vector<Span> offsets;
  for (int i = 0; i < 10'000; ++i) offsets.emplace_back(i * 7);
  const Arrivals trace = Arrivals::trace(offsets);
  CHECK(trace.trace_size() == 10'000);
  const auto calls = first_calls(trace, 20'000);
  REQUIRE(calls.size() == 10'000);
  CHECK(calls.back() == 69'993);
  CHECK(trace.expected(70ms) == 10'000);
  CHECK(trace.expected(7us) == 1);
  CHECK(trace.mean_rate() == Approx(10'000 / 0.069993));
  CHECK(trace.peak() == 10'000);
  CHECK(Arrivals::trace({0us, 1us, 1s, 2s}).peak() == 2);
  CHECK(trace.scaled(2, 1).peak() == 20'000);
  CHECK(std::abs(static_cast<double>(first_calls(trace.scaled(1, 4), 20'000).size()) - 2'500) <
        150);
  const auto more = first_calls(trace.scaled(5, 2), 40'000);
  CHECK(std::abs(static_cast<double>(more.size()) - 25'000) < 180);
  CHECK(more[1] == 0);
  CHECK(first_calls(trace.scaled(3, 1), 40'000).size() == 30'000);
  CHECK(first_calls(trace.scaled(0, 1), 1).empty());
  CHECK(first_calls(trace.scaled(3, 1).scaled(1, 3), 40'000) == calls);
  ArrivalProcess twice(trace.scaled(2, 1), stream(1, 1, 1));
  for (std::size_t i = 0; i < 6; ++i) {
    REQUIRE(twice.next());
    CHECK(twice.position() == i / 2);
  }
  CHECK(first_calls(Arrivals::trace({}), 1).empty());
  CHECK(Arrivals::trace({}).mean_rate() == 0);
  CHECK(Arrivals::trace({0us}).mean_rate() == 1e6);
}

TEST_CASE("a trace of ten million calls is replayed, and shared by its copies") {
  std::vector<Span> offsets(10'000'000);
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = Span{static_cast<Word>(i / 3)};
  const Arrivals trace = Arrivals::trace(std::move(offsets));
  const Arrivals half = trace.scaled(1, 2);
  ArrivalProcess whole(trace, stream(1, 1, 1));
  ArrivalProcess last(trace.part(999'999, 1 << 20), stream(1, 1, 1));
  std::size_t count = 0;
  while (whole.next()) ++count;
  CHECK(count == 10'000'000);
  CHECK(whole.position() == 9'999'999);
  CHECK(last.next() == Span{333'333});
  CHECK(half.expected(Span{word_limit}) == 5'000'000);
}

TEST_CASE("a trace that goes back in time is refused at that call") {
  CHECK_THROWS_WITH(Arrivals::trace({1us, 7us, 5us, 4us}),
                    "call 3 of a trace comes at 5 us, before call 2 at 7 us");
  CHECK_THROWS_WITH(Arrivals::trace({-1us}),
                    "the offset of call 1 of a trace must be 0 us to 2^52 us, got -1 us");
  CHECK_THROWS_AS(Arrivals::trace({0us, Span{word_limit + 1}}), std::invalid_argument);
  CHECK_NOTHROW(Arrivals::trace({0us, 0us, Span{word_limit}}));
}

TEST_CASE("arrivals out of range are refused with the range") {
  CHECK_THROWS_WITH(Arrivals::poisson({-1, 1s}),
                    "a rate must be 0 to 10^8 calls a second, got -1 in 1000000 us");
  CHECK_THROWS_AS(Arrivals::poisson({100'000'001, 1s}), std::invalid_argument);
  CHECK_NOTHROW(Arrivals::poisson({100'000'000, 1s}));
  CHECK_THROWS_WITH(Arrivals::constant({1, 0s}),
                    "the time of a rate must be 1 us to 365 days, got 0 us");
  CHECK_THROWS_AS(Arrivals::constant({1, 366 * 24h}), std::invalid_argument);
  CHECK_THROWS_AS(Arrivals::constant({std::numeric_limits<Word>::max(), 1s}),
                  std::invalid_argument);
  CHECK_THROWS_AS(Arrivals::pattern({}), std::invalid_argument);
  CHECK_THROWS_AS(Arrivals::pattern({{{1, 1s}, 0us}}), std::invalid_argument);
  const SeededRng draws = stream(1, 0, 9);
  CHECK_THROWS_WITH(Arrivals::mmpp({{1, 1s}, 999us}, {{1, 1s}, 1s}, draws),
                    "the mean length of a busy phase must be 1000 us to 365 days, got 999 us");
  CHECK_THROWS_AS(Arrivals::mmpp({{1, 1s}, 1s}, {{1, 1s}, 366 * 24h}, draws),
                  std::invalid_argument);
  CHECK_THROWS_AS(Arrivals::mmpp({{-1, 1s}, 1s}, {{1, 1s}, 1s}, draws), std::invalid_argument);
  CHECK_THROWS_AS(Arrivals::diurnal({1, 1s}, 1.1, 24h), std::invalid_argument);
  CHECK_THROWS_AS(Arrivals::diurnal({1, 1s}, std::nan(""), 24h), std::invalid_argument);
  CHECK_THROWS_AS(Arrivals::diurnal({1, 1s}, 0.5, 1ms), std::invalid_argument);
  CHECK_THROWS_AS(Arrivals::diurnal({100'000'000, 1s}, 0.5, 24h), std::invalid_argument);
  CHECK_THROWS_AS(Arrivals::spike({1, 1s}, -1, 0s, 1s), std::invalid_argument);
  CHECK_THROWS_AS(Arrivals::spike({1, 1s}, 2, -1us, 1s), std::invalid_argument);
  CHECK_THROWS_AS(Arrivals::spike({1, 1s}, 2, 0s, 0s), std::invalid_argument);
  CHECK_THROWS_WITH(Arrivals::spike({1'000, 1s}, 1e6, 0s, 1s),
                    "a scaled rate must be at most 10^8 calls a second, got 1000000000");
  const Arrivals arrivals = Arrivals::poisson({1, 1s});
  CHECK_THROWS_AS(arrivals.scaled(-1, 1), std::invalid_argument);
  CHECK_THROWS_AS(arrivals.scaled(1, 0), std::invalid_argument);
  CHECK_THROWS_AS(arrivals.scaled(Word{1} << 33, 1), std::invalid_argument);
  CHECK_THROWS_AS(arrivals.part(2, 2), std::invalid_argument);
  CHECK_THROWS_AS(arrivals.part(0, 0), std::invalid_argument);
}
