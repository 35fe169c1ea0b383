// Random requests for the constant rule. Threading: pure functions.
#include <array>

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
bool impossible(const Operation& /*row*/, Arguments& args, std::size_t trial) {
  struct Flaw {
    std::size_t place;
    Word value;
  };
  static constexpr Word big = word_limit + 1;
  static constexpr std::array<Flaw, 12> flaws{{{1, -1},
                                               {1, INT64_MIN},
                                               {1, big},
                                               {1, INT64_MAX},
                                               {2, -1},
                                               {2, 11},
                                               {3, -1},
                                               {3, big},
                                               {0, 1},
                                               {0, word_limit - 1},
                                               {0, -1},
                                               {0, big}}};
  if (trial >= flaws.size()) return false;
  args = {args[0], 10, 10};
  args[flaws[trial].place] = flaws[trial].value;
  return true;
}

}  // namespace

constinit const Generator generator{StateKind::constant, any, draw, impossible, nullptr};

}  // namespace sluice::testing::detail::constant
