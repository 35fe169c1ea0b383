// The kernel of the utilization shedder. Its twin is backends/redis/lua/rules/utilization.lua: same
// names, same order. Spans are at most an hour, so a span times `one` stays within 2^52, and a sum
// of two such products within 2^53.
#include "sluice/rules/utilization.hpp"

#include <algorithm>

namespace sluice {
namespace {

using Rule = UtilizationRule;
using Pace = Rule::Pace;

constexpr Word one = Rule::one;

Word ceil_div(Word a, Word b) noexcept { return (a + b - 1) / b; }

Word full_level(const Pace& pace) noexcept { return (pace.grace + pace.full_after) * one; }

/// The level at one instant, before a sample.
struct LoadView {
  Word level = 0;
  Word elapsed = 0;  // since the last sample
  Word stamp = 0;    // 0: no sample that still counts
};

LoadView moment(const StateView& state, const Pace& pace, Word now) noexcept {
  const Word stamp = state[1];
  if (stamp == 0) {
    if (state[0] != 0) state.call_corrupt();
    return {};
  }
  if (stamp > now + Rule::max_ahead) return {};
  const Word elapsed = std::max(Word{0}, now - stamp);
  if (elapsed >= Rule::ttl(pace)) return {};
  const Word level = std::min(state[0], full_level(pace));
  const Word idle = std::max(Word{0}, elapsed - pace.max_gap);
  return {std::max(Word{0}, level - idle * pace.decay), elapsed, stamp};
}

/// The time until the level is at rest without further samples.
Word rests_after(const Pace& pace, Word level, Word stamp, Word now) noexcept {
  if (level == 0) return 0;
  return std::max(Word{0}, stamp + pace.max_gap - now) + ceil_div(level, pace.decay);
}

/// The speed, in millionths of the fastest.
Word speed(const Rule::SampleArgs& args) noexcept {
  const Word u = args.utilization;
  if (u > args.bad) return (u - args.bad) * one / (one - args.bad);
  if (u < args.good) return -std::max(args.pace.decay, (args.good - u) * one / args.good);
  return -args.pace.decay;
}

Verdict answer(const Rule::ShedArgs& args, const LoadView& m, bool admits, Word span, Word level_us,
               Word now, Effects& effects) noexcept {
  const Word probability = span * one / args.pace.full_after;
  effects.add_output(args.tier);
  effects.add_output(probability);
  effects.add_output(level_us);
  effects.add_output(m.stamp);
  return {admits ? Verdict::allowed : Verdict::refused, one - probability, 0,
          rests_after(args.pace, m.level, m.stamp, now)};
}

bool is_valid(const Pace& pace) noexcept {
  return pace.limit == one && pace.full_after >= 1 && pace.full_after <= Rule::max_span &&
         pace.grace >= 0 && pace.grace <= Rule::max_span - pace.full_after && pace.decay >= 1 &&
         pace.decay <= one && pace.max_gap >= 1 && pace.max_gap <= Rule::max_span;
}

Word allowed_if(bool valid) noexcept {
  return valid ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

}  // namespace

Verdict UtilizationRule::sample(const StateView& state, const SampleArgs& args, Word now,
                                Effects& effects) noexcept {
  if (const Word status = check(args); status < 0) return {status, 0, 0, 0};
  const Pace& pace = args.pace;
  const LoadView m = moment(state, pace, now);
  const Word step = std::min(m.elapsed, pace.max_gap) * speed(args);
  const Word level = std::clamp(m.level + step, Word{0}, full_level(pace));
  const Word stamp = std::max({m.stamp, now, Word{1}});
  if (level != state[0] || stamp != state[1]) {
    effects.put(0, level);
    effects.put(1, stamp);
  }
  const Word level_us = level / one;
  effects.add_output(level_us);
  effects.add_output(stamp);
  const Word shed = std::max(Word{0}, level_us - pace.grace);
  return {Verdict::allowed, one - shed * one / pace.full_after, 0,
          rests_after(pace, level, stamp, now)};
}

Verdict UtilizationRule::shed(const StateView& state, const ShedArgs& args, Word now,
                              Effects& effects) noexcept {
  if (const Word status = check(args); status < 0) return {status, 0, 0, 0};
  const LoadView m = moment(state, args.pace, now);
  const Word level_us = m.level / one;
  const Word span = shed_span(args.pace, args.tiers, args.tier, level_us);
  return answer(args, m, args.draw >= span, span, level_us, now, effects);
}

Verdict UtilizationRule::peek(const StateView& state, const ShedArgs& args, Word now,
                              Effects& effects) noexcept {
  if (const Word status = check(args); status < 0) return {status, 0, 0, 0};
  const LoadView m = moment(state, args.pace, now);
  const Word level_us = m.level / one;
  const Word span = shed_span(args.pace, args.tiers, args.tier, level_us);
  return answer(args, m, span < args.pace.full_after, span, level_us, now, effects);
}

Word UtilizationRule::shed_span(const Pace& pace, Word tiers, Word tier, Word level_us) noexcept {
  const Word amount = std::max(Word{0}, level_us - pace.grace);
  return std::clamp(amount * tiers - (tiers - tier) * pace.full_after, Word{0}, pace.full_after);
}

// A stamp of 0 is written as 1.
Word UtilizationRule::ttl(const Pace& pace) noexcept {
  return pace.max_gap + ceil_div(full_level(pace), pace.decay) + 1;
}

Word UtilizationRule::check(const SampleArgs& args) noexcept {
  return allowed_if(is_valid(args.pace) && args.good >= 1 && args.good <= args.bad &&
                    args.bad < one && args.utilization >= 0 && args.utilization <= one);
}

Word UtilizationRule::check(const ShedArgs& args) noexcept {
  return allowed_if(is_valid(args.pace) && args.tiers >= 1 && args.tiers <= max_tiers &&
                    args.tier >= 0 && args.tier <= args.tiers && args.draw >= 0 &&
                    args.draw < args.pace.full_after);
}

namespace {

Pace pace_of(const Arguments& a) noexcept { return {a[0], a[1], a[2], a[3], a[4]}; }
Rule::SampleArgs sample_of(const Arguments& a) noexcept { return {pace_of(a), a[5], a[6], a[7]}; }
Rule::ShedArgs shed_of(const Arguments& a) noexcept { return {pace_of(a), a[5], a[6], a[7]}; }
Rule::ShedArgs peek_of(const Arguments& a) noexcept { return {pace_of(a), a[5], a[6], 0}; }

Verdict decide_sample(const StateView& state, const RuleRequest& request, Word now,
                      Effects& effects) noexcept {
  return Rule::sample(state, sample_of(request.args), now, effects);
}
Verdict decide_shed(const StateView& state, const RuleRequest& request, Word now,
                    Effects& effects) noexcept {
  return Rule::shed(state, shed_of(request.args), now, effects);
}
Verdict decide_peek(const StateView& state, const RuleRequest& request, Word now,
                    Effects& effects) noexcept {
  return Rule::peek(state, peek_of(request.args), now, effects);
}
Verdict decide_reset(const StateView& state, const RuleRequest& request, Word,
                     Effects& effects) noexcept {
  if (request.args[0] != one) return Verdict::failed(Errc::invalid_argument);
  if (state[0] != 0 || state[1] != 0) {
    effects.put(0, 0);
    effects.put(1, 0);
  }
  return {Verdict::allowed, one, 0, 0};
}

Word check_sample(const Arguments& args) noexcept { return Rule::check(sample_of(args)); }
Word check_shed(const Arguments& args) noexcept { return Rule::check(shed_of(args)); }
Word check_peek(const Arguments& args) noexcept { return Rule::check(peek_of(args)); }
Word check_reset(const Arguments& args) noexcept { return allowed_if(args[0] == one); }

Word ttl_pace(const Arguments& args) noexcept {
  return Rule::ttl(pace_of(args)) + Operation::clock_slack;
}
Word no_ttl(const Arguments&) noexcept { return 0; }

}  // namespace

constinit const Operation utilization_sample{
    .name = "utilization.sample",
    .id = 56,
    .kind = StateKind::utilization,
    .writes = true,
    .argument_count = 8,
    .check = check_sample,
    .ttl = ttl_pace,
    .decide = decide_sample,
    .output = 2,
    .without_store = Operation::WithoutStore::local_only,
    .arguments = {{.index = 7, .name = "utilization", .range = "0.0 to 1.0"}},
};
constinit const Operation utilization_shed{
    .name = "utilization.shed",
    .id = 57,
    .kind = StateKind::utilization,
    .writes = false,
    .argument_count = 8,
    .check = check_shed,
    .ttl = ttl_pace,
    .decide = decide_shed,
    .output = 4,
    .names_part = true,
    .grants = Operation::Grants::one,
    .without_store = Operation::WithoutStore::fresh_state,
    .arguments = {{.index = 6, .name = "tier"}},
};
constinit const Operation utilization_peek{
    .name = "utilization.peek",
    .id = 58,
    .kind = StateKind::utilization,
    .writes = false,
    .argument_count = 7,
    .check = check_peek,
    .ttl = ttl_pace,
    .decide = decide_peek,
    .output = 4,
    .names_part = true,
    .without_store = Operation::WithoutStore::fresh_state,
};
constinit const Operation utilization_reset{
    .name = "utilization.reset",
    .id = 59,
    .kind = StateKind::utilization,
    .writes = true,
    .argument_count = 1,
    .check = check_reset,
    .ttl = no_ttl,
    .decide = decide_reset,
};

}  // namespace sluice
