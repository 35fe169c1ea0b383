// Random requests for the constant rule. Threading: pure functions.
#include "sluice/rules/constant.hpp"
#include "src/testing/generators.hpp"

namespace sluice::testing::detail::constant {
namespace {

Configuration any(Rng& rng) { return {{rng.below(2) == 0 ? 0 : unlimited}, {}}; }
void draw(Rng& rng, const Operation& /*row*/, Arguments& args) {
  args[1] = rng.below(4) == 0 ? 0 : log_uniform(rng, rng.below(2) == 0 ? 4 : 52);
  args[2] = rng.below(3) == 0 ? uniform(rng, 0, args[1]) : args[1];
  args[3] = rng.below(2) == 0 ? 0 : log_uniform(rng, 52);
}
/// A limit is 0 or unlimited.
std::vector<Bound> bounds(const Operation& /*row*/, const Arguments& call) {
  const Word cost = call[1];
  const Word least = call[2];
  return {{0, call[0], call[0]},
          {1, least, word_limit, error_below(least), Errc::cost_exceeds_capacity},
          {2, 0, cost, Errc::invalid_cost},
          {3, 0, word_limit}};
}

}  // namespace

constinit const Generator generator{StateKind::constant, any, draw, bounds, nullptr};

}  // namespace sluice::testing::detail::constant
