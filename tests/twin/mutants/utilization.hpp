// Bugs planted in the utilization shedder. Threading: constants.
#pragma once

#include "tests/twin/mutants.hpp"

namespace sluice::test::utilization {

inline constexpr std::string_view kernel = "src/rules/utilization.cpp";
inline constexpr std::string_view sample = "operation utilization_sample";
inline constexpr std::string_view shed = "operation utilization_shed";
inline constexpr std::string_view peek = "operation utilization_peek";
inline constexpr std::string_view reset = "operation utilization_reset";

inline constexpr Mutant mutants[] = {
    {"the dead zone freezes", sample, "local speed = -decay", "local speed = 0"},
    {"a gap counts in full", sample, "  if step > max_gap then step = max_gap end\n", ""},
    {"the first sample counts", sample, "stamp, elapsed = (grace + full_after) * Rule.one, 0, 0, 0",
     "stamp, elapsed = (grace + full_after) * Rule.one, 0, 0, max_gap"},
    {"the level is not clamped above", sample, " elseif level > full then level = full end",
     " end"},
    {"the level is not clamped below", sample, "if level < 0 then level = 0 elseif",
     "if level > full then level = full elseif"},
    {"a fraction of a speed", sample, "speed = (over - over % room) / room", "speed = over / room"},
    {"recovers slower than in the dead zone", sample, "if under > decay then speed = -under end",
     "speed = -under"},
    {"the stamp runs backwards", sample, "if now > stamp then stamp = now end", "stamp = now"},
    {"a stamp of zero", sample, "  if stamp < 1 then stamp = 1 end\n", ""},
    {"a sample that changes nothing is written", sample, "if level == first and stamp == last then",
     "if false then"},
    {"the grace is shed", sample, "local shed, reset_after = level_us - grace, 0",
     "local shed, reset_after = level_us, 0"},
    {"a level without a stamp accepted", sample, "if last == 0 and first ~= 0 then",
     "if false then"},
    {"a utilization above one accepted", sample,
     "or utilization < 0 or\n    utilization > Rule.one then", "or utilization < 0 then"},
    {"a far stamp holds", shed, "last <= latest and ", ""},
    {"a stamp a tick too far holds", shed, "last <= latest", "last <= latest + 1"},
    {"a silent sensor sheds for ever", shed,
     "    if elapsed > max_gap then level = level - (elapsed - max_gap) * decay end\n", ""},
    {"all tiers shed alike", shed, "span = span * tiers - tier * full_after",
     "span = span * tiers"},
    {"the last tier is shed", shed, "span * tiers - tier * full_after",
     "span * (tiers + 1) - tier * full_after"},
    {"the draw >= for >", shed, "if draw >= span then", "if draw > span then"},
    {"the hold forgotten in reset_after", shed, "    reset_after = reset_after + (level",
     "    reset_after = (level"},
    {"the stamp is not told", shed, "tier, probability, level_us, stamp)",
     "tier, probability, level_us, last)"},
    {"a draw of full_after accepted", shed, "draw >= full_after then", "false then"},
    {"peek sheds by chance", peek, "if span < full_after then", "if span < 1 then"},
    {"a reset keeps the stamp", reset, "return 1, Rule.one, 0, 0, 0, 0",
     "return 1, Rule.one, 0, 0, 0, last"},

    {"the dead zone freezes", kernel, "  return -args.pace.decay;", "  return 0;"},
    {"a gap counts in full", kernel, "std::min(m.elapsed, pace.max_gap) * speed(args)",
     "m.elapsed * speed(args)"},
    {"the stamp runs backwards", kernel, "std::max({m.stamp, now, Word{1}})",
     "std::max(now, Word{1})"},
    {"a silent sensor sheds for ever", kernel, "level - idle * pace.decay", "level"},
    {"floor for ceil in reset_after", kernel,
     "std::max(Word{0}, stamp + pace.max_gap - now) + ceil_div(level, pace.decay)",
     "std::max(Word{0}, stamp + pace.max_gap - now) + level / pace.decay"},
    {"the draw > for >=", kernel, "args.draw >= span", "args.draw > span"},
};

}  // namespace sluice::test::utilization
