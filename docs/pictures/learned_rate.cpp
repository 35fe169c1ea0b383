// The picture of a learned rate: a fleet and an API whose limit nobody knows. It is the scenario
// scenarios/unknown-limit.toml.
#include "docs/pictures/pictures.hpp"
#include "docs/pictures/world.hpp"
#include "sluice/sim/run.hpp"

namespace sluice::pictures {
namespace {

using namespace std::chrono_literals;

sim::Scenario unknown_limit() {
  sim::Scenario scenario;
  scenario.duration = 15min;
  scenario.fleet.workers = 20;
  scenario.arrivals.kind = sim::ArrivalOptions::Kind::closed;
  scenario.arrivals.clients = 15;
  scenario.arrivals.think = sim::Delay::exponential(100ms);
  scenario.upstream.limits = {{.limit = 100, .window = 1s}};
  scenario.upstream.retry_after = sim::RetryAfter::missing();
  scenario.upstream.latency = sim::Delay::uniform(30ms, 80ms);
  scenario.client.pause = 20ms;
  scenario.client.cap = 1s;
  scenario.faults = {
      {.kind = sim::FaultPlan::Kind::upstream_limit, .at = 5min, .length = 5min, .factor = 0.5}};
  return scenario;
}

/// Calls a second that are sent, by minutes.
void print(std::ostream& out, const sim::Scenario& scenario) {
  const sim::Series series = sim::run(scenario).series;
  const double step = std::chrono::duration<double>(series.step).count();
  const auto steps = static_cast<std::size_t>(5 / step);  // of a row: 5 s
  Block block;
  for (std::size_t i = 0; i + steps < series.sent.size(); i += steps) {
    double sent = 0;
    for (std::size_t j = i; j < i + steps; ++j) sent += series.sent[j];
    block.add({static_cast<double>(i) * step / 60, sent / (static_cast<double>(steps) * step)});
  }
  block.print(out, "minutes, calls sent a second");
}

}  // namespace

void learned_rate(std::ostream& out) {
  sim::Scenario learning = unknown_limit();
  learning.limiter.kind = sim::LimiterOptions::Kind::learned_rate;
  learning.limiter.limit = {10, 1s};
  print(out, learning);

  sim::Scenario alone = unknown_limit();
  alone.limiter.kind = sim::LimiterOptions::Kind::none;
  alone.client.adaptive = true;
  print(out, alone);
}

}  // namespace sluice::pictures
