// The traces of two scenarios with most kinds of faults: the same in every build on every machine.
// A change of a model or of a limiter changes them, and is meant to be noticed here.
#pragma once

#include <array>
#include <cstdint>

#include "sluice/sim/run.hpp"

namespace sluice::test {

/// A minute of a fleet whose store fails over, whose API slows down and whose workers crash.
inline sim::Scenario pinned_scenario(bool prefetch) {
  using namespace std::chrono_literals;
  using Kind = sim::FaultPlan::Kind;
  sim::Scenario scenario;
  scenario.jobs.critical = 0.2;
  scenario.limiter.gates = !prefetch;
  scenario.limiter.hold = prefetch ? Span{500ms} : Span{0};
  scenario.store.on_failure = sim::StoreOptions::OnFailure::local;
  scenario.upstream.limits = {{1'000, 10s}};
  scenario.upstream.servers = 20;
  scenario.upstream.latency = sim::Delay::gamma(100ms, 0.7);
  scenario.upstream.crowding = 0.3;
  scenario.client.timeout = 1s;
  scenario.client.retries = sim::ClientOptions::Retries::decorrelated;
  scenario.clock = {.offset = 300ms, .drift = 200};
  scenario.faults = {
      {.kind = Kind::store_failover, .at = 10s, .length = 2s},
      {.kind = Kind::network_loss, .at = 15s, .length = 5s, .factor = 0.1},
      {.kind = Kind::upstream_slow, .at = 25s, .length = 5s, .factor = 3},
      {.kind = Kind::worker_crash, .at = 35s, .length = 3s, .share = 0.3},
      {.kind = Kind::clock_step, .at = 40s, .share = 0.5, .step = -2s},
      {.kind = Kind::upstream_limit, .at = 45s, .length = 5s, .factor = 0.5},
  };
  return scenario;
}

struct PinnedScenario {
  bool prefetch;
  std::uint64_t trace;
};
inline constexpr std::array<PinnedScenario, 2> pinned_scenarios{
    {{false, 0x29b94dd6d0a6f585}, {true, 0xdaa72dc53969218c}}};

}  // namespace sluice::test
