// The kernel of the gate. Its twin is backends/redis/lua/rules/gate.lua: same names, same order.
#include "sluice/rules/gate.hpp"

#include <algorithm>

namespace sluice {
namespace {

using Rule = GateRule;
using State = Rule::State;
using Args = Rule::Args;

State state_of(const StateView& state) noexcept { return {state[0], state[1]}; }
Args args_of(const Arguments& a) noexcept { return {a[0], a[1], a[2], a[3], a[4]}; }

Word check(const Arguments& words) noexcept {
  const Args args = args_of(words);
  const bool fine = args.limit == 1 && args.cap >= 1 && args.cap <= Rule::max_cap &&
                    args.ramp >= 0 && args.ramp <= Rule::max_ramp && args.spacing >= 0 &&
                    args.spacing <= args.ramp && args.span >= 0 && args.span <= word_limit;
  return fine ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

Word check_open(const Arguments& words) noexcept {
  return words[0] == 1 ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

/// False for states that no rule writes: a closure longer than the longest cap, or a next call
/// beyond the longest ramp.
bool is_possible(const State& state) noexcept {
  return state.until <= state.mark + Rule::max_cap &&
         state.mark <= state.until + 2 * Rule::max_ramp;
}

/// The gate at one instant, before a request.
struct GateView {
  bool shut;     // closed, or within the ramp
  bool renewed;  // the clock was set back: the closure counts from now
  Word until;
  Word due;  // the time at which the next call may pass
};

GateView moment(const State& state, const Args& args, Word now) noexcept {
  const Word stamp = std::min(state.mark, state.until);
  if (stamp > now + Rule::max_ahead) {
    const Word until = now + std::min(state.until - stamp, args.cap);
    return {true, true, until, until};
  }
  const Word free_at = state.until + args.ramp;
  if (state.until == 0 || now >= free_at) return {false, false, state.until, now};
  return {true, false, state.until, std::min(std::max(state.mark, state.until), free_at)};
}

/// From `now` until the gate is free.
Word left(const GateView& m, const Args& args, Word now) noexcept {
  return m.shut ? m.until + args.ramp - now : 0;
}

Verdict refused(const GateView& m, const Args& args, Word now) noexcept {
  return {Verdict::refused, 0, m.due - now, left(m, args, now)};
}

Verdict close(const StateView& view, const RuleRequest& request, Word now,
              Effects& effects) noexcept {
  const State state = state_of(view);
  if (const Word status = check(request.args); status < 0) return {status, 0, 0, 0};
  if (!is_possible(state)) {
    view.call_corrupt();
    return {};
  }
  const Args args = args_of(request.args);

  GateView m = moment(state, args, now);
  const Word until = std::min(now + std::min(args.span, args.cap), word_limit);
  if (until > now && (until > m.until || m.renewed)) {
    const Word latest = std::max(until, m.until);
    m = {true, false, latest, latest};
    effects.put(0, m.until);
    effects.put(1, now);
  }
  return {Verdict::allowed, now >= m.due || m.renewed ? 1 : 0, 0, left(m, args, now)};
}

Verdict pass(const StateView& view, const RuleRequest& request, Word now,
             Effects& effects) noexcept {
  const State state = state_of(view);
  if (const Word status = check(request.args); status < 0) return {status, 0, 0, 0};
  if (!is_possible(state)) {
    view.call_corrupt();
    return {};
  }
  const Args args = args_of(request.args);

  const GateView m = moment(state, args, now);
  if (!m.shut) return {Verdict::allowed, 1, 0, 0};
  if (now < m.due && !m.renewed) return refused(m, args, now);

  effects.put(0, m.until);
  effects.put(1, m.until > now ? now : std::min(now + args.spacing, word_limit));
  const bool another = m.until <= now && args.spacing == 0;
  return {Verdict::allowed, another ? 1 : 0, 0, left(m, args, now)};
}

Verdict peek(const StateView& view, const RuleRequest& request, Word now,
             Effects& /*effects*/) noexcept {
  const State state = state_of(view);
  if (const Word status = check(request.args); status < 0) return {status, 0, 0, 0};
  if (!is_possible(state)) {
    view.call_corrupt();
    return {};
  }
  const Args args = args_of(request.args);

  const GateView m = moment(state, args, now);
  if (now < m.due && !m.renewed) return refused(m, args, now);
  return {Verdict::allowed, 1, 0, left(m, args, now)};
}

Verdict open(const StateView& view, const RuleRequest& request, Word /*now*/,
             Effects& effects) noexcept {
  (void)state_of(view);
  if (const Word status = check_open(request.args); status < 0) return {status, 0, 0, 0};
  effects.put(0, 0);
  effects.put(1, 0);
  return {Verdict::allowed, 1, 0, 0};
}

/// The cap, not the span of this call, because another limiter may have closed the gate.
Word ttl(const Arguments& words) noexcept {
  const Args args = args_of(words);
  return args.cap + args.ramp + Rule::max_ahead;
}

Word no_ttl(const Arguments& /*words*/) noexcept { return 0; }

}  // namespace

constinit const Operation gate_close{
    .name = "gate.close",
    .id = 48,
    .kind = StateKind::gate,
    .writes = true,
    .argument_count = 5,
    .check = check,
    .ttl = ttl,
    .decide = close,
    .without_store = Operation::WithoutStore::local_only,
};
constinit const Operation gate_pass{
    .name = "gate.pass",
    .id = 49,
    .kind = StateKind::gate,
    .writes = true,
    .argument_count = 4,
    .check = check,
    .ttl = ttl,
    .decide = pass,
    .grants = Operation::Grants::one,
    .without_store = Operation::WithoutStore::fresh_state,
};
constinit const Operation gate_peek{
    .name = "gate.peek",
    .id = 50,
    .kind = StateKind::gate,
    .writes = false,
    .argument_count = 4,
    .check = check,
    .ttl = ttl,
    .decide = peek,
    .without_store = Operation::WithoutStore::fresh_state,
};
constinit const Operation gate_open{
    .name = "gate.open",
    .id = 51,
    .kind = StateKind::gate,
    .writes = true,
    .argument_count = 1,
    .check = check_open,
    .ttl = no_ttl,
    .decide = open,
};

}  // namespace sluice
