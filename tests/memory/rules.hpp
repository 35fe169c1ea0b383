// Small rules with effects for the memory store's tests: a counter in a cell, and a log of any
// length in a block. Threading: constants.
#pragma once

#include <algorithm>

#include "sluice/extend/operation.hpp"
#include "sluice/plan.hpp"
#include "sluice/rules/token_bucket.hpp"

namespace sluice::test {

/// Both rules: {limit, units, keep_us}. What was written longer than keep_us ago counts as nothing.
namespace rules {

inline Word check(const Arguments& args) noexcept {
  if (args[1] < 0) return -static_cast<Word>(Errc::invalid_cost);
  return args[1] <= args[0] ? Verdict::allowed : -static_cast<Word>(Errc::cost_exceeds_capacity);
}
/// The clock may be set back by a minute in between.
inline Word keep(const Arguments& args) noexcept { return args[2] + 60'000'000; }

inline Verdict refused(Word remaining, Word stamp, Word now, const Arguments& args) noexcept {
  const Word left = std::max(now, stamp) - now + args[2];
  return {Verdict::refused, remaining, left, left};
}

/// {count, stamp}; tells the count as its part, and the stamp.
inline Verdict count_up(const StateView& state, const RuleRequest& request, Word now,
                        Effects& effects) noexcept {
  const auto& args = request.args;
  if (const Word status = check(args); status < 0) return {status, 0, 0, 0};
  const Word at = std::max(now, state[1]);
  const Word count = at - state[1] >= args[2] ? 0 : state[0];
  const bool fits = count + args[1] <= args[0];
  effects.add_output(fits ? count + args[1] : count);
  effects.add_output(at);
  if (!fits) return refused(args[0] - std::min(count, args[0]), state[1], now, args);
  if (args[1] != 0) {
    effects.put(0, count + args[1]);
    effects.put(1, at);
  }
  return {Verdict::allowed, args[0] - count - args[1], 0, at - now + args[2]};
}

/// {entries, stamp of each}; appends so many. Tells how many there are, and the first one's stamp.
inline Verdict push(const StateView& state, const RuleRequest& request, Word now,
                    Effects& effects) noexcept {
  const auto& args = request.args;
  if (const Word status = check(args); status < 0) return {status, 0, 0, 0};
  Word entries = state[0];
  if (entries > Word{max_state_words} - 1) state.call_corrupt();
  const Word last = entries != 0 ? state[static_cast<std::size_t>(entries)] : 0;
  const Word first = entries != 0 ? state[1] : 0;
  if (entries != 0 && (last == 0 || first == 0 || first > last)) state.call_corrupt();
  const Word at = std::max(now, last);
  if (at - last >= args[2]) entries = 0;
  const bool fits = entries + args[1] <= args[0];
  effects.add_output(fits ? entries + args[1] : entries);
  effects.add_output(entries != 0 ? first : 0);
  if (!fits) return refused(args[0] - std::min(entries, args[0]), last, now, args);
  if (args[1] != 0) {
    effects.put(0, entries + args[1]);
    effects.fill(static_cast<std::size_t>(entries) + 1, static_cast<std::size_t>(args[1]), at);
  }
  return {Verdict::allowed, args[0] - entries - args[1], 0, at - now + args[2]};
}

/// Takes the oldest `units` entries away, if there are so many.
inline Verdict pop(const StateView& state, const RuleRequest& request, Word now,
                   Effects& effects) noexcept {
  const auto& args = request.args;
  if (const Word status = check(args); status < 0) return {status, 0, 0, 0};
  const Word entries = std::min(state[0], Word{max_state_words} - 1);
  const Word last = entries != 0 ? state[static_cast<std::size_t>(entries)] : 0;
  if (entries == 0 || entries < args[1] || std::max(now, last) - last >= args[2]) {
    return {Verdict::refused, 0, 1, 1};
  }
  if (args[1] != 0) {
    const auto end = static_cast<std::size_t>(entries) + 1;
    const auto units = static_cast<std::size_t>(args[1]);
    effects.rotate(1, 1 + units, end);
    effects.put(0, entries - args[1]);
    effects.fill(end - units, units, 0);
  }
  return {Verdict::allowed, entries - args[1], 0, std::max(now, last) - now + args[2]};
}

}  // namespace rules

inline constexpr Operation counter_add{
    .name = "counter.add",
    .id = 240,
    .kind = StateKind::gate,
    .writes = true,
    .argument_count = 3,
    .check = rules::check,
    .ttl = rules::keep,
    .decide = rules::count_up,
    .output = 2,
    .names_part = true,
};
inline constexpr Operation log_push{
    .name = "log.push",
    .id = 241,
    .kind = StateKind::leases,
    .writes = true,
    .argument_count = 3,
    .check = rules::check,
    .ttl = rules::keep,
    .decide = rules::push,
    .output = 2,
};
inline constexpr Operation log_pop{
    .name = "log.pop",
    .id = 242,
    .kind = StateKind::leases,
    .writes = true,
    .argument_count = 3,
    .check = rules::check,
    .ttl = rules::keep,
    .decide = rules::pop,
};

/// A step that asks one of these rules for `units` of `limit`.
inline Step asks(const Operation& row, const KeyArg& key, Word units = 1, Word limit = 5,
                 Word keep_us = 1'000'000) {
  return {&row, key, {limit, units, keep_us}};
}

}  // namespace sluice::test
