// The counts of times to reply, against sorted lists of the same times, and those of the last
// minutes. Threading: stated per test.
#include <array>
#include <thread>
#include <vector>

#include "backends/redis/connection/latency_histogram.hpp"
#include "backends/redis/connection/recent_latencies.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;
using redis_detail::LatencyBuckets;
using redis_detail::LatencyCounts;
using redis_detail::LatencyHistogram;
using redis_detail::RecentLatencies;

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

LatencyCounts counts_at(const RecentLatencies& latencies, Time now) {
  LatencyCounts counts;
  latencies.add_to(counts, now);
  return counts;
}

constexpr Time noon{12h};

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

TEST_CASE(
    "quantiles of several nodes are those of the sorted times, or less than a sixteenth above",
    "[redis][latency]") {
  Random random(
      "quantiles of several nodes are those of the sorted times, or less than a sixteenth above");
  CAPTURE(random.repeat());
  for (std::size_t round = 0; round < scaled(300, 50); ++round) {
    std::array<LatencyHistogram, 2> nodes;
    std::vector<Span> times(static_cast<std::size_t>(random.between(1, 400)));
    const auto magnitude = random.between(1, 36);
    for (Span& time : times) {
      time = Span{random.between(0, std::int64_t{1} << random.between(1, magnitude))};
      nodes[random.below(2)].record(time);
    }
    std::ranges::sort(times);
    LatencyCounts counts;
    for (const LatencyHistogram& node : nodes) counts.add(node);
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

TEST_CASE("times to reply count in their minute and the next, whatever the clock does",
          "[redis][latency]") {
  Random random("times to reply count in their minute and the next, whatever the clock does");
  CAPTURE(random.repeat());
  for (std::size_t round = scaled(100); round > 0; --round) {
    RecentLatencies latencies;
    std::array<std::pair<std::int64_t, std::vector<Span>>, 2> kept{};  // of even and odd minutes
    Time now = random.one_in(4) ? Time{} : noon + random.between(0, 3) * 30s;
    for (int i = 0; i < 100; ++i) {
      const auto minute = now.time_since_epoch() / 1min;
      auto& [of, times] = kept[static_cast<std::size_t>(minute % 2)];
      if (std::exchange(of, minute) != minute) times.clear();
      times.push_back(Span{random.between(0, 31)});
      latencies.record(times.back(), now);
      std::vector<Span> recent;
      for (const auto& [last, some] : kept) {
        if (last == minute || last == minute - 1)
          recent.insert(recent.end(), some.begin(), some.end());
      }
      std::ranges::sort(recent);
      const LatencyCounts counts = counts_at(latencies, now);
      CHECK(counts.total() == recent.size());
      CHECK(counts.quantile(0, 1) == recent.front());
      CHECK(counts.quantile(1, 1) == recent.back());
      now += random.one_in(2) ? Span{0} : Span{random.between(0, 3) * 30'000'000};
      if (random.one_in(20) && now > noon) now -= random.between(1, 3) * 60s;
    }
    CHECK(counts_at(latencies, now + 24h).total() == 0);
  }
}

TEST_CASE("threads record while minutes pass", "[redis][latency]") {
  RecentLatencies latencies;
  const std::size_t each = scaled(20'000, 2'000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (std::size_t n = 0; n < each; ++n) latencies.record(7us, noon + (n / 100) * 1min);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Time later = noon + 365 * 24h;
  for (std::size_t n = 0; n < 50; ++n) latencies.record(8us, later);
  const LatencyCounts counts = counts_at(latencies, later);
  CHECK(counts.total() == 50);
  CHECK(counts.quantile(0, 1) == 8us);
}
