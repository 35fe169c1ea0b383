// Bugs to plant in the sliding window counter. Threading: constants.
#pragma once

#include "tests/twin/mutants.hpp"

namespace sluice::test::sliding_counter {

inline constexpr std::string_view take = "sliding_counter_take.lua";
inline constexpr std::string_view peek = "sliding_counter_peek.lua";
inline constexpr std::string_view kernel = "src/algorithms/sliding_counter.cpp";

inline constexpr Mutant mutants[] = {
    {"products beyond 2^53", take, "if a * b <= 4503599627370496 then", "if true then"},
    {"a digit's rest is forgotten", take, "local sum = rest * 1024 + digit * b",
     "local sum = digit * b"},
    {"the window before counts in full", take,
     "return current + previous - scale(previous, at - start, span)", "return current + previous"},
    {"what is two windows old counts", take,
     "if aligned == start + old_span then previous = current else previous = 0 end",
     "previous = current"},
    {"a longer span knows the past", take,
     "if span > old_span and held > 0 then previous = limit end", ""},
    {"a clock set back locks out", take, "start > now + 60000000", "false"},
    {"a cost of zero writes", take, "if cost > 0 then put(0,", "if true then put(0,"},
    {"words that no counter leaves accepted", take, "previous > 1099511627776 then\n    corrupt()",
     "false then\n    corrupt()"},
    {"the hint forgets the current window", peek, "scale(room - current, span, previous)",
     "scale(room, span, previous)"},
    {"answers as if it had spent", peek, "return 1, left, 0, clear",
     "return 1, left - cost, 0, clear"},
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
};

}  // namespace sluice::test::sliding_counter
