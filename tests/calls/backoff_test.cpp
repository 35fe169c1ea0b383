// Waits between refusals, and budgets of retries.
#include "sluice/calls/backoff.hpp"

#include <algorithm>
#include <vector>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

struct Range {
  Span low;
  Span high;
};

/// The waits after each of `count` refusals in a row lie in these ranges, and come near their ends.
void check_ranges(Random& random, const Backoff& fresh, const std::vector<Range>& ranges) {
  std::vector<Range> seen(ranges.size(), {Span::max(), Span::min()});
  for (std::size_t i = 0; i < scaled(5'000, 2'000); ++i) {
    Backoff backoff = fresh;
    for (Range& range : seen) {
      const Span wait = backoff.next(random);
      range = {std::min(range.low, wait), std::max(range.high, wait)};
    }
  }
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    CAPTURE(i);
    const Span slack = (ranges[i].high - ranges[i].low) / 50;
    CHECK((seen[i].low >= ranges[i].low && seen[i].low <= ranges[i].low + slack));
    CHECK((seen[i].high <= ranges[i].high && seen[i].high >= ranges[i].high - slack));
  }
}

}  // namespace

TEST_CASE("each jitter keeps to its formula, and spreads over all of it", "[calls][backoff]") {
  Random random("each jitter keeps to its formula, and spreads over all of it");
  CAPTURE(random.repeat());
  check_ranges(random, {1s, 5s, Jitter::full}, {{0s, 1s}, {0s, 2s}, {0s, 4s}, {0s, 5s}, {0s, 5s}});
  check_ranges(random, {1s, 5s, Jitter::equal},
               {{500ms, 1s}, {1s, 2s}, {2s, 4s}, {2500ms, 5s}, {2500ms, 5s}});
  check_ranges(random, {1s, 3s, Jitter::decorrelated}, {{1s, 3s}, {1s, 3s}, {1s, 3s}});
}

TEST_CASE("a decorrelated wait is at most three times the one before", "[calls][backoff]") {
  Random random("a decorrelated wait is at most three times the one before");
  CAPTURE(random.repeat());
  for (std::size_t i = 0; i < scaled(1'000, 200); ++i) {
    Backoff backoff(100ms, 10s, Jitter::decorrelated);
    Span before = 100ms;
    for (int refusal = 0; refusal < 12; ++refusal) {
      const Span wait = backoff.next(random);
      REQUIRE((wait >= 100ms && wait <= std::min(Span{10s}, 3 * before)));
      before = wait;
    }
  }
}

TEST_CASE("back-off and budget refuse options out of range", "[calls][backoff]") {
  CHECK_THROWS_WITH(
      Backoff(0s, 1s, Jitter::full),
      "Backoff: 1 us <= base <= cap <= 86400000000 us, got base 0 us, cap 1000000 us");
  CHECK_THROWS_AS(Backoff(2s, 1s, Jitter::full), std::invalid_argument);
  CHECK_THROWS_AS(Backoff(1s, 25h, Jitter::full), std::invalid_argument);
  CHECK_THROWS_WITH(RetryBudget(-1), "RetryBudget: percent must be 0 to 1000, got -1");
  CHECK_THROWS_WITH(RetryBudget(10, -1), "RetryBudget: burst must be 0 to 1000000, got -1");
}

TEST_CASE("a budget allows its burst, then its part of the calls, and at least one retry at once",
          "[calls][backoff]") {
  Random random(
      "a budget allows its burst, then its part of the calls, and at least one retry at once");
  CAPTURE(random.repeat());
  for (std::size_t i = 0; i < scaled(200, 50); ++i) {
    const Word percent = random.one_in(5) ? 0 : random.between(0, 400);
    const Word burst = random.between(0, 5);
    CAPTURE(percent, burst);
    RetryBudget budget(static_cast<int>(percent), static_cast<int>(burst));
    const Word most = std::max({burst * 100, Word{100}, percent});
    Word left = burst * 100;  // in hundredths of retries
    for (int step = 0; step < 100; ++step) {
      if (random.one_in(2)) {
        budget.note_call();
        left = std::min(most, left + percent);
        continue;
      }
      REQUIRE(budget.take_retry() == (left >= 100));
      if (left >= 100) left -= 100;
    }
  }
}

}  // namespace sluice::test
