// The kernel of the sliding window counter. Its twins are
// backends/redis/lua/sliding_window_counter_*.lua: same names, same order.
#include "sluice/rules/sliding_window_counter.hpp"

#include <algorithm>

namespace sluice {
namespace {

using Rule = SlidingWindowCounterRule;
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

/// The counts at one instant, before a request is looked at. Changed in place: a copy of words that
/// were just written costs as much as the rest.
struct CounterView {
  State state;           // with the window that `at` lies in, of the span that it was counted by
  Word at = 0;           // the instant that the rule sees
  Word estimate = 0;     // what counts for who asks
  bool weighed = false;  // what was counted is now an estimate of it
  Word full = 0;         // under another span: what counted when the last unit came, or soon after,
  Word since = 0;        // at this instant
};

Word estimate(const State& state, Word at) noexcept {
  return state.current + weigh(state.previous, state.start + state.span - at, state.span);
}

/// How much of the window is left at an instant in it, in full parts of it. Doubles divide faster,
/// and as well: 2^53 holds the product, and no quotient comes nearer to the next part than 2^-42.
Word spare_at(const State& state, Word at) noexcept {
  const Word left = (state.start + state.span - at - 1) * Rule::parts;
  return static_cast<Word>(static_cast<double>(left) / static_cast<double>(state.span));
}

/// The window of `span` around `at`, and the units of it and of the one before.
void open_window(State& state, Word at, Word span, Word current, Word previous = 0) noexcept {
  state.start = at - at % span;
  state.span = span;
  state.current = current;
  state.previous = previous;
  state.spare = current > 0 ? 0 : Rule::parts - 1;
}

/// The windows of the state's span up to `at`.
void advance(State& state, Word at) noexcept {
  const Word start = at - at % state.span;
  if (start == state.start) return;
  open_window(state, at, state.span, 0, start == state.start + state.span ? state.current : 0);
}

/// What is left of `full` units when `args` let them drain for so long. REQUIRES: elapsed >= 0.
Word drained(Word full, Word elapsed, const Args& args) noexcept {
  const Wide gone = Wide{elapsed} * args.limit / args.span;
  return gone >= full ? 0 : full - static_cast<Word>(gone);
}

/// What counts for who asks at `m.at`: what the counts weigh; or less, if what they weighed when
/// the last unit came, under another span, has drained further at the rate of who asks.
void count(CounterView& m, const Args& args) noexcept {
  if (m.state.span != args.span) {
    m.since = m.state.start + m.state.span - m.state.spare * m.state.span / Rule::parts;
    m.full = estimate(m.state, m.since);
  }
  advance(m.state, m.at);
  m.estimate = estimate(m.state, m.at);
  if (m.state.span == args.span || m.estimate == 0 || m.at <= m.since) return;
  m.estimate = std::min(m.estimate, drained(m.full, m.at - m.since, args));
}

/// From the counts as they are stored to those at `now`.
void look(CounterView& m, const Args& args, Word now) noexcept {
  m.at = now;
  if (m.state.span == 0) return open_window(m.state, now, args.span, 0);
  if (m.state.start > now + Rule::max_ahead) {
    m.weighed = true;
    m.estimate = std::min(m.state.current + m.state.previous, args.limit - args.cost);
    return open_window(m.state, now, args.span, m.estimate);
  }
  m.at = std::max(now, m.state.start);
  count(m, args);
}

/// Windows of who asks begin, in which what counts was admitted now. What is not above the limit
/// weighs at no instant less in them than what is left of it when it drains at limit / span, so
/// they forget it no sooner than the bound does. REQUIRES: m.estimate <= args.limit.
void convert(CounterView& m, const Args& args) noexcept {
  if (m.state.span == args.span) return;
  open_window(m.state, m.at, args.span, m.estimate);
  m.weighed = true;
}

/// The first instant at which `units` of the window that ends at `end` weigh `room` or less in the
/// window after it. REQUIRES: units > 0.
Word eased(Word units, Word room, Word end, Word span) noexcept {
  if (room >= units) return end;
  return end + span - scale(room, span, units);
}

/// The first instant at which the counts weigh `room` or less. REQUIRES: they do not now.
Word eases_at(const CounterView& m, Word room) noexcept {
  const Word end = m.state.start + m.state.span;
  if (room > m.state.current && m.state.previous > 0) {
    return eased(m.state.previous, room - m.state.current, m.state.start, m.state.span);
  }
  if (m.state.current == 0) return end;
  return eased(m.state.current, room, end, m.state.span);
}

/// The first instant at which `room` or less counts for who asks. REQUIRES: more does now.
Word fits_at(const CounterView& m, const Args& args, Word room) noexcept {
  const Word eases = eases_at(m, room);
  if (m.state.span == args.span || eases <= m.since) return eases;
  if (drained(m.full, eases - m.since, args) > room) return eases;
  const Word wait = scale(m.full - room, args.span, args.limit);
  return m.since + wait + (drained(m.full, wait, args) > room ? 1 : 0);
}

/// From `now` until nothing counts any more.
Word clear_after(const CounterView& m, const Args& args, Word now) noexcept {
  if (m.state.span != args.span) return m.estimate > 0 ? fits_at(m, args, 0) - now : 0;
  if (m.state.current > 0) return m.state.start + 2 * m.state.span - now;
  return m.state.previous > 0 ? m.state.start + m.state.span - now : 0;
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

/// The counts and how long the key is closed, unless they are not a counter's.
bool read(const StateView& view, State& state) noexcept {
  state = {view[0], view[1], view[2] % Rule::part, view[3]};
  state.spare = view[2] / Rule::part;
  if (state.span >= Rule::blocked) {
    state.span -= Rule::blocked;
    state.closed = view[5];
  }
  const bool fits = state.span <= Rule::max_span && state.current <= Rule::max_limit &&
                    state.previous <= Rule::max_limit;
  if (!fits) view.call_corrupt();
  return fits;
}

void write(const CounterView& m, Word now, Word closed, Effects& effects) noexcept {
  effects.put(0, m.state.start);
  effects.put(1, now < closed ? m.state.span + Rule::blocked : m.state.span);
  effects.put(2, m.state.current + m.state.spare * Rule::part);
  effects.put(3, m.state.previous);
  if (m.weighed) effects.put(4, now);
}

Verdict decide(const StateView& view, const RuleRequest& request, Word now, Effects& effects,
               bool spends) noexcept {
  const Args args = args_of(request.args);
  if (const Word status = Rule::check(args); status < 0) return {status, 0, 0, 0};
  CounterView m;
  if (!read(view, m.state)) return Verdict::failed(Errc::corrupt_state);

  look(m, args, now);
  const Word closed = m.state.closed;
  const Word room = std::max(Word{0}, args.limit - m.estimate);
  const Word left = now < closed ? 0 : room;
  const Word clear = std::max(clear_after(m, args, now), closed - now);
  if (now < closed || m.estimate + args.cost > args.limit) {
    const Word fits =
        m.estimate + args.cost > args.limit ? fits_at(m, args, args.limit - args.cost) : now;
    return {Verdict::refused, left, std::max(fits, closed) - now, clear};
  }
  if (!spends || args.cost == 0) return {Verdict::allowed, left, 0, clear};
  convert(m, args);
  m.state.current += args.cost;
  m.state.spare = spare_at(m.state, m.at);
  write(m, now, 0, effects);
  return {Verdict::allowed, left - args.cost, 0, clear_after(m, args, now)};
}

}  // namespace

Word SlidingWindowCounterRule::worst_case(Word limit, Word span) noexcept {
  return limit + (span < 2 ? 0 : scale(limit, span - 2, span));
}

Verdict SlidingWindowCounterRule::take(const StateView& state, const RuleRequest& request, Word now,
                                       Effects& effects) noexcept {
  return decide(state, request, now, effects, true);
}

Verdict SlidingWindowCounterRule::peek(const StateView& state, const RuleRequest& request, Word now,
                                       Effects& effects) noexcept {
  return decide(state, request, now, effects, false);
}

Verdict SlidingWindowCounterRule::reset(const StateView& state, const RuleRequest& request,
                                        Word /*now*/, Effects& effects) noexcept {
  for (std::size_t i = 0; i < 4; ++i) (void)state[i];  // a corrupt state shows
  effects.fill(0, 5, 0);
  return {Verdict::allowed, request.args[0], 0, 0};
}

Verdict SlidingWindowCounterRule::adjust(const StateView& view, const RuleRequest& request,
                                         Word now, Effects& effects) noexcept {
  if (const Word status = check_adjust(request.args); status < 0) return {status, 0, 0, 0};
  const Args args{request.args[0], request.args[1], 0};
  const Word amount = std::min(request.args[2], max_limit);
  const auto change = static_cast<Change>(request.args[3]);
  const Word taken = request.args[4];
  CounterView m;
  if (!read(view, m.state)) return Verdict::failed(Errc::corrupt_state);
  const State stored = m.state;
  const Word since = view[4];

  look(m, args, now);
  const auto answer = [&]() -> Verdict {
    const Word left = std::max(Word{0}, args.limit - m.estimate);
    return {Verdict::allowed, now < stored.closed ? 0 : left, 0,
            std::max(clear_after(m, args, now), stored.closed - now)};
  };
  const Verdict unchanged = answer();
  const bool adds = change == Change::charge || change == Change::penalize;
  // Over the limit the windows stay as they are, since those of who asks would forget it too soon.
  if (adds && m.estimate <= args.limit) convert(m, args);
  const Word span = m.state.span;
  const Word window = taken - taken % span;
  const bool is_before = window + span == m.state.start;
  Word changed = 0;
  const auto take_off = [&](Word& count) {
    const Word units = std::min(amount - changed, count);
    count -= units;
    changed += units;
  };
  const auto add = [&](Word& count) {
    changed = std::min(amount, max_limit - count);
    count += changed;
    if (changed > 0) m.state.spare = spare_at(m.state, m.at);
  };
  switch (change) {
    case Change::give_back:
      if (m.weighed || span != args.span || taken < since) break;
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
  if (changed == 0) return unchanged;
  if (!adds && m.state.start == stored.start + span) {
    // Nothing came, so that what drains is still what the windows of then weighed.
    const Word rest = m.state.previous;
    m.state = stored;
    m.state.current = rest;
  }
  write(m, now, stored.closed, effects);
  count(m, args);
  return answer();
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
    effects.put(1, m.state.span + blocked);
    effects.put(5, until);
  }
  const Args asked{args.limit, args.span, 0};
  look(m, asked, now);
  const Word left = std::max(Word{0}, args.limit - m.estimate);
  return {Verdict::allowed, now < m.state.closed ? 0 : left, 0,
          std::max(clear_after(m, asked, now), m.state.closed - now)};
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

Word check_take(const Arguments& args) noexcept { return Rule::check(args_of(args)); }
Word check_reset(const Arguments& args) noexcept {
  return args[0] < 1 || args[0] > Rule::max_limit ? -static_cast<Word>(Errc::invalid_argument)
                                                  : Verdict::allowed;
}
Word ttl_take(const Arguments& args) noexcept { return 2 * args[1] + Rule::max_ahead; }
Word ttl_block(const Arguments& args) noexcept { return ttl_take(args) + args[2]; }
Word ttl_reset(const Arguments& /*args*/) noexcept { return 0; }

}  // namespace

constinit const Operation sliding_window_counter_take{
    .name = "sliding_window_counter.take",
    .id = 12,
    .kind = StateKind::sliding_window_counter,
    .writes = true,
    .argument_count = 3,
    .check = check_take,
    .ttl = ttl_take,
    .decide = Rule::take,
};
constinit const Operation sliding_window_counter_peek{
    .name = "sliding_window_counter.peek",
    .id = 13,
    .kind = StateKind::sliding_window_counter,
    .writes = false,
    .argument_count = 3,
    .check = check_take,
    .ttl = ttl_take,
    .decide = Rule::peek,
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
};

}  // namespace sluice
