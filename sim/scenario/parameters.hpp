// The parameters of a scenario by their names in files, as "arrivals.rate": one table for files,
// --set, sweeps and the reference in docs/simulation.md. Threading: pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/sim/scenario.hpp"

namespace sluice::sim::scenario {

/// The text of a parameter's value: one, or the items of a list.
using Texts = std::vector<std::string>;

struct Parameter {
  std::string_view path;      ///< "section.name"
  std::string_view standard;  ///< the text of its default
  std::string_view help;      ///< what it means, and its unit
  bool is_list = false;
  void (*set)(Scenario& scenario, const Texts& texts);
};

/// In the order of Scenario's members.
[[nodiscard]] std::span<const Parameter> parameters();

/// Sets one. Throws std::invalid_argument with the path, or, for one that does not exist, the
/// nearest one that does.
void set(Scenario& scenario, std::string_view path, const Texts& texts);

/// The kinds of faults by their names.
[[nodiscard]] std::span<const std::pair<std::string_view, FaultPlan::Kind>> fault_kinds();
[[nodiscard]] std::string_view name_of(FaultPlan::Kind kind);
/// Whether the factor of a fault is a share of messages, and 0 does nothing; of others, 1 does.
[[nodiscard]] bool has_share_as_factor(FaultPlan::Kind kind);

}  // namespace sluice::sim::scenario
