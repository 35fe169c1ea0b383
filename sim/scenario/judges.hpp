// The judges of every run: the checkers of sluice/testing/invariants.hpp on what was recorded, and
// whether the fleet recovers. Threading: pure.
#pragma once

#include "sim/scenario/fleet_run.hpp"
#include "sluice/sim/run.hpp"

namespace sluice::sim::scenario {

/// Looks at the grants and the waits. Sets the figures bound_excess and bypassed.
void judge_safety(const Scenario& scenario, const FleetRun& run, RunResult& result);

/// Looks whether the goodput is back `within` after the last fault; zero: is not asked. Sets the
/// figure recovery. REQUIRES: the series is in the result.
void judge_recovery(const Scenario& scenario, Span within, RunResult& result);

}  // namespace sluice::sim::scenario
