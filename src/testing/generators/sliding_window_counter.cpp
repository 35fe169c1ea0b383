// Random requests for the sliding window counter. Threading: pure functions.
#include <algorithm>
#include <array>

#include "sluice/rules/sliding_window_counter.hpp"
#include "sluice/virtual_clock.hpp"
#include "src/testing/generators.hpp"

namespace sluice::testing::detail::sliding_window_counter {
namespace {

using Rule = SlidingWindowCounterRule;

Configuration with(Word limit, Word span) {
  Configuration config;
  config.args[0] = limit;
  config.args[1] = span;
  return config;
}
/// Half of them are so large that their products exceed the integers of a double.
Configuration any(Rng& rng) {
  if (rng.below(2) == 0) return with(uniform(rng, 1, 40), uniform(rng, 1, 100));
  return with(std::min(Rule::max_limit, log_uniform(rng, 41)),
              std::min(Rule::max_span, log_uniform(rng, 43)));
}
Configuration frozen(Word limit) {
  return with(limit, std::min(Rule::max_span, 2 * limit * Word{86'400'000'000}));
}
Configuration slow(Rng& rng) {
  return with(uniform(rng, 1, 20), uniform(rng, 72'000'000'000, 720'000'000'000));
}
void ask(Arguments& args, Word units) { args[2] = units; }
void draw(Rng& rng, const Operation& row, Arguments& args) {
  if (row.id == sliding_window_counter_reset.id) return;
  if (row.id == sliding_window_counter_block.id) {
    const std::array<Word, 5> spans{0, 1, args[1], log_uniform(rng, 44), Rule::max_block};
    return ask(args, std::min(Rule::max_block, spans[rng.below(spans.size())]));
  }
  if (row.id == sliding_window_counter_adjust.id) {
    args[3] = uniform(rng, 0, 3);
    args[4] = to_word(VirtualClock::default_start) + log_uniform(rng, 42);
  }
  ask(args, rng.below(3) == 0 ? uniform(rng, 0, args[0])
                              : uniform(rng, 0, std::max<Word>(1, args[0] / 4)));
}
std::vector<Bound> bounds(const Operation& row, const Arguments& call) {
  // A reset is checked by stores alone.
  if (row.id == sliding_window_counter_reset.id) return {};
  std::vector<Bound> all{{1, 1, Rule::max_span}};
  if (row.id == sliding_window_counter_block.id) {
    all.push_back({0, 1, Rule::max_limit});
    all.push_back({2, 0, Rule::max_block});
  } else if (row.id == sliding_window_counter_adjust.id) {
    all.push_back({0, 1, Rule::max_limit});
    all.push_back({2, 0, word_limit, Errc::invalid_cost, Errc::invalid_cost});
    all.push_back({3, 0, 3});
    all.push_back({4, 0, word_limit});
  } else {
    const Word cost = call[2];
    all.push_back({0, std::max<Word>(1, cost), Rule::max_limit,
                   cost > 1 ? Errc::cost_exceeds_capacity : Errc::invalid_argument});
    all.push_back({2, 0, call[0], Errc::invalid_cost, Errc::cost_exceeds_capacity});
  }
  return all;
}
/// Each aligned window admits at most the limit, and an interval of n spans overlaps n + 1 of them.
Wide most(const Configuration& config, Word us) {
  return static_cast<Wide>(us / config.args[1] + 2) * config.args[0];
}

constexpr Spender spender{
    &sliding_window_counter_acquire, &sliding_window_counter_peek, frozen, slow, ask, most};

}  // namespace

constinit const Generator generator{StateKind::sliding_window_counter, any, draw, bounds, &spender};

}  // namespace sluice::testing::detail::sliding_window_counter
