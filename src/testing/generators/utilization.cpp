// Random requests for the utilization shedder. Threading: pure functions.
#include <algorithm>
#include <array>
#include <utility>

#include "sluice/rules/utilization.hpp"
#include "src/testing/generators.hpp"

namespace sluice::testing::detail::utilization {
namespace {

using Rule = UtilizationRule;

// A configuration contains arguments that the rows have at different indices: good, bad and the
// number of tiers.
Configuration any(Rng& rng) {
  Configuration config;
  const auto [good, bad] =
      std::minmax({uniform(rng, 1, Rule::one - 1), uniform(rng, 1, Rule::one - 1)});
  const Word tiers = rng.below(8) != 0 ? uniform(rng, 1, 15) : uniform(rng, 1, Rule::max_tiers);
  if (rng.below(4) != 0) {  // short spans, so that a few calls in a row reach every branch
    const Word grace = rng.below(4) != 0 ? 0 : log_uniform(rng, 22);
    config.args = {Rule::one,
                   grace,
                   log_uniform(rng, 22),
                   std::min(Rule::one, log_uniform(rng, 20)),
                   log_uniform(rng, 24),
                   good,
                   bad,
                   tiers};
    return config;
  }
  const auto spans = [&rng](Word most) { return std::min(most, log_uniform(rng, 32)); };
  const Word full_after = rng.below(8) == 0 ? Rule::max_span : spans(Rule::max_span);
  const Word grace = std::min(spans(Rule::max_span) - 1, Rule::max_span - full_after);
  config.args = {Rule::one,
                 grace,
                 full_after,
                 std::min(Rule::one, log_uniform(rng, 20)),
                 spans(Rule::max_span),
                 good,
                 bad,
                 tiers};
  return config;
}

Word share(Rng& rng) {
  switch (rng.below(6)) {
    case 0:
      return 0;
    case 1:
    case 2:
      return uniform(rng, 0, Rule::one);
    default:
      return Rule::one;
  }
}

void draw(Rng& rng, const Operation& row, Arguments& args) {
  const Word tiers = args[7];
  if (row.id == utilization_sample.id) {
    args[7] = share(rng);
  } else if (row.id == utilization_reset.id) {
    args = {Rule::one};
  } else {
    args[5] = tiers;
    args[6] = uniform(rng, rng.below(2) == 0 ? tiers : 0, tiers);
    args[7] = row.id == utilization_peek.id || rng.below(4) != 0 ? 0 : uniform(rng, 0, args[2] - 1);
  }
}

bool impossible(const Operation& row, Arguments& args, std::size_t trial) {
  if (row.id == utilization_reset.id) {
    if (trial > 0) return false;
    args = {Rule::one + 1};
    return true;
  }
  struct Wrong {
    std::size_t place;
    Word value;
  };
  // The arguments of some rows, then those of all.
  static constexpr std::array<Wrong, 6> sample{
      {{7, Rule::one + 1}, {7, -1}, {5, 0}, {5, Rule::one}, {6, 0}, {6, Rule::one}}};
  static constexpr std::array<Wrong, 6> shed{
      {{5, 0}, {5, Rule::max_tiers + 1}, {6, -1}, {6, INT64_MAX}, {7, -1}, {7, Rule::max_span}}};
  static constexpr std::array<Wrong, 11> pace{{{0, 0},
                                               {0, Rule::one + 1},
                                               {1, -1},
                                               {1, Rule::max_span},
                                               {2, 0},
                                               {2, Rule::max_span + 1},
                                               {3, 0},
                                               {3, Rule::one + 1},
                                               {4, 0},
                                               {4, Rule::max_span + 1},
                                               {4, INT64_MIN}}};
  const bool samples = row.id == utilization_sample.id;
  const std::size_t own = row.id == utilization_peek.id ? 4 : 6;
  if (trial >= own + pace.size()) return false;
  args = samples ? Arguments{args[0], args[1], args[2], args[3], args[4], 1, 1, 0}
                 : Arguments{args[0], args[1], args[2], args[3], args[4], 1, 0, 0};
  Wrong wrong = trial >= own ? pace[trial - own] : samples ? sample[trial] : shed[trial];
  if (row.id == utilization_shed.id && trial == 5)
    wrong.value = args[2];  // the smallest draw that is too high
  args[wrong.place] = wrong.value;
  return true;
}

}  // namespace

constinit const Generator generator{StateKind::utilization, any, draw, impossible, nullptr};

}  // namespace sluice::testing::detail::utilization
