// The list of planted bugs. A mutant that means the same as the original has no place here: the
// run would fail, because nothing can catch it. (Dropping `elapsed >= full_after` from the Lua twin
// is one: doubles do not wrap, and what is below zero is clamped anyway.)
#include "tests/twin/mutants.hpp"

namespace sluice::test {
namespace {

constexpr std::string_view take = "token_bucket_take.lua";
constexpr std::string_view peek = "token_bucket_peek.lua";

constexpr Mutant in_scripts[] = {
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
    {"client time for the server's", "clock.lua",
     "local time = redis.call('TIME')\nlocal now = time[1] * 1000000 + time[2]",
     "local now = tonumber(ARGV[#ARGV])"},
    {"whole seconds", "clock.lua", "time[1] * 1000000 + time[2]", "time[1] * 1000000"},
    {"the time through ..", "clock.lua", "time[1] * 1000000 + time[2]",
     "tonumber('' .. (time[1] * 1000000 + time[2]))"},
    {"a number through .. (one step)", "step_end.lua",
     "struct.pack(STATE, KIND, new_first, new_second)",
     "struct.pack(STATE, KIND, new_first, tonumber('' .. new_second))"},
    {"a number through .. (plan)", "plan_end.lua",
     "struct.pack(STATE, KIND, new_first, new_second)",
     "struct.pack(STATE, KIND, tonumber('' .. new_first), new_second)"},
    {"the clock read twice (one step)", "step_end.lua", "decide(first, second, now, ",
     "decide(first, second, redis.call('TIME')[1] * 1000000, "},
    {"the clock read for every step", "plan_end.lua", "decide(first, second, now, ",
     "decide(first, second, redis.call('TIME')[1] * 1000000, "},
    {"missing TTL (one step)", "step_end.lua", "redis.call('PSETEX', KEYS[1], ARGV[2], ",
     "redis.call('SET', KEYS[1], "},
    {"missing TTL (plan)", "plan_end.lua",
     "redis.call('PSETEX', KEYS[i], ARGV[2 * i + 1], writes[i])",
     "redis.call('SET', KEYS[i], writes[i])"},
    {"the first step's TTL for all", "plan_end.lua", "ARGV[2 * i + 1]", "ARGV[3]"},
    {"write before check", "plan_end.lua",
     "if new_first then writes[i] = struct.pack(STATE, KIND, new_first, new_second) end",
     "if new_first then redis.call('PSETEX', KEYS[i], ARGV[2 * i + 1], struct.pack(STATE, KIND, "
     "new_first, new_second)) end"},
    {"a refused plan writes what it can", "plan_end.lua", "\nif all then", "\nif true then"},
    {"the last step decides alone", "plan_end.lua", "all = all and status == 1",
     "all = status == 1"},
    {"a plan writes its first step only", "plan_end.lua", "  for i = 1, #KEYS do\n    if writes[i]",
     "  for i = 1, 1 do\n    if writes[i]"},
    {"in a plan, a key of another type is fresh", "plan.lua",
     "raws[i] or redis.pcall('GET', KEYS[i])", "raws[i]"},
    {"garbage of another length is a fresh key", "state.lua",
     "status = -15 -- Errc::wrong_type\n  else", "status = nil\n  else"},
    {"another kind's state accepted", "state.lua", "if found ~= KIND then", "if found == 0 then"},
    {"words below zero accepted", "state.lua", "if first < 0 or first > WORD_LIMIT or second < 0",
     "if first > WORD_LIMIT"},
    {"words beyond 2^52 accepted", "state.lua", " or second > WORD_LIMIT", ""},
    {"a wrong type is a fresh key", "state.lua", "    status = -15 -- Errc::wrong_type\n  else",
     "    if type(raw) ~= 'table' then status = -15 end\n  else"},
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
