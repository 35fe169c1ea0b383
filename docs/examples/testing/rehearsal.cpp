// A program's own client under the faults and judges of a scenario, as docs/simulation.md shows it.
#include <sluice/asio/acquire.hpp>
#include <sluice/sim/rehearse.hpp>
#include <sluice/sluice.hpp>

#include "tests/catch.hpp"

using namespace sluice;
using namespace std::chrono_literals;

/// The client under test: it waits for the limit, and calls.
class Client {
 public:
  explicit Client(Store& store) : limit_(store, "api", Quota::per_second(97).burst(10)) {}

  sim::RehearsedJob::Task<> operator()(sim::RehearsedJob& job) const {
    const Reservation grant = co_await asio::async_acquire(limit_, "all", 1, 30s);
    if (grant) (void)co_await job.call();
  }

 private:
  TokenBucket limit_;
};

TEST_CASE("our client outlives an outage of the store without a 429") {
  sim::Scenario outage;
  outage.arrivals.rate = {80, 1s};
  outage.upstream.limits = {{1'000, 10s}};
  outage.store.on_failure = sim::StoreOptions::OnFailure::local;
  outage.faults = {{.kind = sim::FaultPlan::Kind::store_down, .at = 20s, .length = 10s}};
  const auto make = [](Store& store) { return Client(store); };
  const sim::RunResult result = sim::rehearse(outage, make, {.recovery = 5s});
  CHECK(result.objections.empty());
  CHECK(result.figures[sim::Metric::share_429] == 0);
  CHECK(result.figures[sim::Metric::share_done] > 99);
}
