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

std::vector<Flaw> flaws(const Generator& generator, const Operation& row, const Arguments& call) {
  std::vector<Flaw> all;
  for (const Bound& bound : generator.bounds(row, call)) {
    for (const Word value : {bound.least - 1, bound.most + 1, INT64_MIN, INT64_MAX}) {
      all.push_back({bound.index, value});
    }
  }
  return all;
}

bool spoil(Rng& rng, const Generator& generator, const Operation& row, Arguments& call) {
  const std::vector<Flaw> all = flaws(generator, row, call);
  if (all.empty()) return false;
  const Flaw& flaw = all[rng.below(all.size())];
  call[flaw.index] = flaw.value;
  return true;
}

}  // namespace sluice::testing::detail
