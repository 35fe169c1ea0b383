// The kernel of the fixed window. Its twins are backends/redis/lua/fixed_window_*.lua: same names,
// same order.
#include "sluice/algorithms/fixed_window.hpp"

#include <algorithm>

namespace sluice {
namespace {

using Rule = FixedWindowRule;
using State = Rule::State;
using Args = Rule::Args;
using GiveBackArgs = Rule::GiveBackArgs;

State state_of(const StateView& state) noexcept { return {state[0], state[1]}; }

Word check(const Arguments& words) noexcept {
  const auto args = detail::unpack<Args>(words);
  if (args.cost < 0) return -static_cast<Word>(Errc::invalid_cost);
  if (args.cost > args.limit) return -static_cast<Word>(Errc::cost_exceeds_capacity);
  const Word* const b = args.boundary;
  bool fine = args.limit <= word_limit && args.width >= 0 && args.width <= Rule::max_width;
  if (args.width > 0) {
    fine = fine && b[0] >= 0 && b[0] < args.width;
  } else {
    fine = fine && b[0] >= 0 && b[4] <= word_limit && std::is_sorted(b, b + Rule::boundaries);
  }
  return fine ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

Word check_give_back(const Arguments& words) noexcept {
  const auto args = detail::unpack<GiveBackArgs>(words);
  if (args.cost < 0) return -static_cast<Word>(Errc::invalid_cost);
  if (args.cost > args.limit) return -static_cast<Word>(Errc::cost_exceeds_capacity);
  const bool fine = args.limit <= word_limit && args.begin >= 0 && args.begin <= args.end &&
                    args.end <= word_limit;
  return fine ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

Word check_reset(const Arguments& words) noexcept {
  const bool fine = words[0] >= 0 && words[0] <= word_limit;
  return fine ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

struct Window {
  Word begin;
  Word end;  // not after `begin`: there is none
};

Window window_at(const Args& args, Word at) noexcept {
  const Word* const b = args.boundary;
  if (args.width > 0) {
    if (at < b[0]) return {0, b[0]};
    const Word begin = at - (at - b[0]) % args.width;
    return {begin, begin + args.width};
  }
  for (std::size_t i = 0; i + 1 < Rule::boundaries; ++i) {
    if (b[i] <= at && at < b[i + 1]) return {b[i], b[i + 1]};
  }
  return {0, 0};
}

/// The present window, before a request is looked at.
struct Moment {
  Window window;
  Word used;
};

Moment moment(const State& state, const Args& args, Word now) noexcept {
  const bool set_back = state.start > now + Rule::max_ahead;
  const Window window = window_at(args, set_back ? now : std::max(now, state.start));
  Word used = state.start >= window.begin ? std::min(state.used, args.limit) : 0;
  if (set_back) used = std::min(used, args.limit - args.cost);
  return {window, used};
}

/// How long it takes until nothing of the window is used any more.
Word reset_after(const Moment& m, Word used, Word now) noexcept {
  return used > 0 ? m.window.end - now : 0;
}

Verdict decided(const StateView& view, const RuleRequest& request, Word now, Effects* effects) {
  const State state = state_of(view);
  if (const Word status = check(request.args); status < 0) return {status, 0, 0, 0};
  const auto args = detail::unpack<Args>(request.args);

  const Moment m = moment(state, args, now);
  if (m.window.end <= m.window.begin) return Verdict::failed(Errc::outside_calendar);
  const Word want = m.used + args.cost;
  if (want > args.limit) {
    return {Verdict::refused, args.limit - m.used, m.window.end - now, reset_after(m, m.used, now)};
  }
  if (effects == nullptr) {
    return {Verdict::allowed, args.limit - m.used, 0, reset_after(m, m.used, now)};
  }
  if (args.cost > 0) {
    effects->put(0, m.window.begin);
    effects->put(1, want);
  }
  return {Verdict::allowed, args.limit - want, 0, reset_after(m, want, now)};
}

Verdict take(const StateView& view, const RuleRequest& request, Word now,
             Effects& effects) noexcept {
  return decided(view, request, now, &effects);
}

Verdict peek(const StateView& view, const RuleRequest& request, Word now,
             Effects& /*effects*/) noexcept {
  return decided(view, request, now, nullptr);
}

Verdict give_back(const StateView& view, const RuleRequest& request, Word now,
                  Effects& effects) noexcept {
  const State state = state_of(view);
  if (const Word status = check_give_back(request.args); status < 0) return {status, 0, 0, 0};
  const auto args = detail::unpack<GiveBackArgs>(request.args);

  const bool same = state.start >= args.begin && state.start < args.end && now < args.end &&
                    state.start <= now + Rule::max_ahead && state.used > 0;
  if (!same) return {Verdict::refused, 0, 0, 0};
  const Word used = std::max(Word{0}, state.used - args.cost);
  if (args.cost > 0) {
    effects.put(0, state.start);
    effects.put(1, used);
  }
  return {Verdict::allowed, std::max(Word{0}, args.limit - used), 0, used > 0 ? args.end - now : 0};
}

Verdict reset(const StateView& view, const RuleRequest& request, Word /*now*/,
              Effects& effects) noexcept {
  (void)state_of(view);
  if (const Word status = check_reset(request.args); status < 0) return {status, 0, 0, 0};
  effects.put(0, 0);
  effects.put(1, 0);
  return {Verdict::allowed, request.args[0], 0, 0};
}

/// The stored window may begin ahead of the clock by max_ahead, and then ends that much later.
Word keep(const Arguments& words) noexcept {
  const auto args = detail::unpack<Args>(words);
  Word longest = args.width;
  for (std::size_t i = 0; args.width == 0 && i + 1 < Rule::boundaries; ++i) {
    longest = std::max(longest, args.boundary[i + 1] - args.boundary[i]);
  }
  return std::min(longest + Rule::max_ahead, word_limit);
}

Word keep_given_back(const Arguments& words) noexcept {
  const auto args = detail::unpack<GiveBackArgs>(words);
  return std::min(args.end - args.begin + Rule::max_ahead, word_limit);
}

Word keep_nothing(const Arguments& /*words*/) noexcept { return 0; }

}  // namespace

constinit const Operation fixed_window_take{
    .name = "fixed_window.take",
    .id = 16,
    .kind = StateKind::fixed_window,
    .writes = true,
    .argument_count = 8,
    .apply = nullptr,
    .check = check,
    .keep = keep,
    .decide = take,
};
constinit const Operation fixed_window_peek{
    .name = "fixed_window.peek",
    .id = 17,
    .kind = StateKind::fixed_window,
    .writes = false,
    .argument_count = 8,
    .apply = nullptr,
    .check = check,
    .keep = keep,
    .decide = peek,
};
constinit const Operation fixed_window_give_back{
    .name = "fixed_window.give_back",
    .id = 18,
    .kind = StateKind::fixed_window,
    .writes = true,
    .argument_count = 4,
    .apply = nullptr,
    .check = check_give_back,
    .keep = keep_given_back,
    .decide = give_back,
};
constinit const Operation fixed_window_reset{
    .name = "fixed_window.reset",
    .id = 19,
    .kind = StateKind::fixed_window,
    .writes = true,
    .argument_count = 1,
    .apply = nullptr,
    .check = check_reset,
    .keep = keep_nothing,
    .decide = reset,
};

}  // namespace sluice
