// Worlds in which as much as possible happens. Threading: none.
#pragma once

#include <map>
#include <sstream>

#include "sim/scenario/effects.hpp"
#include "sim/scenario/parameters.hpp"
#include "sim/tests/help.hpp"
#include "sluice/sim/random.hpp"
#include "sluice/sim/rehearse.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

/// The texts of "path=text|text; path=text".
inline std::map<std::string, std::vector<std::string>> texts_of(std::string_view all) {
  std::map<std::string, std::vector<std::string>> texts;
  std::istringstream entries{std::string(all)};
  for (std::string entry; std::getline(entries >> std::ws, entry, ';');) {
    std::istringstream alternatives(entry.substr(entry.find('=') + 1) + "|");
    auto& of = texts[entry.substr(0, entry.find('='))];
    for (std::string text; std::getline(alternatives >> std::ws, text, '|');) of.push_back(text);
  }
  return texts;
}

/// What a world in which as much as possible happens draws from: nearly every mode of every part.
/// An empty text leaves the default.
inline const auto troubles = texts_of(R"(
run.duration=3s; fleet.workers=1|3|3|3; fleet.spread=equal|uneven;
arrivals.kind=poisson|poisson|constant|on_off|mmpp|diurnal|spike|closed|bursts; arrivals.rate=60/s;
arrivals.busy=90/s; arrivals.calm=20/s; arrivals.phase=500ms; arrivals.busy_for=300ms;
arrivals.calm_for=300ms; arrivals.period=2s; arrivals.factor=5; arrivals.from=1s;
arrivals.length=400ms; arrivals.clients=5; arrivals.think=exponential(100ms);
arrivals.bursts=40 at 200ms; jobs.keys=1|3|3; jobs.pick=uniform|zipf|hot; jobs.critical=|0.3;
jobs.patience=|300ms; limiter.kind=none|token_bucket|token_bucket|sliding_window|
fixed_window|sliding_window_counter|slot_lock|concurrency|utilization_shedder|ideal;
limiter.wait=queue|poll|skip; limiter.scope=shared|shared|per_process; limiter.limit=45/s;
limiter.burst=6|6|0; limiter.by_key=|true; limiter.gates=|true; limiter.fleet_order=|false;
limiter.hold=|300ms; limiter.shadow=||token_bucket|fixed_window; limiter.grace=50ms;
limiter.full_after=500ms; limiter.rest_after=20s; limiter.period=100ms;
store.on_failure=error|open|closed|local; upstream.limits=|30/s|30/s; upstream.servers=|3;
upstream.queue=0|2; upstream.latency=log_normal(40ms, 160ms); upstream.failures=|0.1;
upstream.doubled=|0.1; client.timeout=|120ms;
client.retries=none|fixed|exponential|full|equal|decorrelated; client.pause=20ms; client.cap=100ms;
client.attempts=1|4|1000000; client.budget=|10; client.breaker=|true; client.adaptive=|true;
client.throttle=|1.5; client.throttle_window=500ms; clock.offset=|500ms;)");

/// Such a world, and trouble.
struct Trouble {
  explicit Trouble(std::uint64_t seed) : rng(sim::stream(seed, 0, 0x65666665)) {
    for (const auto& [path, choices] : troubles) {
      const std::string& text = choices[rng.below(choices.size())];
      if (text.empty()) continue;
      sim::scenario::set(scenario, path, {text});
      texts[path] = text;
    }
    if (!texts.contains("upstream.limits")) scenario.upstream.limits.clear();
    using namespace std::chrono_literals;
    using Kind = sim::FaultPlan::Kind;
    const sim::FaultPlan all[] = {
        {.kind = Kind::store_down, .at = 700ms, .length = 300ms},
        {.kind = Kind::network_loss, .at = 1200ms, .length = 200ms, .factor = 0.5},
        {.kind = Kind::store_failover, .at = 1500ms, .length = 50ms},
        {.kind = Kind::worker_pause, .at = 1700ms, .length = 200ms},
        {.kind = Kind::upstream_down, .at = 2000ms, .length = 200ms},
        {.kind = Kind::upstream_second, .at = 1s, .limit = {8, 500ms}},
    };
    for (const sim::FaultPlan& fault : all) {
      if (rng.below(2) == 0) scenario.faults.push_back(fault);
    }
  }

  SeededRng rng;
  sim::Scenario scenario;
  std::map<std::string, std::string> texts;
};

inline bool is_valid(const sim::Scenario& scenario) {
  try {
    sim::scenario::validate_values(scenario);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

/// Runs a world that may set what does nothing.
inline sim::RunResult run_idle(const sim::Scenario& scenario, const sim::RunOptions& options) {
  const auto none = [](Store&) { return sim::RehearsedClient(); };
  return sim::rehearse(scenario, none, options);
}

}  // namespace sluice::test
