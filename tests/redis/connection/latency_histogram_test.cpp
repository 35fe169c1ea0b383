// The counts of times to reply, against sorted lists of the same times.
#include "backends/redis/connection/latency_histogram.hpp"

#include <thread>
#include <vector>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;
using redis_detail::LatencyBuckets;
using redis_detail::LatencyCounts;
using redis_detail::LatencyHistogram;

namespace {

LatencyCounts counts_of(const LatencyHistogram& histogram) {
  LatencyCounts counts;
  counts.add(histogram);
  return counts;
}

/// The smallest time that at least parts/of of them do not exceed. REQUIRES: sorted, not empty.
Span exact_quantile(const std::vector<Span>& sorted, std::size_t parts, std::size_t of) {
  std::size_t rank = 1;
  while (rank * of < sorted.size() * parts) ++rank;
  return sorted[rank - 1];
}

/// What the class says of a quantile that is read from it.
bool is_near(Span read, Span exact) {
  if (exact < 32us) return read == exact;
  return read >= exact && 16 * (read - exact) < exact;
}

}  // namespace

TEST_CASE("every bucket follows the one before it and is less than a sixteenth wide",
          "[redis][latency]") {
  Span first{0};
  for (std::size_t bucket = 0; bucket < LatencyBuckets::count; ++bucket) {
    const Span last = LatencyBuckets::last(bucket);
    CAPTURE(bucket, first.count(), last.count());
    REQUIRE(last >= first);
    REQUIRE(LatencyBuckets::index(first) == bucket);
    REQUIRE(LatencyBuckets::index(last) == bucket);
    REQUIRE(is_near(last, first));
    first = last + 1us;
  }
  CHECK(first.count() == LatencyBuckets::longest + 1);
  CHECK(LatencyBuckets::index(Span::max()) == LatencyBuckets::count - 1);
  CHECK(LatencyBuckets::index(Span::min()) == 0);
  CHECK(LatencyBuckets::index(-1us) == 0);
}

TEST_CASE("quantiles are those of the sorted times, and above them by less than a sixteenth",
          "[redis][latency]") {
  Random random("quantiles are those of the sorted times, and above them by less than a sixteenth");
  CAPTURE(random.repeat());
  for (std::size_t round = 0; round < scaled(300, 50); ++round) {
    LatencyHistogram histogram;
    std::vector<Span> times(static_cast<std::size_t>(random.between(1, 400)));
    const auto magnitude = random.between(1, 36);
    for (Span& time : times) {
      time = Span{random.between(0, std::int64_t{1} << random.between(1, magnitude))};
      histogram.record(time);
    }
    std::ranges::sort(times);
    const LatencyCounts counts = counts_of(histogram);
    CHECK(counts.total() == times.size());
    for (const auto& [parts, of] :
         {std::pair{0U, 1U}, {1U, 2U}, {9U, 10U}, {99U, 100U}, {999U, 1000U}, {1U, 1U}}) {
      const Span exact = exact_quantile(times, parts, of);
      const Span read = counts.quantile(parts, of);
      CAPTURE(parts, of, exact.count(), read.count());
      CHECK(is_near(read, exact));
    }
  }
}

TEST_CASE("without a time every quantile is zero", "[redis][latency]") {
  const LatencyCounts counts = counts_of(LatencyHistogram());
  CHECK(counts.total() == 0);
  CHECK(counts.quantile(1, 2) == 0us);
  CHECK(counts.quantile(1, 1) == 0us);
}

TEST_CASE("one slow reply in a hundred is in p100 and not in p99", "[redis][latency]") {
  LatencyHistogram histogram;
  for (int i = 0; i < 99; ++i) histogram.record(20us);
  histogram.record(48h);
  CHECK(counts_of(histogram).quantile(99, 100) == 20us);
  CHECK(counts_of(histogram).quantile(1, 1) == Span{LatencyBuckets::longest});
  histogram.record(1s);
  CHECK(counts_of(histogram).quantile(99, 100) >= 1s);
}

TEST_CASE("the counts of several nodes add up", "[redis][latency]") {
  LatencyHistogram fast, slow;
  for (int i = 0; i < 90; ++i) fast.record(10us);
  for (int i = 0; i < 10; ++i) slow.record(10ms);
  LatencyCounts all = counts_of(fast);
  CHECK(all.quantile(99, 100) == 10us);
  all.add(slow);
  CHECK(all.total() == 100);
  CHECK(all.quantile(90, 100) == 10us);
  CHECK(is_near(all.quantile(91, 100), 10ms));
}

TEST_CASE("no count of many threads is lost", "[redis][latency]") {
  LatencyHistogram histogram;
  const auto each = 40 * static_cast<std::int64_t>(scaled(1'250, 125));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (std::int64_t time = 0; time < each; ++time) histogram.record(Span{time % 40});
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(counts_of(histogram).total() == static_cast<std::uint64_t>(4 * each));
  CHECK(counts_of(histogram).quantile(1, 2) == 19us);
}
