// Fleets: the API of a scenario, which changes one row, loses messages and is shed, the models of
// arrivals and delays (validity/scenarios.cpp has their means), and rehearsals of a program's own
// client. Threading: single-threaded.
#include "sim/fleet/api.hpp"

#include <boost/system/system_error.hpp>
#include <map>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "sim/tests/help.hpp"
#include "sluice/asio/acquire.hpp"
#include "sluice/asio/timer.hpp"
#include "sluice/sim/rehearse.hpp"
#include "sluice/sim/run.hpp"
#include "sluice/sluice.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;

namespace {

ApiOptions even_api() {
  ApiOptions options;
  options.to = options.from = Delay::constant(1ms);
  options.latency = Delay::constant(10ms);
  return options;
}

const LinkFaults no_faults;

Task<> call_at(World& world, Api& api, Span at, int& status) {
  SeededRng way(1);
  co_await sluice::asio::sleep_for(world.clock(), at);
  const ApiAnswer answer = co_await api.call(way, no_faults);
  status = answer.status;
}

/// What calls that are sent at these times are answered.
std::vector<int> statuses(const ApiOptions& options, const std::vector<Span>& times) {
  World world({.seed = 1});
  Api api(world, options, 0us);
  std::vector<int> result(times.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    world.spawn(call_at(world, api, times[i], result[i]));
  }
  world.run_for(1s);
  return result;
}

}  // namespace

TEST_CASE("a call conflicts if the row has changed since its work began") {
  ApiOptions options = even_api();
  options.conflicts = true;
  // Work lasts from 1 ms after a call is sent to 11 ms after it. The second call's work ends after
  // the first has written; the third's begins after that, and the second has written nothing.
  CHECK(statuses(options, {0ms, 5ms, 12ms}) == std::vector{200, 409, 200});
  CHECK(statuses(options, {0ms, 10ms, 20ms}) == std::vector{200, 200, 200});
  CHECK(statuses(even_api(), {0ms, 5ms, 12ms}) == std::vector{200, 200, 200});
}

TEST_CASE("a call that fails writes no row") {
  ApiOptions options = even_api();
  options.conflicts = true;
  options.failures = 1;
  CHECK(statuses(options, {0ms, 5ms}) == std::vector{500, 500});
}

namespace {

/// What the client of one call, and its API, see of it.
struct Seen {
  int status = -1;
  Span took{0};
  std::uint64_t arrived = 0;  // at the API
};

Task<> time_call(World& world, Api& api, const LinkFaults& faults, Seen& seen) {
  SeededRng way(1);
  const Time sent = world.now();
  const ApiAnswer answer = co_await api.call(way, faults);
  seen.status = answer.status;
  seen.took = world.now() - sent;
}

/// One call, in which `change` happens to the network at a time.
Seen call_under(LinkFaults faults, Span timeout, Span at = 0us, LinkFaults change = {}) {
  World world({.seed = 1});
  ApiOptions options = even_api();
  options.limits = {{100, 1h}};
  Api api(world, options, timeout);
  Seen seen;
  world.spawn(time_call(world, api, faults, seen));
  world.run_for(at);
  if (at != 0us) faults = change;
  world.run_for(1s);
  seen.arrived = api.upstream().busiest(0);
  return seen;
}

constexpr std::uint32_t all = 1'000'000;

/// Calls at 1,000 a second for 100 s, each tried once.
Scenario plain_calls() {
  Scenario s = test::plain();
  s.fleet.workers = 10;
  s.duration = 100s;
  s.arrivals.rate = {1000, 1s};
  s.upstream = even_api();
  s.upstream.limits = {{100'000'000, 1h}};
  s.client.timeout = 1s;
  return s;
}

/// The mean number of times that a call arrives at the API.
double arrivals_per_call(const Scenario& scenario, const RunResult& result) {
  const double seconds = static_cast<double>(scenario.duration.count()) / 1'000'000;
  return static_cast<double>(result.windows.at(0).worst) /
         (result.figures[Metric::offered] * seconds);
}

}  // namespace

TEST_CASE("a request that is lost does not arrive, and its client waits for the timeout") {
  const LinkFaults lost{.lost = all};
  const Seen seen = call_under(lost, 50ms);
  CHECK(seen.status == 0);
  CHECK(seen.took == 50ms);
  CHECK(seen.arrived == 0);
  CHECK(call_under({.cut = true}, 50ms).arrived == 0);
  CHECK(call_under(lost, 0ms).status == 0);
  CHECK(call_under(lost, 0ms).took == 0ms);
}

TEST_CASE("a call whose answer is lost has been served") {
  const Seen seen = call_under({.answer_lost = all}, 50ms);
  CHECK(seen.status == 0);
  CHECK(seen.took == 50ms);
  CHECK(seen.arrived == 1);
  // The network is cut under the answer, which leaves at 11 ms.
  const Seen cut = call_under({}, 50ms, 10ms, {.cut = true});
  CHECK(cut.status == 0);
  CHECK(cut.arrived == 1);
  CHECK(call_under({}, 50ms, 12ms, {.cut = true}).status == 200);
}

TEST_CASE("a request that is doubled is served twice, and answered once") {
  const Span timeout = GENERATE(as<Span>{}, 0ms, 50ms);
  const Seen seen = call_under({.doubled = all}, timeout);
  CHECK(seen.status == 200);
  CHECK(seen.took == 12ms);
  CHECK(seen.arrived == 2);
}

TEST_CASE("messages to and from the API are lost and doubled in the shares that are set") {
  Scenario s = plain_calls();
  s.upstream.lost = 0.1;
  s.upstream.answer_lost = 0.05;
  s.upstream.doubled = 0.2;
  const RunResult result = run(s);
  CHECK(result.objections.empty());
  // Standard deviations of 0.11 % and 0.15 %.
  CHECK(result.figures[Metric::share_failed] == Approx(100 * (1 - 0.9 * 0.95)).margin(0.5));
  CHECK(arrivals_per_call(s, result) == Approx(0.9 * 1.2).margin(0.006));
  CHECK(result.figures[Metric::timed_out] > 0);
}

TEST_CASE("faults of the network to the API begin, end, and strike a share of the workers") {
  using Kind = FaultPlan::Kind;
  struct Case {
    FaultPlan fault;
    double usual_loss;
    double failed, arrivals;
  };
  const auto& [fault, usual_loss, failed, arrivals] =
      GENERATE(Case{{.kind = Kind::upstream_loss, .factor = 0.5}, 0.1, 30, 0.7},
               Case{{.kind = Kind::upstream_answers_lost, .share = 0.5}, 0, 25, 1},
               Case{{.kind = Kind::upstream_cut, .share = 0.2}, 0, 10, 0.9},
               Case{{.kind = Kind::upstream_doubled, .factor = 0.5}, 0, 0, 1.25});
  Scenario s = plain_calls();
  s.upstream.lost = usual_loss;
  s.faults = {fault};
  s.faults[0].at = 20s;
  s.faults[0].length = 50s;
  const RunResult result = run(s);
  CHECK(result.figures[Metric::share_failed] == Approx(failed).margin(0.7));
  CHECK(arrivals_per_call(s, result) == Approx(arrivals).margin(0.007));
}

TEST_CASE("in the line of the fleet, nobody waits longer because others come elsewhere") {
  Scenario s = test::plain();
  s.arrivals.rate = {60, 1s};
  s.limiter.kind = LimiterOptions::Kind::token_bucket;
  s.limiter.limit = {60, 1s};
  const double in_line = run(s).figures[Metric::wait_p99];
  s.limiter.fleet_order = false;
  CAPTURE(in_line, run(s).figures[Metric::wait_p99]);
  CHECK(run(s).figures[Metric::wait_p99] > in_line);
}

TEST_CASE("the workers that a share is are rounded up") {
  Scenario s = test::plain();
  s.duration = 2s;
  s.client.timeout = 1s;
  s.faults = {{.kind = FaultPlan::Kind::upstream_cut, .share = 0.4}};
  CHECK(run(s).workers == std::vector<double>{0, 0, 1});
}

TEST_CASE("decisions whose answers are lost have charged, those whose requests are lost have not") {
  using Kind = FaultPlan::Kind;
  Scenario s = test::plain();
  s.arrivals.kind = ArrivalOptions::Kind::bursts;
  s.arrivals.bursts = {{4, 10s}, {4, 50s}};
  s.limiter.kind = LimiterOptions::Kind::token_bucket;
  s.limiter.wait = LimiterOptions::Wait::skip;
  s.limiter.limit = {4, 24h};
  s.store.on_failure = StoreOptions::OnFailure::closed;
  s.faults = {{.kind = GENERATE(Kind::answers_lost, Kind::network_loss), .at = 5s, .length = 20s}};
  const bool charged = s.faults[0].kind == Kind::answers_lost;
  CHECK(run(s).figures[Metric::share_done] == (charged ? 0 : 50));
}

TEST_CASE("the workers of a fleet are busy at the same times") {
  Scenario s = test::plain();
  s.arrivals.kind = ArrivalOptions::Kind::mmpp;
  s.arrivals.busy = {300, 1s};
  s.arrivals.calm = {0, 1s};
  s.arrivals.busy_for = s.arrivals.calm_for = 4s;
  s.duration = 24s;  // steps of 100 ms
  const RunResult result = run(s);
  // 30 jobs come in a busy step, and none in a calm one: with phases of their own, the workers
  // would make steps of 10 and 20.
  int between = 0;
  for (const std::uint32_t offered : result.series.offered) {
    if (offered > 0 && offered < 15) ++between;
  }
  CHECK(between <= 15);  // steps in which a phase ends
}

TEST_CASE("the phases of an API are those of all workers, and a run repeats them") {
  Scenario s = test::plain();
  s.duration = 30s;
  s.arrivals.rate = {300, 1s};
  s.upstream.latency = Delay::phases(Delay::constant(10ms), 3s, Delay::constant(110ms), 3s);
  int changes = 0;
  bool slow = false;
  RunOptions options;
  std::map<std::uint64_t, Span> sent;
  std::map<Span, Span> took;  // by the time at which the call was sent
  options.on_event = [&](const JobEvent& event) {
    if (event.what == JobEvent::What::sent) sent[event.job] = event.at;
    if (event.what == JobEvent::What::answered) {
      took[sent[event.job]] = event.at - sent[event.job];
    }
  };
  const RunResult first = run(s, options);
  for (const auto& [at, span] : took) {
    if ((span > 50ms) != slow) ++changes;
    slow = span > 50ms;
  }
  CHECK(changes > 2);
  CHECK(changes < 30);
  CHECK(run(s).trace == first.trace);
}

TEST_CASE("the load of bursts multiplies their jobs") {
  Scenario s = test::plain();
  s.duration = 10s;
  s.arrivals.kind = ArrivalOptions::Kind::bursts;
  s.arrivals.bursts = {{100, 1s}, {7, 2s}};
  const auto jobs = [&s](double load) {
    s.arrivals.load = load;
    return run(s).figures[Metric::offered] * 10;
  };
  CHECK(jobs(1) == Approx(107));
  CHECK(jobs(2) == Approx(214));
  CHECK(jobs(0.5) == Approx(54));  // 50 + 3.5, rounded up
  CHECK(jobs(0.001) == 0);
}

TEST_CASE("what happens in the warm-up counts in no share and no mean") {
  Scenario s = test::plain();
  s.duration = 60s;
  s.arrivals.rate = {300, 1s};
  s.limiter.kind = LimiterOptions::Kind::token_bucket;
  s.limiter.limit = {400, 1s};
  s.store.service = Delay::constant(500us);
  s.warm_up = GENERATE(0s, 45s);
  const Figures figures = run(s).figures;
  CHECK(figures[Metric::ops_per_call] == Approx(1).epsilon(0.05));
  CHECK(figures[Metric::store_busy] == Approx(100 * 300 * 500e-6).epsilon(0.1));
}

TEST_CASE("a client that is refused in the warm-up alone is not refused") {
  Scenario s = test::plain();
  s.duration = 30s;
  s.arrivals.kind = ArrivalOptions::Kind::bursts;
  s.arrivals.bursts = {{100, 1s}, {1, 20s}};
  s.limiter.kind = LimiterOptions::Kind::token_bucket;
  s.limiter.limit = {10, 1s};
  s.limiter.burst = 10;
  s.limiter.wait = LimiterOptions::Wait::skip;
  CHECK(run(s).figures[Metric::clients_refused] == 100);
  s.warm_up = 10s;
  CHECK(run(s).figures[Metric::clients_refused] == 0);
}

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
    if constexpr (std::is_same_v<Error, std::logic_error>) throw Error("a bug");
    if constexpr (!std::is_same_v<Error, std::logic_error>) {
      throw Error(make_error_code(std::errc::io_error));
    }
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
  CHECK_THROWS_AS(rehearse(outage(), throws<std::logic_error>), std::logic_error);
}
