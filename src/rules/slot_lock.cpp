// The kernel of the slot lock. Its twin is backends/redis/lua/rules/slot_lock.lua: same names, same
// order.
#include "sluice/rules/slot_lock.hpp"

#include <algorithm>

namespace sluice {
namespace {

using Rule = SlotLockRule;
using State = Rule::State;
using Args = Rule::Args;
using CancelArgs = Rule::CancelArgs;
using BlockArgs = Rule::BlockArgs;

State state_of(const StateView& state) noexcept { return {state[0], state[1]}; }
Args args_of(const Arguments& a) noexcept { return {a[0], a[1], a[2]}; }
CancelArgs cancel_args_of(const Arguments& a) noexcept { return {a[0], a[1], a[2]}; }
BlockArgs block_args_of(const Arguments& a) noexcept { return {a[0], a[1], a[2]}; }

Word check(const Arguments& words) noexcept {
  const Args args = args_of(words);
  const bool fine = args.limit == 1 && args.interval >= 1 && args.interval <= Rule::max_interval &&
                    args.max_wait >= 0 && args.max_wait <= Rule::max_horizon;
  return fine ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

Word check_cancel(const Arguments& words) noexcept {
  const CancelArgs args = cancel_args_of(words);
  const bool fine = args.limit == 1 && args.interval >= 1 && args.interval <= Rule::max_interval &&
                    args.slot >= 0 && args.slot <= word_limit;
  return fine ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

Word check_block(const Arguments& words) noexcept {
  const BlockArgs args = block_args_of(words);
  const bool fine = args.limit == 1 && args.interval >= 1 && args.interval <= Rule::max_interval &&
                    args.span >= 0 && args.span <= Rule::max_block;
  return fine ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

Word check_reset(const Arguments& words) noexcept {
  return words[0] == 1 ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

bool was_set_back(const State& state, Word now) noexcept {
  return state.stamp > now + Rule::max_ahead;
}

/// The begin of the slot for this request.
Word slot_for(const State& state, Word max_wait, Word now) noexcept {
  if (was_set_back(state, now)) return now + std::min(state.next - state.stamp, max_wait);
  return std::max(state.next, now);
}

Verdict acquire(const StateView& view, const RuleRequest& request, Word now,
                Effects& effects) noexcept {
  const State state = state_of(view);
  if (const Word status = check(request.args); status < 0) return {status, 0, 0, 0};
  if (state.next < state.stamp) {
    view.call_corrupt();
    return {};
  }
  const Args args = args_of(request.args);

  const Word slot = slot_for(state, args.max_wait, now);
  const Word wait = slot - now;
  if (wait > args.max_wait) return {Verdict::refused, 0, wait - args.max_wait, wait};

  const Word next = std::min(slot + args.interval, word_limit);
  effects.put(0, next);
  effects.put(1, now);
  return {Verdict::allowed, 0, wait, next - now};
}

Verdict peek(const StateView& view, const RuleRequest& request, Word now,
             Effects& /*effects*/) noexcept {
  const State state = state_of(view);
  if (const Word status = check(request.args); status < 0) return {status, 0, 0, 0};
  if (state.next < state.stamp) {
    view.call_corrupt();
    return {};
  }
  const Args args = args_of(request.args);

  const Word wait = slot_for(state, args.max_wait, now) - now;
  if (wait > args.max_wait) return {Verdict::refused, 0, wait - args.max_wait, wait};
  return {Verdict::allowed, wait == 0 ? 1 : 0, wait, wait};
}

Verdict cancel(const StateView& view, const RuleRequest& request, Word now,
               Effects& effects) noexcept {
  const State state = state_of(view);
  if (const Word status = check_cancel(request.args); status < 0) return {status, 0, 0, 0};
  if (state.next < state.stamp) {
    view.call_corrupt();
    return {};
  }
  const CancelArgs args = cancel_args_of(request.args);

  const bool is_last = args.slot + args.interval == state.next;
  if (!is_last || now >= state.next || was_set_back(state, now)) {
    const Word wait = slot_for(state, 0, now) - now;
    return {Verdict::refused, wait == 0 ? 1 : 0, 0, wait};
  }
  const Word wait = std::max(args.slot, now) - now;
  effects.put(0, args.slot);
  effects.put(1, std::min(state.stamp, args.slot));
  return {Verdict::allowed, wait == 0 ? 1 : 0, 0, wait};
}

Verdict reset(const StateView& view, const RuleRequest& request, Word /*now*/,
              Effects& effects) noexcept {
  (void)state_of(view);
  if (const Word status = check_reset(request.args); status < 0) return {status, 0, 0, 0};
  effects.put(0, 0);
  effects.put(1, 0);
  return {Verdict::allowed, 1, 0, 0};
}

/// How far ahead the next slot may be before or after a block, if the clock has been corrected
/// since.
Word most_ahead(const BlockArgs& args) noexcept {
  return std::max(args.span, Rule::max_horizon + args.interval + Rule::max_ahead);
}

Verdict block(const StateView& view, const RuleRequest& request, Word now,
              Effects& effects) noexcept {
  const State state = state_of(view);
  if (const Word status = check_block(request.args); status < 0) return {status, 0, 0, 0};
  if (state.next < state.stamp) {
    view.call_corrupt();
    return {};
  }
  const BlockArgs args = block_args_of(request.args);

  const Word most = most_ahead(args);
  const Word slot = slot_for(state, most, now);
  const Word wait = slot - now;
  // A later time would be written with too short a TTL.
  if (args.span == 0 || wait > most) return {Verdict::allowed, wait == 0 ? 1 : 0, 0, wait};

  const Word until = now + args.span;
  const Word next = std::min(slot < until ? until : slot + 1, word_limit);
  effects.put(0, next);
  effects.put(1, now);
  return {Verdict::allowed, 0, 0, next - now};
}

/// A slot begins at most max_wait after its grant, and the next one an interval later.
Word ttl(const Arguments& words) noexcept {
  const Args args = args_of(words);
  return args.max_wait + args.interval + Operation::clock_slack;
}

/// The slots before the cancelled one; the clock may have been corrected since.
Word ttl_cancelled(const Arguments& /*words*/) noexcept {
  return Rule::max_horizon + Rule::max_ahead;
}

/// Including the microsecond by which a later slot is delayed.
Word ttl_blocked(const Arguments& words) noexcept {
  return most_ahead(block_args_of(words)) + 1 + Operation::clock_slack;
}

Word no_ttl(const Arguments& /*words*/) noexcept { return 0; }

}  // namespace

constinit const Operation slot_lock_acquire{
    .name = "slot_lock.acquire",
    .id = 40,
    .kind = StateKind::slot_lock,
    .writes = true,
    .argument_count = 3,
    .check = check,
    .ttl = ttl,
    .decide = acquire,
    .grants = Operation::Grants::one,
    .without_store = Operation::WithoutStore::fresh_state,
    .share = Operation::Share::interval,
    .arguments = {{.index = 2, .name = "wait", .unit = "us", .role = Argument::Role::wait}},
};
constinit const Operation slot_lock_peek{
    .name = "slot_lock.peek",
    .id = 41,
    .kind = StateKind::slot_lock,
    .writes = false,
    .argument_count = 3,
    .check = check,
    .ttl = ttl,
    .decide = peek,
    .without_store = Operation::WithoutStore::fresh_state,
    .share = Operation::Share::interval,
    .arguments = {{.index = 2, .name = "wait", .unit = "us", .role = Argument::Role::wait}},
};
constinit const Operation slot_lock_cancel{
    .name = "slot_lock.cancel",
    .id = 42,
    .kind = StateKind::slot_lock,
    .writes = true,
    .argument_count = 3,
    .check = check_cancel,
    .ttl = ttl_cancelled,
    .decide = cancel,
};
constinit const Operation slot_lock_reset{
    .name = "slot_lock.reset",
    .id = 43,
    .kind = StateKind::slot_lock,
    .writes = true,
    .argument_count = 1,
    .check = check_reset,
    .ttl = no_ttl,
    .decide = reset,
};
constinit const Operation slot_lock_block{
    .name = "slot_lock.block",
    .id = 44,
    .kind = StateKind::slot_lock,
    .writes = true,
    .argument_count = 3,
    .check = check_block,
    .ttl = ttl_blocked,
    .decide = block,
    .arguments = {{.index = 2, .name = "span", .unit = "us"}},
};

}  // namespace sluice
