// The parameters and the faults of a scenario by their names in files, as "arrivals.rate": one
// table for files, --set, sweeps, and the reference that sluice-sim prints. Threading: pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
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
  bool (*differs)(const Scenario& a, const Scenario& b);  ///< in its value
  std::string (*form)();                                  ///< which texts it takes, for people
};

/// In the order of Scenario's members.
[[nodiscard]] std::span<const Parameter> parameters();

/// Throws std::invalid_argument, with the nearest one, if there is none with this path.
[[nodiscard]] const Parameter& parameter(std::string_view path);

/// Sets one. Throws std::invalid_argument with the path, or, for one that does not exist, the
/// nearest one that does.
void set(Scenario& scenario, std::string_view path, const Texts& texts);

/// A kind of fault, and what it takes besides `at`.
struct FaultInfo {
  enum Takes : unsigned {
    takes_length = 1,
    takes_share = 2,  ///< of the workers
    takes_factor = 4,
    share_of_messages = 8,  ///< the factor is a share: 0 does nothing; of others, 1 does
    takes_step = 16,
    takes_limit = 32,
  };
  std::string_view name;
  FaultPlan::Kind kind;
  unsigned takes;
  std::string_view help;

  [[nodiscard]] bool has(Takes what) const noexcept { return (takes & what) != 0; }
  /// The factor with which it does nothing.
  [[nodiscard]] double harmless() const noexcept { return has(share_of_messages) ? 0 : 1; }
};

/// The keys of a fault's values in files.
inline constexpr std::pair<FaultInfo::Takes, std::string_view> fault_keys[] = {
    {FaultInfo::takes_length, "for"},    {FaultInfo::takes_share, "share"},
    {FaultInfo::takes_factor, "factor"}, {FaultInfo::takes_step, "step"},
    {FaultInfo::takes_limit, "limit"},
};

/// In the order of FaultPlan::Kind.
[[nodiscard]] std::span<const FaultInfo> faults_info();
[[nodiscard]] const FaultInfo& info_of(FaultPlan::Kind kind);
/// Throws std::invalid_argument with the nearest name.
[[nodiscard]] FaultPlan::Kind parse_fault(std::string_view name);

}  // namespace sluice::sim::scenario
