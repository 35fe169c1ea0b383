// Random requests for the shared sliding window's setting. Threading: pure functions.
#include <algorithm>

#include "sluice/decision.hpp"
#include "sluice/rules/shared_sliding_window.hpp"
#include "src/testing/generators.hpp"

namespace sluice::testing::detail::shared_sliding_window {
namespace {

Configuration any(Rng& rng) {
  Configuration config;
  config.args[0] = log_uniform(rng, 16);
  return config;
}
void draw(Rng& rng, const Operation& row, Arguments& args) {
  // Twelve days or more: an error has no time, so that no configuration may expire while the suite
  // runs on a store in real time.
  const Word keep_alive = rng.below(8) == 0 ? log_uniform(rng, 51) | Word{1} << 40
                                            : SharedSlidingWindowRule::max_keep_alive;
  if (row.id == shared_sliding_window_configure.id) {
    const Word longest = std::min(keep_alive, SharedSlidingWindowRule::max_interval);
    const Word interval = rng.below(2) == 0 ? longest : uniform(rng, 1, longest);
    const Word constant = rng.below(2) == 0 ? 0 : unlimited;
    args = {rng.below(6) == 0 ? constant : log_uniform(rng, 16), interval, uniform(rng, 0, 1),
            uniform(rng, 0, 2), keep_alive};
  } else if (row.id == shared_sliding_window_expect.id) {
    // Versions of configurations made in the first microseconds are small numbers.
    const Word version = rng.below(2) == 0 ? uniform(rng, 0, 4) : log_uniform(rng, 52);
    args = {log_uniform(rng, 16), version, rng.below(3) == 0 ? 0 : log_uniform(rng, 16), keep_alive,
            rng.below(3) == 0 ? log_uniform(rng, 52) : 0};
  } else {
    args = {log_uniform(rng, 16), keep_alive};
  }
}
std::vector<Bound> bounds(const Operation& row, const Arguments& call) {
  using Rule = SharedSlidingWindowRule;
  if (row.id == shared_sliding_window_configure.id) {
    const Word rate = call[0];
    const Word interval = call[1];
    const Word keep_alive = call[4];
    return {{0, rate == unlimited ? unlimited : 0, rate == unlimited ? unlimited : Rule::max_rate},
            {1, 1, std::min(keep_alive, Rule::max_interval)},
            {2, 0, 1},
            {3, 0, 2},
            {4, interval, Rule::max_keep_alive}};
  }
  if (row.id == shared_sliding_window_config.id) {
    return {{0, 0, word_limit}, {1, 1, Rule::max_keep_alive}};
  }
  return {{0, 0, word_limit},
          {1, 0, word_limit},
          {2, 0, Rule::max_rate, Errc::invalid_cost, Errc::cost_exceeds_capacity},
          {3, 1, Rule::max_keep_alive},
          {4, 0, word_limit}};
}

}  // namespace

constinit const Generator generator{StateKind::shared_sliding_window, any, draw, bounds, nullptr};

}  // namespace sluice::testing::detail::shared_sliding_window
