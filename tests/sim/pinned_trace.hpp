// The traces of two simulated minutes. They must be the same in every build on every machine; a
// change of the model changes them, and is meant to be noticed here.
#pragma once

#include <array>
#include <cstdint>

#include "sluice/sim/fleet.hpp"

namespace sluice::test {

struct PinnedTrace {
  sim::Limiting limiting;
  std::uint64_t trace;
};

inline constexpr std::array<PinnedTrace, 3> pinned_traces{{
    {sim::Limiting::none, 0xbfd8461b8706ba39},
    {sim::Limiting::per_process, 0x7af1cd5de1e34934},
    {sim::Limiting::shared, 0x670456afc5e2de9e},
}};

/// The trace of two minutes with seed 1.
inline std::uint64_t trace_of(sim::Limiting limiting) {
  sim::FleetOptions options;
  options.limiting = limiting;
  sim::Fleet fleet(options);
  fleet.run_for(std::chrono::minutes{2});
  return fleet.result().trace;
}

}  // namespace sluice::test
