// The parameters, faults and metrics as texts for people: what `sluice-sim parameters` and
// `sluice-sim metrics` print, and docs/parameters.md shows. Threading: pure.
#pragma once

#include <string>

namespace sluice::sim::scenario {

/// Each parameter with its default, what it takes, what it means and what it needs; then the
/// faults.
[[nodiscard]] std::string parameters_text();

/// Each metric with its unit and what it is.
[[nodiscard]] std::string metrics_text();

}  // namespace sluice::sim::scenario
