// Two runs, and the first event in which they differ. Threading: one
// thread.
#pragma once

#include <string>

#include "sluice/sim/scenario.hpp"

namespace sluice::sim::scenario {

/// "" if the runs of both are the same; else a sentence about the first difference.
[[nodiscard]] std::string run_both(const Scenario& one, const Scenario& other);

}  // namespace sluice::sim::scenario
