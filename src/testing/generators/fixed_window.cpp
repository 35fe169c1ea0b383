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
std::vector<Bound> bounds(const Operation& row, const Arguments& call) {
  using Rule = FixedWindowRule;
  if (&row == &fixed_window_reset) return {{0, 0, Rule::max_limit}};
  if (&row == &fixed_window_refund) {
    return {{0, 0, Rule::max_limit},
            {1, 0, call[2]},
            {2, call[1], word_limit},
            {3, 0, word_limit, Errc::invalid_cost, Errc::invalid_cost}};
  }
  std::vector<Bound> all;
  const Word width = call[1];
  if (width == 0) {
    for (std::size_t i = 2; i < cost_at; ++i) {
      all.push_back({i, i == 2 ? 0 : call[i - 1], i + 1 == cost_at ? word_limit : call[i + 1]});
    }
  } else {
    const Word origin = call[2];  // of no width and no origin: a calendar that has ended
    all = {{1, origin == 0 ? 0 : origin + 1, Rule::max_width}, {2, 0, width - 1}};
  }
  const Word cost = call[cost_at];
  if (&row == &fixed_window_block) {
    all.push_back({0, 1, Rule::max_limit});
    all.push_back({cost_at, 0, Rule::max_block});
  } else if (&row == &fixed_window_adjust) {
    all.push_back({0, 0, Rule::max_limit});
    all.push_back({cost_at, -word_limit, word_limit, Errc::invalid_cost, Errc::invalid_cost});
  } else {
    all.push_back({0, cost, Rule::max_limit, Errc::cost_exceeds_capacity});
    all.push_back({cost_at, 0, call[0], Errc::invalid_cost, Errc::cost_exceeds_capacity});
  }
  return all;
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

constinit const Generator generator{StateKind::fixed_window, any, draw, bounds, &spender};

}  // namespace sluice::testing::detail::fixed_window
