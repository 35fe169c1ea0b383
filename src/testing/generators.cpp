// The table of generators.
#include "src/testing/generators.hpp"

#include <array>

namespace sluice::testing::detail {

std::span<const Generator> generators() {
  // clang-format off
  static const std::array table{
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

const Generator* find_generator(StateKind kind) {
  for (const Generator& generator : generators()) {
    if (generator.kind == kind) return &generator;
  }
  return nullptr;
}

}  // namespace sluice::testing::detail
