// Random requests for gates. Threading: pure functions.
#include <algorithm>
#include <array>

#include "sluice/rules/gate.hpp"
#include "src/testing/generators.hpp"

namespace sluice::testing::detail::gate {
namespace {

Configuration any(Rng& rng) {
  const Word cap = rng.below(8) == 0 ? GateRule::max_cap : log_uniform(rng, 44);
  const Word ramp = rng.below(4) == 0   ? 0
                    : rng.below(8) == 0 ? GateRule::max_ramp
                                        : log_uniform(rng, 36);
  const Word spacing = rng.below(4) == 0 ? ramp : uniform(rng, 0, ramp);
  return {{1, cap, ramp, rng.below(4) == 0 ? spacing / 8 : spacing}, {}};
}
void draw(Rng& rng, const Operation& row, Arguments& args) {
  if (&row == &gate_open) {
    args = {1};
  } else if (&row == &gate_close) {
    const std::array<Word, 5> spans{0, log_uniform(rng, 52), log_uniform(rng, 30),
                                    uniform(rng, 0, args[1]), word_limit};
    args[4] = spans[rng.below(spans.size())];
  }
}
bool impossible(const Operation& row, Arguments& args, std::size_t trial) {
  constexpr std::array<Word, 4> wrong{-1, INT64_MIN, word_limit + 1, INT64_MAX};
  if (trial >= 12) return false;
  if (&row == &gate_open) {
    args = {trial < 4 ? wrong[trial] : Word(trial)};
    return true;
  }
  // The limit, the cap, the ramp: the ranges of the other arguments depend on them.
  args[trial / 4] = wrong[trial % 4];
  if (&row == &gate_close && trial == 11) args[4] = -1;
  return true;
}

}  // namespace

constinit const Generator generator{StateKind::gate, any, draw, impossible, nullptr};

}  // namespace sluice::testing::detail::gate
