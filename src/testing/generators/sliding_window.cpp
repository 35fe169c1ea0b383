// Random requests for the sliding windows. Threading: pure functions.
#include <algorithm>
#include <array>

#include "sluice/rules/sliding_window.hpp"
#include "src/testing/generators.hpp"

namespace sluice::testing::detail::sliding_window {

void add(Configuration& config, Word limit, Word span) {
  const bool first = config.table.empty();
  config.args[0] = first ? limit : std::min(config.args[0], limit);
  config.args[3] = std::max(config.args[3], span);
  config.table.push_back(limit);
  config.table.push_back(span);
}

LogEntry any_entry(Rng& rng, std::span<const Word> state) {
  constexpr std::size_t head_words = 13;
  const auto is_sound = [](Word word) { return word >= 0 && word <= word_limit; };
  if (state.size() < head_words ||
      !std::all_of(state.begin(), state.begin() + head_words, is_sound) || state[4] < 1 ||
      state[4] > state[2]) {
    return {0, 0};
  }
  const Word age = uniform(rng, 1, state[4]);
  const Word slot = state[3] >= age ? state[3] - age : state[3] - age + state[2];
  const Word at = static_cast<Word>(head_words) + 5 * state[8] + 2 * slot;
  const bool is_there = at >= 0 && at < static_cast<Word>(state.size());
  const Word time = is_there ? state[static_cast<std::size_t>(at)] : 0;
  return {std::clamp<Word>(state[5] - age, 0, word_limit), std::clamp<Word>(time, 0, word_limit)};
}

namespace {

using Rule = SlidingWindowRule;

/// Common windows, tiny ones that end all the time, and the largest ones.
Configuration any(Rng& rng) {
  Configuration config;
  const auto windows = uniform(rng, 1, rng.below(3) == 0 ? Word{Rule::max_windows} : 3);
  const auto sort = rng.below(8);
  for (Word k = 0; k < windows; ++k) {
    if (sort == 0) {
      add(config, std::min(Rule::max_limit, log_uniform(rng, rng.below(2) == 0 ? 17 : 41)),
          std::min(Rule::max_span, log_uniform(rng, 45)));
    } else if (sort < 4) {
      add(config, uniform(rng, 1, 12), uniform(rng, 1, 30));
    } else {
      add(config, log_uniform(rng, 6), 1'000 * log_uniform(rng, 17));
    }
  }
  return config;
}
Configuration frozen(Word limit) {
  Configuration config;
  add(config, limit, 2 * Word{86'400'000'000});
  return config;
}
Configuration slow(Rng& rng) {
  Configuration config;
  add(config, uniform(rng, 1, 20), uniform(rng, 3'600'000'000, 36'000'000'000));
  add(config, uniform(rng, 1, 40), uniform(rng, 7'200'000'000, 72'000'000'000));
  return config;
}
void ask(Arguments& args, Word units) {
  args[1] = units;
  args[2] = 0;
}
void draw(Rng& rng, const Operation& row, Arguments& args) {
  const Word limit = args[0];
  const Word units =
      rng.below(4) == 0 ? uniform(rng, 0, limit) : uniform(rng, 0, std::min<Word>(limit, 3));
  if (row.id == sliding_window_reset.id) return;
  if (row.id == sliding_window_settle.id) {
    args = {limit,
            rng.below(8) == 0 ? log_uniform(rng, 52) : units,
            uniform(rng, 0, 20),
            log_uniform(rng, 50),
            uniform(rng, 0, 1),
            Rule::max_span};
    return;
  }
  if (row.id == sliding_window_block.id) {
    const std::array<Word, 4> spans{0, args[3], log_uniform(rng, 45), Rule::max_block};
    args = {limit, std::min(Rule::max_block, spans[rng.below(spans.size())]), args[3]};
    return;
  }
  if (row.id == sliding_window_reward.id) {
    const Word most = rng.below(4) == 0 ? log_uniform(rng, 52) : units;
    args = {limit, most, args[3]};
    return;
  }
  ask(args, units);
  if (rng.below(4) == 0) args[2] = std::min(Rule::max_ahead_of_time, log_uniform(rng, 45));
}
std::vector<Bound> bounds(const Operation& row, const Arguments& call) {
  if (row.id == sliding_window_reset.id) return {};
  if (row.id == sliding_window_settle.id) {
    return {{1, 0, word_limit, Errc::invalid_cost, Errc::invalid_cost},
            {2, 0, word_limit},
            {3, 0, word_limit},
            {4, 0, 1},
            {5, 0, word_limit}};
  }
  if (row.id == sliding_window_reward.id) {
    return {{1, 0, word_limit, Errc::invalid_cost, Errc::invalid_cost}, {2, 1, Rule::max_span}};
  }
  if (row.id == sliding_window_block.id) return {{1, 0, Rule::max_block}, {2, 1, Rule::max_span}};
  return {{1, 0, call[0], Errc::invalid_cost, Errc::cost_exceeds_capacity},
          {2, 0, Rule::max_ahead_of_time},
          {3, 1, Rule::max_span}};
}
/// Intervals of a window's span hold at most its limit, whatever the other windows.
Wide most(const Configuration& config, Word us) {
  Wide result = -1;
  for (std::size_t i = 0; i < config.table.size(); i += 2) {
    const Wide bound = static_cast<Wide>(us / config.table[i + 1] + 1) * config.table[i];
    if (result < 0 || bound < result) result = bound;
  }
  return result;
}

constexpr Spender spender{&sliding_window_acquire, &sliding_window_peek, frozen, slow, ask, most};

}  // namespace

constinit const Generator generator{StateKind::sliding_window, any, draw, bounds, &spender};

}  // namespace sluice::testing::detail::sliding_window
