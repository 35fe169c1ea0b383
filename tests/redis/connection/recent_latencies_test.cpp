// The times to reply of the last minutes.
#include "backends/redis/connection/recent_latencies.hpp"

#include <thread>
#include <vector>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;
using redis_detail::LatencyCounts;
using redis_detail::RecentLatencies;

namespace {

LatencyCounts counts_at(const RecentLatencies& latencies, Time now) {
  LatencyCounts counts;
  latencies.add_to(counts, now);
  return counts;
}

constexpr Time noon{12h};

}  // namespace

TEST_CASE("a time to reply counts in its minute and the next", "[redis][latency]") {
  for (const Time start : {Time{}, noon, noon + 1min}) {
    RecentLatencies latencies;
    CHECK(counts_at(latencies, start).total() == 0);
    latencies.record(20us, start + 59s);
    CHECK(counts_at(latencies, start).total() == 1);
    CHECK(counts_at(latencies, start + 2min - 1us).quantile(1, 1) == 20us);
    CHECK(counts_at(latencies, start + 2min).total() == 0);
    CHECK(counts_at(latencies, start + 24h).total() == 0);
    CHECK(counts_at(latencies, start + 24h + 1min).total() == 0);
  }
}

TEST_CASE("a minute replaces the one before the last", "[redis][latency]") {
  RecentLatencies latencies;
  for (int minute = 0; minute < 10; ++minute) {
    const Time now = noon + minute * 1min;
    for (int i = 0; i <= minute; ++i) latencies.record(Span{minute}, now + 1s);
    const LatencyCounts counts = counts_at(latencies, now + 2s);
    CHECK(counts.total() == static_cast<std::uint64_t>(2 * minute + 1));
    CHECK(counts.quantile(1, 1) == Span{minute});
    CHECK(counts.quantile(0, 1) == Span{std::max(0, minute - 1)});
  }
}

TEST_CASE("a clock that is set back leaves the times of the new minutes", "[redis][latency]") {
  RecentLatencies latencies;
  for (const Span back : {Span{1min}, Span{2min}, Span{1h}}) {
    for (int i = 0; i < 3; ++i) latencies.record(9us, noon + i * 1min);
    latencies.record(5us, noon - back);
    CHECK(counts_at(latencies, noon - back).total() == 1);
    CHECK(counts_at(latencies, noon - back).quantile(1, 1) == 5us);
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
