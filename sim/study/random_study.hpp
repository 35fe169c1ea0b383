// Random worlds: a scenario with every kind of limiter, fault and client that goes together.
// Threading: pure.
#pragma once

#include <cstdint>

#include "sim/study/study.hpp"

namespace sluice::sim::scenario {

/// A study of one run, drawn from `seed`: to_toml() prints it.
[[nodiscard]] Study random_study(std::uint64_t seed);

}  // namespace sluice::sim::scenario
