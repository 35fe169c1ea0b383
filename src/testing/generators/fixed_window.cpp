// Random requests for fixed windows. Threading: pure functions.
#include <algorithm>
#include <array>

#include "sluice/rules/fixed_window.hpp"
#include "sluice/virtual_clock.hpp"
#include "src/testing/generators.hpp"

namespace sluice::testing::detail::fixed_window {
namespace {

constexpr std::size_t cost_at = 7;

Configuration even(Word limit, Word width, Word origin) { return {{limit, width, origin}, {}}; }
Configuration between(Word limit, std::array<Word, FixedWindowRule::boundaries> b) {
  std::ranges::sort(b);
  return {{limit, 0, b[0], b[1], b[2], b[3], b[4]}, {}};
}

/// The calendars begin before the present and extend beyond it, possibly with a boundary nearby.
Configuration any(Rng& rng) {
  const Word limit = rng.below(8) == 0 ? FixedWindowRule::max_limit
                                       : log_uniform(rng, 1 + unsigned(rng.below(42)));
  if (rng.below(3) != 0) {
    const Word width = rng.below(8) == 0 ? FixedWindowRule::max_width : log_uniform(rng, 50);
    return even(limit, width, uniform(rng, 0, width - 1));
  }
  const Word start = to_word(VirtualClock::default_start);
  return between(limit,
                 {log_uniform(rng, 49), start - log_uniform(rng, 45), start + log_uniform(rng, 45),
                  word_limit - log_uniform(rng, 40), word_limit});
}
/// One window for all of time.
Configuration frozen(Word limit) {
  return between(limit, {0, word_limit, word_limit, word_limit, word_limit});
}
Configuration slow(Rng& rng) {
  const Word width = uniform(rng, 3'600'000'000, 3 * Word{3'600'000'000});
  return even(1 + Word(rng.below(20)), width, uniform(rng, 0, width - 1));
}
void ask(Arguments& args, Word units) { args[cost_at] = units; }

Word draw_cost(Rng& rng, Word limit) {
  switch (rng.below(6)) {
    case 0:
      return 0;
    case 1:
      return limit;
    case 2:
      return std::min(limit, log_uniform(rng, 42));
    default:
      return uniform(rng, 1, std::min<Word>(limit, 3));
  }
}
/// A window of the configuration, often the one that contains the start of test clocks.
void draw_window(Rng& rng, const Arguments& config, Arguments& args) {
  const Word start = to_word(VirtualClock::default_start);
  if (config[1] == 0) {
    const std::size_t i = 2 + rng.below(FixedWindowRule::boundaries - 1);
    args[1] = config[i];
    args[2] = config[i + 1];
  } else {
    args[1] = std::max<Word>(0, start - (start - config[2]) % config[1]);
    args[2] = std::min(word_limit, args[1] + config[1]);
  }
}
/// About the length of a window, or any length.
Word draw_block(Rng& rng, const Arguments& config) {
  constexpr Word most = FixedWindowRule::max_block;
  const Word width = config[1] == 0 ? log_uniform(rng, 45) : config[1];
  const std::array<Word, 5> spans{0, 1, 1 + width / 3, log_uniform(rng, 44), most};
  return std::min(most, spans[rng.below(spans.size())]);
}
void draw(Rng& rng, const Operation& row, Arguments& args) {
  const Arguments config = args;
  const Word limit = config[0];
  if (&row == &fixed_window_reset) {
    args = {limit};
  } else if (&row == &fixed_window_refund) {
    args = {limit};
    draw_window(rng, config, args);
    args[3] = rng.below(8) == 0 ? log_uniform(rng, 52) : draw_cost(rng, limit);
  } else {
    if (rng.below(16) == 0) args = {limit};  // a calendar that ended in 1970
    if (&row == &fixed_window_block) {       // a block may end beyond the last boundary
      if (args[1] == 0 && rng.below(2) == 0) args[5] = args[6] = args[4];
      return ask(args, draw_block(rng, config));
    }
    const Word units = draw_cost(rng, limit);
    const bool adjusts = &row == &fixed_window_adjust;
    ask(args, !adjusts            ? units
              : rng.below(8) == 0 ? word_limit - 2 * word_limit * Word(rng.below(2))
              : rng.below(2) == 0 ? -units
                                  : 2 * units);
  }
}
bool impossible(const Operation& row, Arguments& args, std::size_t trial) {
  if (trial >= 7) return false;
  const Word limit = args[0];
  if (&row == &fixed_window_reset) {
    constexpr std::array<Word, 7> limits{-1, INT64_MIN,      word_limit + 1, INT64_MAX,
                                         -7, word_limit * 2, -word_limit};
    args = {limits[trial]};
    return true;
  }
  const std::array<Word, 3> costs{-1, INT64_MIN, limit + 1};
  const std::array<Word, 4> wrong{-1, INT64_MIN, word_limit + 1, INT64_MAX};
  if (&row == &fixed_window_adjust && trial < 3) {
    const std::array<Word, 3> amounts{-word_limit - 1, INT64_MIN, word_limit + 1};
    ask(args, amounts[trial]);
    return true;
  }
  if (&row == &fixed_window_block && trial < 3) {
    const std::array<Word, 3> spans{-1, INT64_MIN, FixedWindowRule::max_block + 1};
    ask(args, spans[trial]);
    return true;
  }
  if (&row == &fixed_window_refund) {
    args = {limit, 0, 1};
    if (trial < 3) {
      args[3] = trial < 2 ? costs[trial] : word_limit + 1;
    } else {
      args[trial % 2 == 0 ? 1 : 2] = wrong[trial - 3];
      if (args[1] <= args[2] && args[1] >= 0 && args[2] <= word_limit) args[1] = args[2] + 1;
    }
    return true;
  }
  if (trial < 3) {
    ask(args, costs[trial]);
  } else {
    args[1] = wrong[trial - 3];
  }
  return true;
}
/// An interval overlaps one window more than fit into it, at most all.
Wide most(const Configuration& config, Word us) {
  const Arguments& a = config.args;
  if (a[1] > 0) return Wide{a[0]} * (us / a[1] + 2);
  Wide windows = 0;
  for (std::size_t i = 2; i + 2 < a.size(); ++i) windows += a[i] < a[i + 1] ? 1 : 0;
  return windows * a[0];
}

constexpr Spender spender{&fixed_window_acquire, &fixed_window_peek, frozen, slow, ask, most};

}  // namespace

constinit const Generator generator{StateKind::fixed_window, any, draw, impossible, &spender};

}  // namespace sluice::testing::detail::fixed_window
