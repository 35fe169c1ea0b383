// Bugs to plant in the sliding window counter. Threading: constants.
#pragma once

#include "tests/twin/mutants.hpp"

namespace sluice::test::sliding_counter {

inline constexpr std::string_view take = "sliding_counter_take.lua";
inline constexpr std::string_view peek = "sliding_counter_peek.lua";
inline constexpr std::string_view adjust = "sliding_counter_adjust.lua";
inline constexpr std::string_view block = "sliding_counter_block.lua";
inline constexpr std::string_view moment = "sliding_counter_moment.lua";
inline constexpr std::string_view reset = "sliding_counter_reset.lua";
inline constexpr std::string_view kernel = "src/algorithms/sliding_counter.cpp";

inline constexpr Mutant mutants[] = {
    {"products beyond 2^53", moment, "if a * b <= 4503599627370496 then", "if true then"},
    {"a digit's rest is forgotten", moment, "local sum = rest * 1024 + digit * b",
     "local sum = digit * b"},
    {"the window before counts in full", moment,
     "return current + previous - scale(previous, at - start, span)", "return current + previous"},
    {"what is two windows old counts", moment,
     "if aligned == start + old_span then previous = current else previous = 0 end",
     "previous = current"},
    {"a longer span knows the past", moment,
     "if span > old_span and held > 0 then previous = limit end", ""},
    {"a clock set back locks out", moment, "start > now + 60000000", "false"},
    {"a cost of zero writes", take, "if cost > 0 then\n    local counts",
     "if true then\n    local counts"},
    {"words that no counter leaves accepted", moment,
     "previous > 1099511627776 then\n      corrupt()", "false then\n      corrupt()"},
    {"the hint forgets the current window", peek, "scale(room - current, span, previous)",
     "scale(room, span, previous)"},
    {"answers as if it had spent", peek, "return 1, left, 0, clear",
     "return 1, left - cost, 0, clear"},
    {"another span leaves no mark", take, "if weighed then counts =", "if false then counts ="},
    {"a reset leaves the mark", reset, "40", "32"},
    {"given back of another span", adjust, "if not weighed and taken >= since then",
     "if taken >= since then"},
    {"given back of what was weighed", adjust, "if not weighed and taken >= since then",
     "if not weighed then"},
    {"given back a window too late", adjust, "local is_before = window + span == start",
     "local is_before = window + 2 * span == start"},
    {"more taken off than there is", adjust, "if units > count then units = count end", ""},
    {"a reward is taken off twice", adjust, "local units = amount - changed",
     "local units = amount"},
    {"a charge beyond what is counted", adjust, "if changed > amount then changed = amount end",
     "changed = amount"},
    {"old units are charged now", adjust, "if window >= start then current = add(current) end",
     "if not is_before then current = add(current) end"},
    {"a block is forgotten", moment, "old_span - 8796093022208, word(5)",
     "old_span - 8796093022208, 0"},
    {"units remain while blocked", take, "if left < 0 or closed > now then", "if left < 0 then"},
    {"a hint to the end of the block whatever is counted", take,
     "if closed > 0 and cost <= limit - spent then", "if closed > now then"},
    {"a hint that forgets the block", take, "    if closed > fits then fits = closed end\n", ""},
    {"a question forgets how long the block lasts", peek,
     "  if closed > 0 and closed - now > clear then clear = closed - now end\n", ""},
    {"who charges opens the block", adjust,
     "if closed > now then marked = span + 8796093022208 end", ""},
    {"a later block is shortened", block, " and till > closed", ""},
    {"a block of nothing writes", block, "if length > 0 and till", "if till"},
    {"a block beyond the end of time", block,
     "  if till > 4503599627370496 then till = 4503599627370496 end -- word_limit\n", ""},
    {"a block forgets the counts", block, "head[1], old_span + 8796093022208",
     "head[1], 8796093022208"},
    {"a block is forgotten", kernel, "state.closed = view[5];", ""},
    {"a hint to the end of the block whatever is counted", kernel,
     "args.cost > room ? fits_at(m, args) : now", "now"},
    {"who charges opens the block", kernel,
     "now < closed ? m.state.span + Rule::blocked : m.state.span", "m.state.span"},
    {"a later block is shortened", kernel, "args.length > 0 && until > state.closed",
     "args.length > 0"},
    {"the weight is rounded down", kernel, "return units - scale(units, span - rest, span);",
     "return scale(units, rest, span);"},
    {"what is two windows old counts", kernel,
     "start == state.start + state.span ? state.current : 0", "state.current"},
    {"the hint is a microsecond early", kernel, "return end + span - scale(room, span, units);",
     "return end + span - scale(room, span, units) - 1;"},
    {"a longer span knows the past", kernel, "args.span > state.span && held > 0 ? args.limit : 0",
     "0"},
    {"the units before are not written", kernel, "effects.put(3, m.state.previous);",
     "effects.put(3, 0);"},
    {"after a clock set back a full window is free", kernel,
     "std::min(state.current + state.previous, args.limit - args.cost)", "Word{0}"},
    {"another span leaves no mark", kernel, "if (m.weighed) effects.put(4, now);", ""},
    {"given back of what was weighed", kernel, "if (m.weighed || taken < since) break;",
     "if (m.weighed) break;"},
    {"old units are charged now", kernel, "if (window >= m.state.start) add",
     "if (!is_before) add"},
    {"nothing changed is written", kernel, "if (changed > 0) write(", "write("},
};

}  // namespace sluice::test::sliding_counter
