// The table of generators.
#include "src/testing/generators.hpp"

#include <array>

namespace sluice::testing::detail {

std::span<const Generator> generators() {
#define SLUICE_GENERATOR(rule) rule::generator,
  static const std::array table{SLUICE_GENERATED_RULES(SLUICE_GENERATOR)};
#undef SLUICE_GENERATOR
  return table;
}

const Generator* find_generator(StateKind kind) {
  for (const Generator& generator : generators()) {
    if (generator.kind == kind) return &generator;
  }
  return nullptr;
}

}  // namespace sluice::testing::detail
