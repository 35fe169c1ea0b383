// Which step of a trace grants units, and how many: what matchers count. Threading: pure functions.
#pragma once

#include <optional>

#include "sluice/testing/trace.hpp"

namespace sluice::testing::detail {

/// The request of a call for a grant.
struct Asked {
  const TracedStep* step;  ///< the first granting step
  Word cost;
};

/// None for peeks, refunds and configuration: calls that never grant.
inline std::optional<Asked> find_asked(const TracedCall& call) {
  std::size_t told = 0;
  for (const TracedStep& step : call.steps) {
    const Operation& row = *step.operation;
    switch (row.grants) {
      case Operation::Grants::nothing:
        break;
      case Operation::Grants::one:
        return Asked{&step, 1};
      case Operation::Grants::cost:
        return Asked{&step, step.args[row.arguments.find(Argument::Role::cost)->index]};
      case Operation::Grants::up_to_cost:
        return Asked{&step, told < call.output.size() ? call.output[told] : 0};
    }
    told += output_count(row, step.table.size());
  }
  return {};
}

}  // namespace sluice::testing::detail
