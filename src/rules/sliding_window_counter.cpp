// The kernel of the sliding window counter. Its twin is
// backends/redis/lua/rules/sliding_window_counter.lua: same names, same order.
#include "sluice/rules/sliding_window_counter.hpp"

#include <algorithm>

namespace sluice {
namespace {

using Rule = SlidingWindowCounterRule;
using State = Rule::State;
using Args = Rule::Args;
using BlockArgs = Rule::BlockArgs;

__extension__ typedef __int128 Wide;

/// floor(a * b / c). The twin computes it in parts of ten bits. REQUIRES: a <= 2^42, b <= 2^42, 0 <
/// c <= 2^42.
Word scale(Word a, Word b, Word c) noexcept { return static_cast<Word>(Wide{a} * b / c); }

/// The counts at one instant. Changed in place: copying words that were just written would cost as
/// much as the rest.
struct CounterView {
  State state;        // with the window that contains `at`
  Word at = 0;        // the time of the decision
  Word estimate = 0;  // the weighted count at that time
};

/// Advances the stored counts to `now`.
void measure(CounterView& m, const Args& args, Word now) noexcept {
  State& s = m.state;
  if (s.start > now + Rule::max_ahead) {  // the clock was set back
    const Word units = std::min(s.current + s.previous, args.limit - args.cost);
    s = {now - now % args.span, units, 0, s.closed};
    m.at = now;
    return;
  }
  m.at = std::max(now, s.start);
  const Word start = m.at - m.at % args.span;
  if (start == s.start) return;
  s = {start, 0, start == s.start + args.span ? s.current : 0, s.closed};
}

/// The count of the current window, plus the weighted one of the previous window.
void count(CounterView& m, Word span) noexcept {
  const State& s = m.state;
  m.estimate = s.current + s.previous - scale(s.previous, m.at - s.start, span);
}

/// The first time at which `room` or less counts. REQUIRES: more does now.
Word fits_at(const State& s, Word span, Word room) noexcept {
  const Word end = s.start + span;
  if (room < s.current) return end + span - scale(room, span, s.current);
  return end - scale(room - s.current, span, s.previous);
}

/// The time from `now` until no unit counts and no block is in force.
Word clear_after(const State& s, Word span, Word now) noexcept {
  const Word clear_at = s.current > 0 ? s.start + 2 * span : s.previous > 0 ? s.start + span : now;
  return std::max(clear_at, s.closed) - now;
}

/// The verdict on a request that is admitted and spends nothing.
Verdict standing(const CounterView& m, const Args& args, Word now) noexcept {
  const Word left = now < m.state.closed ? 0 : std::max(Word{0}, args.limit - m.estimate);
  return {Verdict::allowed, left, 0, clear_after(m.state, args.span, now)};
}

Args args_of(const Arguments& a) noexcept { return {a[0], a[1], a[2]}; }
BlockArgs block_args_of(const Arguments& a) noexcept { return {a[0], a[1], a[2]}; }

Word check_adjust(const Arguments& args) noexcept {
  if (const Word status = Rule::check({args[0], args[1], 0}); status < 0) return status;
  if (args[2] < 0 || args[2] > word_limit) return -static_cast<Word>(Errc::invalid_cost);
  const bool fits = args[3] >= 0 && args[3] <= static_cast<Word>(Rule::Change::reward) &&
                    args[4] >= 0 && args[4] <= word_limit;
  return fits ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

Word check_block(const Arguments& words) noexcept {
  const BlockArgs args = block_args_of(words);
  const Word status = Rule::check({args.limit, args.span, 0});
  const bool fits =
      status == Verdict::allowed && args.length >= 0 && args.length <= Rule::max_block;
  return fits ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

/// False if the words cannot be a counter's.
bool read(const StateView& view, State& state) noexcept {
  state = {view[0], view[1], view[2], view[3]};
  const bool fits = state.current <= Rule::max_limit && state.previous <= Rule::max_limit;
  if (!fits) view.call_corrupt();
  return fits;
}

void write(const State& state, Effects& effects) noexcept {
  effects.put(0, state.start);
  effects.put(1, state.current);
  effects.put(2, state.previous);
}

Verdict decide(const StateView& view, const RuleRequest& request, Word now, Effects& effects,
               bool spends) noexcept {
  const Args args = args_of(request.args);
  if (const Word status = Rule::check(args); status < 0) return {status, 0, 0, 0};
  CounterView m;
  if (!read(view, m.state)) return Verdict::failed(Errc::corrupt_state);

  measure(m, args, now);
  count(m, args.span);
  const Verdict seen = standing(m, args, now);
  const Word room = args.limit - args.cost;
  if (now < m.state.closed || m.estimate > room) {
    const Word fits = m.estimate > room ? fits_at(m.state, args.span, room) : now;
    return {Verdict::refused, seen.remaining, std::max(fits, m.state.closed) - now,
            seen.reset_after};
  }
  if (!spends || args.cost == 0) return seen;
  m.state.current += args.cost;
  write(m.state, effects);
  if (m.state.closed > 0) effects.put(3, 0);
  return {Verdict::allowed, seen.remaining - args.cost, 0, m.state.start + 2 * args.span - now};
}

}  // namespace

Word SlidingWindowCounterRule::worst_case(Word limit, Word span) noexcept {
  return limit + (span < 2 ? 0 : scale(limit, span - 2, span));
}

Verdict SlidingWindowCounterRule::acquire(const StateView& state, const RuleRequest& request,
                                          Word now, Effects& effects) noexcept {
  return decide(state, request, now, effects, true);
}

Verdict SlidingWindowCounterRule::peek(const StateView& state, const RuleRequest& request, Word now,
                                       Effects& effects) noexcept {
  return decide(state, request, now, effects, false);
}

Verdict SlidingWindowCounterRule::reset(const StateView& state, const RuleRequest& request,
                                        Word /*now*/, Effects& effects) noexcept {
  for (std::size_t i = 0; i < 4; ++i) (void)state[i];  // detects corrupt words
  effects.fill(0, 4, 0);
  return {Verdict::allowed, request.args[0], 0, 0};
}

Verdict SlidingWindowCounterRule::adjust(const StateView& view, const RuleRequest& request,
                                         Word now, Effects& effects) noexcept {
  if (const Word status = check_adjust(request.args); status < 0) return {status, 0, 0, 0};
  const Args args{request.args[0], request.args[1], 0};
  const Word amount = std::min(request.args[2], max_limit);
  const auto change = static_cast<Change>(request.args[3]);
  const Word window = request.args[4] - request.args[4] % args.span;
  CounterView m;
  if (!read(view, m.state)) return Verdict::failed(Errc::corrupt_state);

  measure(m, args, now);
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
    case Change::refund:
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
  effects.add_output(changed);
  if (changed > 0) write(m.state, effects);
  count(m, args.span);
  return standing(m, args, now);
}

Verdict SlidingWindowCounterRule::block(const StateView& view, const RuleRequest& request, Word now,
                                        Effects& effects) noexcept {
  const BlockArgs args = block_args_of(request.args);
  if (const Word status = check_block(request.args); status < 0) return {status, 0, 0, 0};
  CounterView m;
  if (!read(view, m.state)) return Verdict::failed(Errc::corrupt_state);

  const Word until = std::min(now + args.length, word_limit);
  if (args.length > 0 && until > m.state.closed) {
    m.state.closed = until;
    effects.put(0, m.state.start);
    effects.put(3, until);
  }
  const Args asked{args.limit, args.span, 0};
  measure(m, asked, now);
  count(m, args.span);
  return standing(m, asked, now);
}

Word SlidingWindowCounterRule::check(const Args& args) noexcept {
  if (args.limit < 1 || args.limit > max_limit || args.span < 1 || args.span > max_span) {
    return -static_cast<Word>(Errc::invalid_argument);
  }
  if (args.cost < 0) return -static_cast<Word>(Errc::invalid_cost);
  if (args.cost > args.limit) return -static_cast<Word>(Errc::cost_exceeds_capacity);
  return Verdict::allowed;
}

namespace {

Word check_acquire(const Arguments& args) noexcept { return Rule::check(args_of(args)); }
Word check_reset(const Arguments& args) noexcept {
  return args[0] < 1 || args[0] > Rule::max_limit ? -static_cast<Word>(Errc::invalid_argument)
                                                  : Verdict::allowed;
}
Word ttl_take(const Arguments& args) noexcept { return 2 * args[1] + Rule::max_ahead; }
Word ttl_block(const Arguments& args) noexcept { return ttl_take(args) + args[2]; }
Word ttl_reset(const Arguments& /*args*/) noexcept { return 0; }

}  // namespace

constinit const Operation sliding_window_counter_acquire{
    .name = "sliding_window_counter.acquire",
    .id = 12,
    .kind = StateKind::sliding_window_counter,
    .writes = true,
    .argument_count = 3,
    .check = check_acquire,
    .ttl = ttl_take,
    .decide = Rule::acquire,
    .grants = Operation::Grants::cost,
    .without_store = Operation::WithoutStore::fresh_state,
    .share = Operation::Share::limit,
    .arguments = {{.index = 2, .name = "cost", .role = Argument::Role::cost}},
};
constinit const Operation sliding_window_counter_peek{
    .name = "sliding_window_counter.peek",
    .id = 13,
    .kind = StateKind::sliding_window_counter,
    .writes = false,
    .argument_count = 3,
    .check = check_acquire,
    .ttl = ttl_take,
    .decide = Rule::peek,
    .without_store = Operation::WithoutStore::fresh_state,
    .share = Operation::Share::limit,
    .arguments = {{.index = 2, .name = "cost", .role = Argument::Role::cost}},
};
constinit const Operation sliding_window_counter_reset{
    .name = "sliding_window_counter.reset",
    .id = 14,
    .kind = StateKind::sliding_window_counter,
    .writes = true,
    .argument_count = 1,
    .check = check_reset,
    .ttl = ttl_reset,
    .decide = Rule::reset,
};
constinit const Operation sliding_window_counter_adjust{
    .name = "sliding_window_counter.adjust",
    .id = 15,
    .kind = StateKind::sliding_window_counter,
    .writes = true,
    .argument_count = 5,
    .check = check_adjust,
    .ttl = ttl_take,
    .decide = Rule::adjust,
    .output = 1,
    .arguments = {{.index = 2, .name = "amount"}},
};
constinit const Operation sliding_window_counter_block{
    .name = "sliding_window_counter.block",
    .id = 31,
    .kind = StateKind::sliding_window_counter,
    .writes = true,
    .argument_count = 3,
    .check = check_block,
    .ttl = ttl_block,
    .decide = Rule::block,
    .arguments = {{.index = 2, .name = "span", .unit = "us"}},
};

}  // namespace sluice
