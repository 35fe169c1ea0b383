// Random requests for the wait line: few clients, so that they repeat, and arrivals that are close
// together. Threading: pure functions.
#include <algorithm>

#include "sluice/rules/wait_line.hpp"
#include "src/testing/generators.hpp"

namespace sluice::testing::detail::wait_line {
namespace {

using Rule = WaitLineRule;

/// A configuration's arguments are those of turn.
Configuration any(Rng& rng) {
  return {{rng.below(4) == 0 ? word_limit : uniform(rng, 0, 100), 1, 1,
           std::clamp(log_uniform(rng, 30), Rule::min_ttl, Rule::max_ttl), 1, 0, 1, 0},
          {}};
}

Word draw_client(Rng& rng) {
  if (rng.below(16) == 0) return word_limit;
  return rng.below(4) == 0 ? uniform(rng, 1, 400) : uniform(rng, 1, 6);
}
Word draw_arrival(Rng& rng) {
  if (rng.below(16) == 0) return word_limit;
  return rng.below(4) == 0 ? log_uniform(rng, 52) : uniform(rng, 1, 8);
}

Word draw_units(Rng& rng) {
  if (rng.below(16) == 0) return Rule::max_units;
  return uniform(rng, 1, 3);
}
Word draw_enough(Rng& rng) {
  if (rng.below(16) == 0) return word_limit;
  return rng.below(2) == 0 ? 0 : log_uniform(rng, 12);
}

void draw(Rng& rng, const Operation& row, Arguments& args) {
  const Word ttl = rng.below(4) == 0 ? Rule::max_ttl : args[3];
  args[1] = draw_client(rng);
  args[2] = draw_arrival(rng);
  args[3] = ttl;
  args[4] = draw_units(rng);
  args[5] = rng.below(2) == 0 ? 0 : draw_arrival(rng);
  args[6] = draw_units(rng);
  args[7] = draw_enough(rng);
  if (row.id == wait_line_leave.id && rng.below(3) == 0) args[2] = 0;
  std::fill(args.begin() + row.argument_count, args.end(), 0);
}

std::vector<Bound> bounds(const Operation& row, const Arguments& /*call*/) {
  const bool leaves = row.id == wait_line_leave.id;
  std::vector<Bound> all{{0, 0, word_limit},
                         {1, 1, word_limit},
                         {2, leaves ? 0 : 1, word_limit},
                         {3, Rule::min_ttl, Rule::max_ttl},
                         {4, 1, Rule::max_units},
                         {5, 0, word_limit},
                         {6, 1, Rule::max_units},
                         {7, 0, word_limit}};
  all.resize(row.argument_count, all[0]);
  return all;
}

}  // namespace

constinit const Generator generator{StateKind::wait_line, any, draw, bounds, nullptr};

}  // namespace sluice::testing::detail::wait_line
