// The API of a scenario that changes one row, and the shedder that sees how busy it is. Threading:
// single-threaded.
#include "sim/scenario/api.hpp"

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

Task<> call_at(World& world, Api& api, Span at, int& status) {
  SeededRng way(1);
  co_await sluice::asio::sleep_for(world.clock(), at, use_task);
  const Answer answer = co_await api.call(way);
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
      {[](Scenario& s) { s.limiter.hold = 1s; }, "limiter.hold leases units"},
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
