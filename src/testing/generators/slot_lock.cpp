// Random requests for slot locks. Threading: pure functions.
#include <algorithm>
#include <array>

#include "sluice/rules/slot_lock.hpp"
#include "sluice/virtual_clock.hpp"
#include "src/testing/generators.hpp"

namespace sluice::testing::detail::slot_lock {
namespace {

Configuration any(Rng& rng) {
  if (rng.below(8) == 0) return {{1, SlotLockRule::max_interval}, {}};
  return {{1, log_uniform(rng, rng.below(2) == 0 ? 25 : 44)}, {}};
}
void draw(Rng& rng, const Operation& row, Arguments& args) {
  const Word interval = args[1];
  if (&row == &slot_lock_reset) {
    args = {1};
  } else if (&row == &slot_lock_cancel) {
    // Often one of the first slots after the start of test clocks.
    const Word start = to_word(VirtualClock::default_start);
    args[2] = rng.below(4) == 0 ? log_uniform(rng, 52)
                                : std::min(word_limit, start + interval * Word(rng.below(4)));
  } else if (&row == &slot_lock_block) {
    const std::array<Word, 5> spans{0, 1, interval, log_uniform(rng, 44), SlotLockRule::max_block};
    args[2] = std::min(SlotLockRule::max_block, spans[rng.below(spans.size())]);
  } else {
    const std::array<Word, 5> waits{0, interval, interval * 2 - 1, log_uniform(rng, 36),
                                    SlotLockRule::max_horizon};
    args[2] = std::min(SlotLockRule::max_horizon, waits[rng.below(waits.size())]);
  }
}
std::vector<Bound> bounds(const Operation& row, const Arguments& /*call*/) {
  using Rule = SlotLockRule;
  if (&row == &slot_lock_reset) return {{0, 1, 1}};
  const Word most = &row == &slot_lock_cancel  ? word_limit
                    : &row == &slot_lock_block ? Rule::max_block
                                               : Rule::max_horizon;
  return {{0, 1, 1}, {1, 1, Rule::max_interval}, {2, 0, most}};
}

}  // namespace

constinit const Generator generator{StateKind::slot_lock, any, draw, bounds, nullptr};

}  // namespace sluice::testing::detail::slot_lock
