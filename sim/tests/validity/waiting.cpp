// Queues in which everybody waits, against their closed forms. Threading: single-threaded.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "sim/tests/validity/queue.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

/// Poisson arrivals that offer this load to servers whose mean service is 1 s.
Delay arrivals(double offered) { return Delay::exponential(Span{std::llround(1e6 / offered)}); }

/// The sojourn, in seconds, that this share of all does not exceed.
double pooled_quantile(std::span<const QueueRun> runs, double share) {
  std::vector<Word> all;
  for (const QueueRun& run : runs) all.insert(all.end(), run.sojourns.begin(), run.sojourns.end());
  const auto rank = static_cast<std::ptrdiff_t>(share * static_cast<double>(all.size()));
  std::nth_element(all.begin(), all.begin() + rank, all.end());
  return static_cast<double>(all[static_cast<std::size_t>(rank)]) / 1e6;
}

}  // namespace

// The sojourn is exponential with the rate mu - lambda.
TEST_CASE("M/M/1 at a load of 0.9", "[long]") {
  const double mean = 10;
  const double p99 = std::log(100) * mean;
  const QueueModel model{.gap = arrivals(0.9),
                         .service = Delay::exponential(1s),
                         .warm_up = relaxed_after(1, 0.9),
                         .customers = 160'000};
  for_both(replicate_both(model), [&](const std::string& servers, std::span<const QueueRun> runs) {
    check_row("M/M/1 mean sojourn, " + servers,
              interval_of(runs, [](const QueueRun& run) { return run.mean_sojourn(); }), mean, 0.1);
    // A quantile of correlated values is biased, a share is not: the 99 % quantile is right if one
    // in a hundred is above it. Its own error (Woodruff): the quantiles at both ends of the
    // share's.
    const Interval above =
        interval_of(runs, [&](const QueueRun& run) { return run.share_above(p99); });
    check_row("M/M/1 share above p99, " + servers, above, 0.01, 0.5);
    const double low = pooled_quantile(runs, 0.99 - above.half_width);
    const double high = pooled_quantile(runs, 0.99 + above.half_width);
    std::printf("M/M/1 p99 sojourn, %s: %.4g, from %.4g to %.4g, closed form %.4g\n",
                servers.c_str(), pooled_quantile(runs, 0.99), low, high, p99);
    CHECK(low <= p99);
    CHECK(p99 <= high);
  });
}

TEST_CASE("M/D/1 at a load of 0.9", "[long]") {
  const QueueModel model{.gap = arrivals(0.9),
                         .service = Delay::constant(1s),
                         .warm_up = relaxed_after(1, 0.9),
                         .customers = 80'000};
  for_both(replicate_both(model), [&](const std::string& servers, std::span<const QueueRun> runs) {
    check_row("M/D/1 mean wait, " + servers,
              interval_of(runs, [](const QueueRun& run) { return run.mean_wait(); }),
              0.9 / (2 * (1 - 0.9)), 0.1);
  });
}

// Pollaczek and Khinchine: the mean wait is lambda * E[S^2] / (2 * (1 - rho)).
TEST_CASE("M/G/1 with a log-normal service at a load of 0.8") {
  constexpr Span p50 = 700ms;
  constexpr Span p99 = 4s;
  const double mean = log_normal_moment(p50, p99, 1);
  const double square = log_normal_moment(p50, p99, 2);
  const Span gap{std::llround(mean / 0.8 * 1e6)};
  const double rate = 1e6 / static_cast<double>(gap.count());
  const QueueModel model{.gap = Delay::exponential(gap),
                         .service = Delay::log_normal(p50, p99),
                         // The relaxation time grows with the variance of the service.
                         .warm_up = 2 * relaxed_after(1, 0.8),
                         .customers = 80'000};
  CHECK(square > 1.5 * mean * mean);
  for_both(replicate_both(model), [&](const std::string& servers, std::span<const QueueRun> runs) {
    check_row("M/G/1 mean wait, " + servers,
              interval_of(runs, [](const QueueRun& run) { return run.mean_wait(); }),
              rate * square / (2 * (1 - rate * mean)), 0.1);
  });
}

TEST_CASE("D/D/1 never waits") {
  for (const Span gap : {Span{1'000'001}, Span{1'111'111}}) {
    const QueueModel model{
        .gap = Delay::constant(gap), .service = Delay::constant(1s), .customers = 1'000};
    for_both(replicate_both(model), [&](const std::string&, std::span<const QueueRun> runs) {
      for (const QueueRun& run : runs) CHECK(run.share_delayed() == 0);
    });
  }
}

// Erlang C: the share that waits, and the mean wait of all, C / (c mu - lambda).
TEST_CASE("M/M/c", "[long]") {
  struct Row {
    std::size_t servers;
    double offered;
    double waiting;  // as published
    std::size_t customers;
  };
  for (const Row& row : {Row{2, 1.6, 0.711'111, 30'000}, Row{10, 8, 0.409'180, 40'000},
                         Row{50, 40, 0.086'953, 60'000}, Row{100, 95, 0.506'457, 100'000}}) {
    CHECK(erlang_c(row.servers, row.offered) == Approx(row.waiting).epsilon(1e-5));
    const double wait = row.waiting / (static_cast<double>(row.servers) - row.offered);
    const QueueModel model{.gap = arrivals(row.offered),
                           .service = Delay::exponential(1s),
                           .servers = row.servers,
                           .warm_up = relaxed_after(row.servers, row.offered),
                           .customers = row.customers};
    for_both(replicate_both(model), [&](const std::string& servers,
                                        std::span<const QueueRun> runs) {
      const std::string name = "M/M/" + std::to_string(row.servers);
      check_row(name + " share that waits, " + servers,
                interval_of(runs, [](const QueueRun& run) { return run.share_delayed(); }),
                row.waiting, 0.15);
      check_row(name + " mean wait, " + servers,
                interval_of(runs, [](const QueueRun& run) { return run.mean_wait(); }), wait, 0.3);
    });
  }
}
