// The kernel of the sliding window counter. Its twins are backends/redis/lua/sliding_counter_*.lua:
// same names, same order.
#include "sluice/algorithms/sliding_counter.hpp"

#include <algorithm>

namespace sluice {
namespace {

using Rule = SlidingCounterRule;
using State = Rule::State;
using Args = Rule::Args;
using BlockArgs = Rule::BlockArgs;

__extension__ typedef __int128 Wide;

/// floor(a * b / c). The twin makes it of parts of ten bits. REQUIRES: a <= 2^42, b <= 2^42,
/// 0 < c <= 2^42.
Word scale(Word a, Word b, Word c) noexcept { return static_cast<Word>(Wide{a} * b / c); }

/// What `units` of the window before weigh, `rest` before the current one ends.
Word weigh(Word units, Word rest, Word span) noexcept {
  return units - scale(units, span - rest, span);
}

/// The counts at one instant, before a request is looked at.
struct Moment {
  State state;  // with the window that `at` lies in
  Word at;      // the instant that the rule sees
  Word estimate;
  bool given_up;
  bool weighed;  // what was counted is now an estimate of it
};

Word estimate(const State& state, Word at) noexcept {
  return state.current + weigh(state.previous, state.start + state.span - at, state.span);
}

/// The windows of `span` up to `at`.
State advanced(const State& state, Word at) noexcept {
  const Word start = at - at % state.span;
  if (start == state.start) return state;
  return {start, state.span, 0, start == state.start + state.span ? state.current : 0};
}

/// The same key under another span. What the old window holds counts as admitted now; and what
/// came before it, which the old counts do not know, as a full window.
State converted(const State& state, const Args& args, Word at) noexcept {
  const State old = advanced(state, at);
  const Word held = old.current + old.previous;
  const Word before = args.span > state.span && held > 0 ? args.limit : 0;
  return {at - at % args.span, args.span, std::min(estimate(old, at), Rule::max_limit), before};
}

Moment moment(const State& state, const Args& args, Word now) noexcept {
  Moment m{state, now, 0, false, false};
  if (state.span == 0) {
    m.state = {now - now % args.span, args.span, 0, 0};
    return m;
  }
  if (state.start > now + Rule::max_ahead) {
    m.given_up = m.weighed = true;
    const Word all = std::min(state.current + state.previous, args.limit - args.cost);
    m.state = {now - now % args.span, args.span, all, 0};
    m.estimate = all;
    return m;
  }
  m.at = std::max(now, state.start);
  m.state = state.span == args.span ? advanced(state, m.at) : converted(state, args, m.at);
  m.weighed = state.span != args.span;
  m.estimate = estimate(m.state, m.at);
  return m;
}

/// The first instant at which `units` of the window that ends at `end` weigh `room` or less in the
/// window after it. REQUIRES: units > 0.
Word eased(Word units, Word room, Word end, Word span) noexcept {
  if (room >= units) return end;
  return end + span - scale(room, span, units);
}

/// The first instant at which the cost fits. REQUIRES: it does not now.
Word fits_at(const Moment& m, const Args& args) noexcept {
  const Word end = m.state.start + m.state.span;
  const Word room = args.limit - args.cost;
  if (room > m.state.current && m.state.previous > 0) {
    return eased(m.state.previous, room - m.state.current, m.state.start, m.state.span);
  }
  if (m.state.current == 0) return end;
  return eased(m.state.current, room, end, m.state.span);
}

/// From `now` until nothing counts any more.
Word clear_after(const State& state, Word now) noexcept {
  if (state.current > 0) return state.start + 2 * state.span - now;
  return state.previous > 0 ? state.start + state.span - now : 0;
}

Args args_of(const Arguments& a) noexcept { return {a[0], a[1], a[2]}; }
BlockArgs block_args_of(const Arguments& a) noexcept { return {a[0], a[1], a[2]}; }

Word check_adjust(const Arguments& args) noexcept {
  if (const Word status = Rule::check({args[0], args[1], 0}); status < 0) return status;
  if (args[2] < 0) return -static_cast<Word>(Errc::invalid_cost);
  const bool fits = args[2] <= word_limit && args[3] >= 0 &&
                    args[3] <= static_cast<Word>(Rule::Change::reward) && args[4] >= 0 &&
                    args[4] <= word_limit;
  return fits ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

Word check_block(const Arguments& words) noexcept {
  const BlockArgs args = block_args_of(words);
  const Word status = Rule::check({args.limit, args.span, 0});
  const bool fits =
      status == Verdict::allowed && args.length >= 0 && args.length <= Rule::max_block;
  return fits ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

/// The counts and how long the key is closed, unless they are not a counter's.
bool read(const StateView& view, State& state) noexcept {
  state = {view[0], view[1], view[2], view[3]};
  if (state.span >= Rule::blocked) {
    state.span -= Rule::blocked;
    state.closed = view[5];
  }
  const bool fits = state.span <= Rule::max_span && state.current <= Rule::max_limit &&
                    state.previous <= Rule::max_limit;
  if (!fits) view.call_corrupt();
  return fits;
}

void write(const Moment& m, Word now, Word closed, Effects& effects) noexcept {
  effects.put(0, m.state.start);
  effects.put(1, now < closed ? m.state.span + Rule::blocked : m.state.span);
  effects.put(2, m.state.current);
  effects.put(3, m.state.previous);
  if (m.weighed) effects.put(4, now);
}

Verdict decide(const StateView& view, const RuleRequest& request, Word now, Effects& effects,
               bool spends) noexcept {
  const Args args = args_of(request.args);
  if (const Word status = Rule::check(args); status < 0) return {status, 0, 0, 0};
  State state;
  if (!read(view, state)) return Verdict::failed(Errc::corrupt_state);

  Moment m = moment(state, args, now);
  const Word room = std::max(Word{0}, args.limit - m.estimate);
  const Word left = now < state.closed ? 0 : room;
  const Word clear = std::max(clear_after(m.state, now), state.closed - now);
  if (args.cost > left) {
    const Word fits = args.cost > room ? fits_at(m, args) : now;
    return {Verdict::refused, left, std::max(fits, state.closed) - now, clear};
  }
  if (!spends || args.cost == 0) return {Verdict::allowed, left, 0, clear};
  m.state.current += args.cost;
  write(m, now, 0, effects);
  return {Verdict::allowed, left - args.cost, 0, clear_after(m.state, now)};
}

}  // namespace

Word SlidingCounterRule::worst_case(Word limit, Word span) noexcept {
  return limit + (span < 2 ? 0 : scale(limit, span - 2, span));
}

Verdict SlidingCounterRule::take(const StateView& state, const RuleRequest& request, Word now,
                                 Effects& effects) noexcept {
  return decide(state, request, now, effects, true);
}

Verdict SlidingCounterRule::peek(const StateView& state, const RuleRequest& request, Word now,
                                 Effects& effects) noexcept {
  return decide(state, request, now, effects, false);
}

Verdict SlidingCounterRule::reset(const StateView& state, const RuleRequest& request, Word /*now*/,
                                  Effects& effects) noexcept {
  for (std::size_t i = 0; i < 4; ++i) (void)state[i];  // a corrupt state shows
  effects.fill(0, 5, 0);
  return {Verdict::allowed, request.args[0], 0, 0};
}

Verdict SlidingCounterRule::adjust(const StateView& view, const RuleRequest& request, Word now,
                                   Effects& effects) noexcept {
  if (const Word status = check_adjust(request.args); status < 0) return {status, 0, 0, 0};
  const Args args{request.args[0], request.args[1], 0};
  const Word amount = std::min(request.args[2], max_limit);
  const auto change = static_cast<Change>(request.args[3]);
  const Word taken = request.args[4];
  State state;
  if (!read(view, state)) return Verdict::failed(Errc::corrupt_state);
  const Word since = view[4];

  Moment m = moment(state, args, now);
  const Word window = taken - taken % args.span;
  const bool is_before = window + args.span == m.state.start;
  Word changed = 0;
  const auto take_off = [&](Word& count) {
    const Word units = std::min(amount - changed, count);
    count -= units;
    changed += units;
  };
  const auto add = [&](Word& count) {
    changed = std::min(amount, max_limit - count);
    count += changed;
  };
  switch (change) {
    case Change::give_back:
      if (m.weighed || taken < since) break;
      if (window == m.state.start) take_off(m.state.current);
      if (is_before) take_off(m.state.previous);
      break;
    case Change::charge:
      if (is_before) add(m.state.previous);
      if (window >= m.state.start) add(m.state.current);
      break;
    case Change::penalize:
      add(m.state.current);
      break;
    case Change::reward:
      take_off(m.state.current);
      take_off(m.state.previous);
      break;
  }
  if (changed > 0) write(m, now, state.closed, effects);
  effects.tell(changed);
  const Word left = std::max(Word{0}, args.limit - estimate(m.state, m.at));
  return {Verdict::allowed, now < state.closed ? 0 : left, 0,
          std::max(clear_after(m.state, now), state.closed - now)};
}

Verdict SlidingCounterRule::block(const StateView& view, const RuleRequest& request, Word now,
                                  Effects& effects) noexcept {
  const BlockArgs args = block_args_of(request.args);
  if (const Word status = check_block(request.args); status < 0) return {status, 0, 0, 0};
  State state;
  if (!read(view, state)) return Verdict::failed(Errc::corrupt_state);

  const Word until = std::min(now + args.length, word_limit);
  if (args.length > 0 && until > state.closed) {
    state.closed = until;
    effects.put(0, state.start);
    effects.put(1, state.span + blocked);
    effects.put(5, until);
  }
  const Moment m = moment(state, {args.limit, args.span, 0}, now);
  const Word left = std::max(Word{0}, args.limit - m.estimate);
  return {Verdict::allowed, now < state.closed ? 0 : left, 0,
          std::max(clear_after(m.state, now), state.closed - now)};
}

Word SlidingCounterRule::check(const Args& args) noexcept {
  if (args.limit < 1 || args.limit > max_limit || args.span < 1 || args.span > max_span) {
    return -static_cast<Word>(Errc::invalid_argument);
  }
  if (args.cost < 0) return -static_cast<Word>(Errc::invalid_cost);
  if (args.cost > args.limit) return -static_cast<Word>(Errc::cost_exceeds_capacity);
  return Verdict::allowed;
}

namespace {

Word check_take(const Arguments& args) noexcept { return Rule::check(args_of(args)); }
Word check_reset(const Arguments& args) noexcept {
  return args[0] < 1 || args[0] > Rule::max_limit ? -static_cast<Word>(Errc::invalid_argument)
                                                  : Verdict::allowed;
}
Word keep_take(const Arguments& args) noexcept { return 2 * args[1] + Rule::max_ahead; }
Word keep_block(const Arguments& args) noexcept { return keep_take(args) + args[2]; }
Word keep_reset(const Arguments& /*args*/) noexcept { return 0; }

}  // namespace

constinit const Operation sliding_counter_take{"sliding_counter.take",
                                               12,
                                               StateKind::sliding_counter,
                                               true,
                                               3,
                                               nullptr,
                                               check_take,
                                               keep_take,
                                               nullptr,
                                               Rule::take};
constinit const Operation sliding_counter_peek{"sliding_counter.peek",
                                               13,
                                               StateKind::sliding_counter,
                                               false,
                                               3,
                                               nullptr,
                                               check_take,
                                               keep_take,
                                               nullptr,
                                               Rule::peek};
constinit const Operation sliding_counter_reset{"sliding_counter.reset",
                                                14,
                                                StateKind::sliding_counter,
                                                true,
                                                1,
                                                nullptr,
                                                check_reset,
                                                keep_reset,
                                                nullptr,
                                                Rule::reset};
constinit const Operation sliding_counter_adjust{"sliding_counter.adjust",
                                                 15,
                                                 StateKind::sliding_counter,
                                                 true,
                                                 5,
                                                 nullptr,
                                                 check_adjust,
                                                 keep_take,
                                                 nullptr,
                                                 Rule::adjust,
                                                 1};
constinit const Operation sliding_counter_block{"sliding_counter.block",
                                                31,
                                                StateKind::sliding_counter,
                                                true,
                                                3,
                                                nullptr,
                                                check_block,
                                                keep_block,
                                                nullptr,
                                                Rule::block};

}  // namespace sluice
