// Pilots: runs that tell how long a scenario takes to forget its empty start. Threading: each call
// belongs to one thread; several may run side by side.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/sim/rehearse.hpp"

namespace sluice::sim::scenario {

inline constexpr std::size_t pilots = 10;

/// Throws std::invalid_argument if no pilot can tell the warm-up.
void validate_pilots(const Scenario& scenario);

/// The jobs without an answer in pilot 0 to `pilots` - 1: the mean of each thousandth of the time
/// before the first fault, in thousandths of a job. Throws Stopped. REQUIRES: validate() accepts
/// the scenario.
[[nodiscard]] std::vector<std::uint64_t> run_pilot(const Scenario& scenario, std::size_t pilot,
                                                   const MakeRehearsedClient& make,
                                                   const std::atomic<bool>* stop);

/// The warm-up by what run_pilot() returned for each pilot. Throws std::invalid_argument if the
/// time that they looked at is too short.
[[nodiscard]] Span warm_up_by(const Scenario& scenario,
                              const std::vector<std::vector<std::uint64_t>>& series);

}  // namespace sluice::sim::scenario
