// The list of planted bugs. A mutant that means the same as the original has no place here: the
// run would fail, because nothing can catch it. (Dropping `elapsed >= full_after` from the Lua twin
// is one: doubles do not wrap, and what is below zero is clamped anyway.)
#include "tests/twin/mutants.hpp"

namespace sluice::test {
namespace {

constexpr std::string_view rule = "token_bucket.lua";

constexpr Mutant in_scripts[] = {
    {"floor for ceil in the hint", rule,
     "return 0, math.floor((limit - level) / period), at - now + math.ceil((want - limit)",
     "return 0, math.floor((limit - level) / period), at - now + math.floor((want - limit)"},
    {"floor for ceil in reset_after", rule,
     "math.floor((limit - want) / period), at - now + math.ceil(want / refill)",
     "math.floor((limit - want) / period), at - now + math.floor(want / refill)"},
    {"level not clamped to the limit", rule, "  if level > limit then level = limit end\n", ""},
    {"level not clamped to zero", rule, "  if level < 0 then level = 0 end\n", ""},
    {"stamp not monotone", rule, "  if stamp > at then at = stamp end\n", ""},
    {"the clock's time written as stamp", rule, "reset_after, want, at end",
     "reset_after, want, now end"},
    {"boundary >= for >", rule, "local want = level + charge\n  if want > limit then",
     "local want = level + charge\n  if want >= limit then"},
    {"remaining off by one", rule, "math.floor((limit - want) / period)",
     "math.floor((limit - want) / period) + 1"},
    {"charged on refusal", rule,
     "at - now + math.ceil((want - limit) / refill),\n      at - now + math.ceil(level / refill)\n",
     "at - now + math.ceil((want - limit) / refill),\n      at - now + math.ceil(level / refill), "
     "limit, at\n"},
    {"a cost of zero writes", rule, "if cost > 0 then return 1", "if cost >= 0 then return 1"},
    {"a cost below zero accepted", rule, "  if cost < 0 then return INVALID_COST end\n", ""},
    {"a cost of the whole capacity refused", rule, "if cost > capacity", "if cost >= capacity"},
    {"bound of the stamp >= for >", rule, "if stamp > now + MAX_AHEAD",
     "if stamp >= now + MAX_AHEAD"},
    {"a stamp far ahead locks the key out", rule, "if stamp > now + MAX_AHEAD", "if false"},
    {"a stamp far ahead gives a full bucket", rule,
     "if level > limit - charge then level = limit - charge end", "level = 0"},
    {"client time for the server's", "clock.lua",
     "local time = redis.call('TIME')\n  return time[1] * 1000000 + time[2]",
     "return tonumber(ARGV[#ARGV])"},
    {"whole seconds", "clock.lua", "time[1] * 1000000 + time[2]", "time[1] * 1000000"},
    {"the time through ..", "clock.lua", "time[1] * 1000000 + time[2]",
     "tonumber('' .. (time[1] * 1000000 + time[2]))"},
    {"a number through .. (one step)", "step.lua",
     "struct.pack(STATE, KIND, new_first, new_second)",
     "struct.pack(STATE, KIND, new_first, tonumber('' .. new_second))"},
    {"a number through .. (plan)", "plan.lua", "struct.pack(STATE, kind, new_first, new_second)",
     "struct.pack(STATE, kind, tonumber('' .. new_first), new_second)"},
    {"the clock read twice (one step)", "step.lua", "decide(first, second, now, ",
     "decide(first, second, clock(), "},
    {"the clock read for every step", "plan.lua", "decide(first, second, now, ",
     "decide(first, second, clock(), "},
    {"missing TTL (one step)", "step.lua", ", 'PX', ARGV[2])", ")"},
    {"missing TTL (plan)", "plan.lua", ", 'PX', ARGV[2 * i + 1])", ")"},
    {"the first step's TTL for all", "plan.lua", "'PX', ARGV[2 * i + 1]", "'PX', ARGV[3]"},
    {"write before check", "plan.lua",
     "if new_first then writes[i] = struct.pack(STATE, kind, new_first, new_second) end",
     "if new_first then redis.call('SET', KEYS[i], struct.pack(STATE, kind, new_first, "
     "new_second), 'PX', ARGV[2 * i + 1]) end"},
    {"a refused plan writes what it can", "plan.lua", "\nif all then", "\nif true then"},
    {"the last step decides alone", "plan.lua", "all = all and status == 1", "all = status == 1"},
    {"a plan writes its first step only", "plan.lua", "  for i = 1, #KEYS do\n    if writes[i]",
     "  for i = 1, 1 do\n    if writes[i]"},
    {"garbage of another length is a fresh key", "prelude.lua",
     "if #raw ~= STATE_BYTES then return nil, WRONG_TYPE end",
     "if #raw ~= STATE_BYTES then return 0, 0 end"},
    {"another kind's state accepted", "prelude.lua", "if found ~= kind then", "if found == 0 then"},
    {"words below zero accepted", "prelude.lua", "if first < 0 or first > WORD_LIMIT or second < 0",
     "if first > WORD_LIMIT"},
    {"words beyond 2^52 accepted", "prelude.lua", " or second > WORD_LIMIT", ""},
    {"a wrong type is a fresh key", "prelude.lua",
     "then return nil, WRONG_TYPE end\n    return nil, nil, raw",
     "then return 0, 0 end\n    return nil, nil, raw"},
};

constexpr Mutant in_kernel[] = {
    {"floor for ceil", "", "b == 1 ? a : (a + b - 1) / b", "a / b"},
    {"ceil for floor", "", "a < b ? 0 : b == 1 ? a : a / b", "(a + b - 1) / b"},
    {"level not clamped to the limit", "",
     "const Word level = std::min(state.level, limit);\n  if (state.stamp > now",
     "const Word level = state.level;\n  if (state.stamp > now"},
    {"level not clamped to zero", "", "std::max(Word{0}, level - elapsed * args.refill)",
     "level - elapsed * args.refill"},
    {"elapsed time unclamped", "",
     "  if (elapsed >= args.full_after) return {limit, charge, at, 0};\n", ""},
    {"stamp not monotone", "", "std::max(now, state.stamp)", "now"},
    {"the clock's time written as stamp", "", "state = {want, m.at}", "state = {want, now}"},
    {"boundary >= for >", "",
     "if (want > m.limit) return refused(m, args, want, now);\n  if (args.cost > 0)",
     "if (want >= m.limit) return refused(m, args, want, now);\n  if (args.cost > 0)"},
    {"remaining off by one", "", "floor_div(m.limit - level, args.period), 0,",
     "floor_div(m.limit - level, args.period) + 1, 0,"},
    {"charged on refusal", "",
     "if (want > m.limit) return refused(m, args, want, now);\n  if (args.cost > 0)",
     "if (want > m.limit) { state.level = m.limit; return refused(m, args, want, now); }\n"
     "  if (args.cost > 0)"},
    {"a cost of zero writes", "", "if (args.cost > 0) state", "if (args.cost >= 0) state"},
    {"a cost below zero accepted", "",
     "  if (args.cost < 0) return -static_cast<Word>(Errc::invalid_cost);\n", ""},
    {"a cost of the whole capacity refused", "", "args.cost > args.capacity",
     "args.cost >= args.capacity"},
    {"bound of the stamp >= for >", "", "state.stamp > now + ", "state.stamp >= now + "},
    {"a stamp far ahead locks the key out", "", "state.stamp > now + TokenBucketRule::max_ahead",
     "state.stamp > now + (Word{1} << 60)"},
    {"the hint forgets that the stamp is ahead", "", "m.at - now + ceil_div(want - m.limit",
     "ceil_div(want - m.limit"},
    {"a question answers as if it had spent", "", "return allowed(m, args, m.level, now);",
     "return allowed(m, args, want, now);"},
};

}  // namespace

std::span<const Mutant> script_mutants() { return in_scripts; }
std::span<const Mutant> kernel_mutants() { return in_kernel; }

}  // namespace sluice::test
