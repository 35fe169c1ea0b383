// Rehearsals of a program's own client whose calls fail. Threading: single-threaded.
#include "sluice/sim/rehearse.hpp"

#include <boost/system/system_error.hpp>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "sluice/asio/acquire.hpp"
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace std::chrono_literals;

namespace {

Scenario outage() {
  Scenario s;
  s.duration = 30s;
  s.arrivals.rate = {80, 1s};
  s.faults = {{.kind = FaultPlan::Kind::store_down, .at = 10s, .length = 5s}};
  return s;
}

/// A client that throws in place of each call.
template <class Error>
RehearsedClient throws(Store&) {
  return [](RehearsedJob&) -> RehearsedJob::Task<> {
    throw Error(make_error_code(std::errc::io_error));
    co_return;
  };
}

}  // namespace

TEST_CASE("a job whose wait for the limiter fails is given up, and the rehearsal goes on") {
  const auto make = [](Store& store) {
    const auto limit = std::make_shared<TokenBucket>(store, "api", Quota::per_second(97));
    return [limit](RehearsedJob& job) -> RehearsedJob::Task<> {
      const Reservation grant = co_await asio::async_acquire(*limit, "all", 1, 30s);
      if (grant) (void)co_await job.call();
    };
  };
  const Figures figures = rehearse(outage(), make).figures;
  CHECK(figures[Metric::store_failures] > 300);  // of the 400 that come in the outage
  CHECK(figures[Metric::share_done] > 80);
}

TEST_CASE("every job of a client that always throws is given up") {
  CHECK(rehearse(outage(), throws<std::system_error>).figures[Metric::share_refused] == 100);
  CHECK(rehearse(outage(), throws<boost::system::system_error>).figures[Metric::share_refused] ==
        100);
}

TEST_CASE("what else a client throws leaves the rehearsal") {
  const auto make = [](Store&) {
    return [](RehearsedJob&) -> RehearsedJob::Task<> {
      throw std::logic_error("a bug");
      co_return;
    };
  };
  CHECK_THROWS_AS(rehearse(outage(), make), std::logic_error);
}
