// Streams, the histogram and the trace hash.
// Threading: single-threaded.
#include "sluice/sim/random.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "sluice/sim/histogram.hpp"
#include "sluice/sim/trace.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;

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
