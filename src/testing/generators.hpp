// Random requests for the rows of the table of operations: one generator for each kind of state. A
// new algorithm adds its file and a line here, and every claim then covers its rows. Threading:
// pure functions.
#pragma once

#include <array>
#include <span>

#include "src/testing/generator.hpp"
#include "src/testing/generators/fixed_window.hpp"
#include "src/testing/generators/gate.hpp"
#include "src/testing/generators/leases.hpp"
#include "src/testing/generators/shared_sliding_window.hpp"
#include "src/testing/generators/shared_token_bucket.hpp"
#include "src/testing/generators/sliding_window.hpp"
#include "src/testing/generators/sliding_window_counter.hpp"
#include "src/testing/generators/slot_lock.hpp"
#include "src/testing/generators/token_bucket.hpp"
#include "src/testing/generators/utilization.hpp"
#include "src/testing/generators/wait_line.hpp"

namespace sluice::testing::detail {

/// In the order of the kinds' numbers.
inline std::span<const Generator> generators() {
  // clang-format off
  static constexpr std::array table{
      token_bucket::generator,
      sliding_window::generator,
      sliding_window_counter::generator,
      fixed_window::generator,
      shared_sliding_window::generator,
      shared_token_bucket::generator,
      leases::generator,
      slot_lock::generator,
      utilization::generator,
      gate::generator,
      wait_line::generator,
  };
  // clang-format on
  return table;
}

inline const Generator* find_generator(StateKind kind) {
  for (const Generator& generator : generators()) {
    if (generator.kind == kind) return &generator;
  }
  return nullptr;
}

}  // namespace sluice::testing::detail
