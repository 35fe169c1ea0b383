// Bugs planted in the token bucket. (Dropping `elapsed >= full_after` from the Lua twin is none:
// doubles do not wrap, and what is below zero is clamped anyway.) Threading: constants.
#pragma once

#include "tests/twin/mutants.hpp"

namespace sluice::test::token_bucket {

inline constexpr std::string_view kernel = "src/algorithms/token_bucket.cpp";
inline constexpr std::string_view take = "token_bucket_take.lua";
inline constexpr std::string_view quick = "token_bucket_take_quick.lua";
inline constexpr std::string_view peek = "token_bucket_peek.lua";

inline constexpr Mutant mutants[] = {
    {"floor for ceil in the hint", take, "(over + -over % refill)", "(over - over % refill)"},
    {"floor for ceil in reset_after", take, "at - now + (want + -want % refill)",
     "at - now + (want - want % refill)"},
    {"level not clamped to the limit", take, "  if level > limit then level = limit end\n", ""},
    {"level not clamped to zero", take, "    if level < 0 then level = 0 end\n", ""},
    {"stamp not monotone", take, "    if stamp > at then at = stamp end\n", ""},
    {"the clock's time written as stamp", take, "reset_after, want, at end",
     "reset_after, want, now end"},
    {"boundary >= for >", take, "if want > limit then", "if want >= limit then"},
    {"remaining off by one", take, "(free - free % period) / period, at - now + (want",
     "(free - free % period) / period + 1, at - now + (want"},
    {"charged on refusal", take, "      at - now + (level + -level % refill) / refill\n",
     "      at - now + (level + -level % refill) / refill, limit, at\n"},
    {"a cost of zero writes", take, "if cost > 0 then return 1", "if cost >= 0 then return 1"},
    {"a cost below zero accepted", take, "if cost < 0 then", "if false then"},
    {"a cost of the whole capacity refused", take, "if cost > capacity", "if cost >= capacity"},
    {"bound of the stamp >= for >", take, "if stamp > now + ", "if stamp >= now + "},
    {"a stamp far ahead locks the key out", take, "if stamp > now + 60000000", "if false"},
    {"a stamp far ahead gives a full bucket", take,
     "if level > limit - charge then level = limit - charge end", "level = 0"},
    {"floor for ceil in the hint", quick, "(want - limit + refill - 1)", "(want - limit)"},
    {"level not clamped to the limit", quick, "  if level > limit then level = limit end\n", ""},
    {"level not clamped to zero", quick, "  if level < 0 then level = 0 end\n", ""},
    {"boundary >= for >", quick, "if want > limit then", "if want >= limit then"},
    {"a cost of zero writes", quick, "cost < 1 or", "cost < 0 or"},
    {"a cost above the capacity", quick, " or cost > capacity then break", " then break"},
    {"a stamp ahead is in the past", quick, "stamp > now or ", ""},
    {"a level that no rule has written", quick, "level > 4503599627370496 or ", ""},
    {"another kind of state", quick, "kind ~= 1 or ", ""},
    {"another time to live", quick, "message, 49)", "message, 41)"},
    {"another time to live", "terse_end.lua", "#ARGV[1] - 7", "#ARGV[1] - 15"},
    {"a time to live is never set again", quick, " and before > expires - 500000", ""},
    {"a longer time to live is kept", quick, "before <= expires and ", ""},
    {"floor for ceil in the hint", peek, "(over + -over % refill)", "(over - over % refill)"},
    {"level not clamped to the limit", peek, "  if level > limit then level = limit end\n", ""},
    {"level not clamped to zero", peek, "    if level < 0 then level = 0 end\n", ""},
    {"stamp not monotone", peek, "    if stamp > at then at = stamp end\n", ""},
    {"boundary >= for >", peek, "if over > 0 then", "if over >= 0 then"},
    {"a cost of the whole capacity refused", peek, "if cost > capacity", "if cost >= capacity"},
    {"bound of the stamp >= for >", peek, "if stamp > now + ", "if stamp >= now + "},
    {"a stamp far ahead gives a full bucket", peek,
     "if level > limit - charge then level = limit - charge end", "level = 0"},
    {"answers as if it had spent", peek, "local free, over = limit - level,",
     "local free, over = limit - want,"},
    {"floor for ceil", kernel, "b == 1 ? a : (a + b - 1) / b", "a / b"},
    {"ceil for floor", kernel, "a < b ? 0 : b == 1 ? a : a / b", "(a + b - 1) / b"},
    {"level not clamped to the limit", kernel,
     "const Word level = std::min(state.level, limit);\n  if (state.stamp > now",
     "const Word level = state.level;\n  if (state.stamp > now"},
    {"level not clamped to zero", kernel, "std::max(Word{0}, level - elapsed * args.refill)",
     "level - elapsed * args.refill"},
    {"elapsed time unclamped", kernel,
     "  if (elapsed >= args.full_after) return {limit, charge, at, 0};\n", ""},
    {"stamp not monotone", kernel, "std::max(now, state.stamp)", "now"},
    {"the clock's time written as stamp", kernel, "state = {want, m.at}", "state = {want, now}"},
    {"boundary >= for >", kernel,
     "if (want > m.limit) return refused(m, args, want, now);\n  if (args.cost > 0)",
     "if (want >= m.limit) return refused(m, args, want, now);\n  if (args.cost > 0)"},
    {"remaining off by one", kernel, "floor_div(m.limit - level, args.period), 0,",
     "floor_div(m.limit - level, args.period) + 1, 0,"},
    {"charged on refusal", kernel,
     "if (want > m.limit) return refused(m, args, want, now);\n  if (args.cost > 0)",
     "if (want > m.limit) { state.level = m.limit; return refused(m, args, want, now); }\n"
     "  if (args.cost > 0)"},
    {"a cost of zero writes", kernel, "if (args.cost > 0) state", "if (args.cost >= 0) state"},
    {"a cost below zero accepted", kernel,
     "  if (args.cost < 0) return -static_cast<Word>(Errc::invalid_cost);\n", ""},
    {"a cost of the whole capacity refused", kernel, "args.cost > args.capacity",
     "args.cost >= args.capacity"},
    {"bound of the stamp >= for >", kernel, "state.stamp > now + ", "state.stamp >= now + "},
    {"a stamp far ahead locks the key out", kernel,
     "state.stamp > now + TokenBucketRule::max_ahead", "state.stamp > now + (Word{1} << 60)"},
    {"the hint forgets that the stamp is ahead", kernel, "m.at - now + ceil_div(want - m.limit",
     "ceil_div(want - m.limit"},
    {"a question answers as if it had spent", kernel, "return allowed(m, args, m.level, now);",
     "return allowed(m, args, want, now);"},
};

}  // namespace sluice::test::token_bucket
