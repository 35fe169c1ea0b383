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
std::vector<Bound> bounds(const Operation& row, const Arguments& call) {
  if (&row == &gate_open) return {{0, 1, 1}};
  const Word ramp = call[2];
  const Word spacing = call[3];
  std::vector<Bound> all{
      {0, 1, 1}, {1, 1, GateRule::max_cap}, {2, spacing, GateRule::max_ramp}, {3, 0, ramp}};
  if (&row == &gate_close) all.push_back({4, 0, word_limit});
  return all;
}

}  // namespace

constinit const Generator generator{StateKind::gate, any, draw, bounds, nullptr};

}  // namespace sluice::testing::detail::gate
