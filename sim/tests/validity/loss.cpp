// Systems that refuse whoever finds no free server, against Erlang's B. Threading: single-threaded.
#include <cmath>

#include "sim/tests/validity/queue.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

struct Row {
  std::size_t servers;
  double offered;
  double refused;  // as published
};

constexpr Row rows[] = {
    {10, 5, 0.018'385}, {10, 8, 0.121'661}, {50, 40, 0.018'691}, {100, 95, 0.048'804}};

/// `mean`: of the service, in seconds.
void check_loss(const std::string& law, const Delay& service, double mean) {
  for (const Row& row : rows) {
    CHECK(erlang_b(row.servers, row.offered) == Approx(row.refused).epsilon(5e-5));
    const QueueModel model{.gap = Delay::exponential(Span{std::llround(mean / row.offered * 1e6)}),
                           .service = service,
                           .servers = row.servers,
                           .refuses = true,
                           // The number in service relaxes within a service: twenty of them.
                           .warm_up = static_cast<std::size_t>(20 * row.offered),
                           .customers = 50'000};
    for_both(replicate_both(model), [&](const std::string& servers,
                                        std::span<const QueueRun> runs) {
      check_row("M/" + law + "/" + std::to_string(row.servers) + " with " +
                    std::to_string(static_cast<int>(row.offered)) + " offered, refused, " + servers,
                interval_of(runs, [](const QueueRun& run) { return run.share_delayed(); }),
                erlang_b(row.servers, row.offered), 0.15);
    });
  }
}

}  // namespace

TEST_CASE("Erlang B with an exponential service", "[long]") {
  check_loss("M", Delay::exponential(1s), 1);
}

// The share of the refused depends on the mean of the service alone.
TEST_CASE("Erlang B with a log-normal service") {
  check_loss("LN", Delay::log_normal(700ms, 4s), log_normal_moment(700ms, 4s, 1));
}
