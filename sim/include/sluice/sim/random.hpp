// stream(): the random numbers of a simulation, one stream for each entity and purpose. Plain
// values; no threading rule.
#pragma once

#include <cstdint>

#include "sluice/rng.hpp"

namespace sluice::sim {

/// The generator for one purpose of one entity. A part of the model that draws more or less
/// therefore leaves the draws of all others unchanged, and two limiters can be compared under the
/// same arrivals and latencies.
[[nodiscard]] SeededRng stream(std::uint64_t seed, std::uint64_t entity, std::uint64_t purpose);

/// A generator for the states of the delays (see DelayProcess) that `rng` draws; `which` of them.
/// Leaves the draws of `rng` as they are.
[[nodiscard]] SeededRng states_of(SeededRng rng, std::uint64_t which);

}  // namespace sluice::sim
