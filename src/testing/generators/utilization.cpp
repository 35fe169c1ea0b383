// Random requests for the utilization shedder. Threading: pure functions.
#include <algorithm>
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

std::vector<Bound> bounds(const Operation& row, const Arguments& call) {
  if (row.id == utilization_reset.id) return {{0, Rule::one, Rule::one}};
  const auto [limit, grace, full_after, decay, max_gap, fifth, sixth, seventh] = call;
  std::vector<Bound> all{{0, Rule::one, Rule::one},
                         {1, 0, Rule::max_span - full_after},
                         {3, 1, Rule::one},
                         {4, 1, Rule::max_span}};
  if (row.id == utilization_sample.id) {
    all.push_back({2, 1, Rule::max_span - grace});
    all.push_back({5, 1, sixth});
    all.push_back({6, fifth, Rule::one - 1});
    all.push_back({7, 0, Rule::one});
    return all;
  }
  all.push_back({5, std::max<Word>(1, sixth), Rule::max_tiers});
  all.push_back({6, 0, fifth});
  const bool draws = row.id == utilization_shed.id;
  all.push_back({2, draws ? seventh + 1 : 1, Rule::max_span - grace});
  if (draws) all.push_back({7, 0, full_after - 1});
  return all;
}

}  // namespace

constinit const Generator generator{StateKind::utilization, any, draw, bounds, nullptr};

}  // namespace sluice::testing::detail::utilization
