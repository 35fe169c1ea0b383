// Random requests for the learned rate. Threading: pure functions.
#include <algorithm>
#include <array>

#include "sluice/rules/learned_rate.hpp"
#include "sluice/virtual_clock.hpp"
#include "src/testing/generators.hpp"

namespace sluice::testing::detail::learned_rate {
namespace {

using Rule = LearnedRateRule;

Word any_rate(Rng& rng) { return std::min(Rule::max_rate, log_uniform(rng, 40)); }

Configuration any(Rng& rng) {
  std::array<Word, 3> rates{any_rate(rng), any_rate(rng), any_rate(rng)};
  if (rng.below(2) == 0) rates = {1'000'000, uniform(rng, 1, 50) * 1'000'000, 100'000'000};
  std::sort(rates.begin(), rates.end());
  Configuration config;
  config.args[0] = rng.below(2) == 0 ? 2 : log_uniform(rng, 40);
  config.args[1] = rates[1];
  config.args[2] = rates[0];
  config.args[3] = rates[2];
  config.args[4] = rng.below(2) == 0
                       ? Rule::min_forget
                       : std::min(Rule::max_forget, Rule::min_forget + log_uniform(rng, 45));
  return config;
}

/// The largest cost that the least rate can bring, up to `most`.
Word most_cost(const Arguments& args, Word most) {
  const Wide units = Wide{args[2]} * (Rule::max_need - 1) / 1'000'000'000'000;
  return static_cast<Word>(std::min<Wide>(units, std::min(most, Rule::max_cost)));
}

void draw(Rng& rng, const Operation& row, Arguments& args) {
  const Word now = to_word(VirtualClock::default_start);
  if (row.id == learned_rate_reset.id) return;
  if (row.id == learned_rate_acquire.id || row.id == learned_rate_peek.id) {
    args[5] = most_cost(args, rng.below(4) == 0 ? log_uniform(rng, 41) : uniform(rng, 0, 3));
    return;
  }
  if (row.id == learned_rate_block.id) {
    args[5] = rng.below(4) == 0 ? log_uniform(rng, 44) : uniform(rng, 0, 200'000);
    return;
  }
  if (row.id == learned_rate_told.id) {
    args[5] = rng.below(2) == 0 ? 0 : any_rate(rng);
    args[6] = rng.below(2) == 0 ? word_limit : uniform(rng, 0, 20);
    args[7] = rng.below(4) == 0 ? log_uniform(rng, 44) : uniform(rng, 0, 200'000);
    return;
  }
  args[5] = rng.below(4) == 0 ? std::min(Rule::max_cost, log_uniform(rng, 41)) : uniform(rng, 0, 3);
  args[6] = row.id == learned_rate_adjust.id ? uniform(rng, 0, 1) : now + log_uniform(rng, 42);
}

std::vector<Bound> bounds(const Operation& row, const Arguments& call) {
  if (row.id == learned_rate_reset.id) return {{0, 1, word_limit}};
  std::vector<Bound> all{{0, 1, word_limit},
                         {1, call[2], call[3]},
                         {3, call[1], Rule::max_rate},
                         {4, Rule::min_forget, Rule::max_forget}};
  const bool asks = row.id == learned_rate_acquire.id || row.id == learned_rate_peek.id;
  if (!asks || call[5] == 0) all.push_back({2, 1, call[1]});  // a cost needs more than the least
  if (asks) {
    all.push_back(
        {5, 0, most_cost(call, Rule::max_cost), Errc::invalid_cost, Errc::cost_exceeds_capacity});
    return all;
  }
  if (row.id == learned_rate_told.id) {
    all.push_back({5, 0, Rule::max_rate});
    all.push_back({6, 0, word_limit});
    all.push_back({7, 0, Rule::max_block});
  } else if (row.id == learned_rate_block.id) {
    all.push_back({5, 0, Rule::max_block});
  } else {
    all.push_back({5, 0, Rule::max_cost, Errc::invalid_cost, Errc::invalid_cost});
    all.push_back({6, 0, row.id == learned_rate_adjust.id ? 1 : word_limit});
  }
  return all;
}

}  // namespace

constinit const Generator generator{StateKind::learned_rate, any, draw, bounds, nullptr};

}  // namespace sluice::testing::detail::learned_rate
