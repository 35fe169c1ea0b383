// The API of a scenario that changes one row, and the shedder that sees how busy it is. Threading:
// single-threaded.
#include "sim/fleet/api.hpp"

#include <stdexcept>
#include <vector>

#include "sluice/asio/timer.hpp"
#include "sluice/sim/run.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;
using test::contains_text;

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

/// A hundred servers, half of which are busy.
Scenario half_busy() {
  Scenario s;
  s.duration = 20s;
  s.arrivals.rate = {500, 1s};
  s.limiter.kind = LimiterOptions::Kind::utilization_shedder;
  s.limiter.wait = LimiterOptions::Wait::skip;
  s.limiter.grace = 1s;
  s.limiter.full_after = 2s;
  s.limiter.period = 500ms;
  s.upstream = even_api();
  s.upstream.servers = 100;
  s.upstream.latency = Delay::constant(100ms);
  s.client.retries = ClientOptions::Retries::none;
  return s;
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

TEST_CASE("n clients in step need n (n + 1) / 2 calls, because one of a round succeeds") {
  Scenario s;
  s.arrivals.kind = ArrivalOptions::Kind::bursts;
  s.arrivals.bursts = {{20, 0us}};
  s.limiter.kind = LimiterOptions::Kind::none;
  s.upstream = even_api();
  s.upstream.conflicts = true;
  s.client.retries = ClientOptions::Retries::fixed;
  s.client.pause = 5ms;
  const RunResult result = run(s);
  CHECK(result.figures[Metric::share_done] == Approx(100));
  CHECK(result.figures[Metric::calls_per_success] == Approx(21.0 / 2));
  CHECK(result.figures[Metric::share_failed] == Approx(100 * (1 - 2.0 / 21)));
  // The last client calls first at 0, and then 19 times every 17 ms.
  CHECK(result.figures[Metric::wait_max] == Approx(19 * 17).epsilon(0.01));
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
  Scenario s;
  s.duration = 100s;
  s.arrivals.rate = {1000, 1s};
  s.limiter.kind = LimiterOptions::Kind::none;
  s.upstream = even_api();
  s.upstream.limits = {{100'000'000, 1h}};
  s.client.retries = ClientOptions::Retries::none;
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
  Scenario s = plain_calls();
  SECTION("loss of requests, besides the usual one") {
    s.upstream.lost = 0.1;
    s.faults = {{.kind = Kind::upstream_loss, .at = 20s, .length = 50s, .factor = 0.5}};
    const RunResult result = run(s);
    CHECK(result.figures[Metric::share_failed] == Approx(30).margin(0.7));
    CHECK(arrivals_per_call(s, result) == Approx(0.7).margin(0.007));
  }
  SECTION("loss of answers") {
    s.faults = {{.kind = Kind::upstream_answers_lost, .at = 20s, .length = 50s, .share = 0.5}};
    const RunResult result = run(s);
    CHECK(result.figures[Metric::share_failed] == Approx(25).margin(0.7));
    CHECK(arrivals_per_call(s, result) == Approx(1).margin(0.001));
  }
  SECTION("a cut") {
    s.faults = {{.kind = Kind::upstream_cut, .at = 20s, .length = 50s, .share = 0.2}};
    const RunResult result = run(s);
    CHECK(result.figures[Metric::share_failed] == Approx(10).margin(0.5));
    CHECK(arrivals_per_call(s, result) == Approx(0.9).margin(0.005));
  }
  SECTION("doubled requests") {
    s.client.timeout = 0s;
    s.faults = {{.kind = Kind::upstream_doubled, .at = 20s, .length = 50s, .factor = 0.5}};
    const RunResult result = run(s);
    CHECK(result.figures[Metric::share_failed] == 0);
    CHECK(arrivals_per_call(s, result) == Approx(1.25).margin(0.007));
  }
}

TEST_CASE("what is lost on the way to the API calls for a timeout") {
  Scenario s;
  s.upstream.lost = 0.1;
  CHECK_THROWS_WITH(validate(s), contains_text("upstream.lost needs client.timeout"));
  s.upstream.lost = 0;
  s.upstream.answer_lost = 0.1;
  CHECK_THROWS_WITH(validate(s), contains_text("upstream.answer_lost needs client.timeout"));
  s.client.timeout = 1s;
  CHECK_NOTHROW(validate(s));
  s = {};
  using Kind = FaultPlan::Kind;
  for (const Kind kind : {Kind::upstream_cut, Kind::upstream_loss, Kind::upstream_answers_lost}) {
    s.faults = {{.kind = kind, .at = 1s, .length = 1s}};
    CHECK_THROWS_WITH(validate(s), contains_text("needs client.timeout"));
  }
  s.faults = {{.kind = Kind::upstream_doubled, .at = 1s, .length = 1s}};
  CHECK_NOTHROW(validate(s));
  s.faults[0].factor = 2;
  CHECK_THROWS_WITH(validate(s), contains_text("its factor must be 0 to 1"));
}

TEST_CASE("a utilization shedder sheds what the servers of the API call for") {
  const RunResult calm = run(half_busy());
  CHECK(calm.figures[Metric::share_refused] == 0);
  CHECK(calm.figures[Metric::upstream_busy] == Approx(50).margin(5));

  Scenario twice = half_busy();
  twice.arrivals.load = 4;
  twice.jobs.critical = 0.2;
  twice.upstream.queue = 100;
  twice.warm_up = 10s;
  const RunResult busy = run(twice);
  // At rest a share of 1 - 0.8 / 2 is shed; samples of half a second are noisy.
  CHECK(busy.figures[Metric::share_refused] == Approx(60).margin(6));
  CHECK(busy.figures[Metric::upstream_busy] == Approx(80).margin(8));
  CHECK(busy.figures[Metric::critical_done] > 98);
}

TEST_CASE("what contradicts a utilization shedder is refused") {
  const struct {
    void (*change)(Scenario&);
    const char* says;
  } cases[] = {
      {[](Scenario& s) { s.limiter.wait = LimiterOptions::Wait::queue; },
       "needs limiter.wait = \"skip\""},
      {[](Scenario& s) { s.upstream.servers = 0; }, "needs upstream.servers"},
      {[](Scenario& s) { s.limiter.hold = 1s; }, "limiter.hold prefetches units"},
      {[](Scenario& s) { s.limiter.good = 0.9; }, "0 < good <= bad < 1, got 0.900000 and 0.800000"},
      {[](Scenario& s) { s.limiter.bad = 1; }, "0 < good <= bad < 1"},
      {[](Scenario& s) { s.limiter.grace = 1h; }, "at most 1 h together"},
      {[](Scenario& s) { s.limiter.full_after = 0s; }, "at most 1 h together"},
      {[](Scenario& s) { s.limiter.rest_after = 1s; }, "limiter.rest_after must be"},
      {[](Scenario& s) { s.limiter.period = 0s; }, "limiter.period must be"},
  };
  CHECK_NOTHROW(validate(half_busy()));
  for (const auto& each : cases) {
    CAPTURE(each.says);
    Scenario scenario = half_busy();
    each.change(scenario);
    CHECK_THROWS_WITH(validate(scenario), contains_text(each.says));
  }
}
