// Bugs to plant in the sliding windows: the kernels, the twins that know the whole log, and the
// short cut. Threading: constants.
#pragma once

#include "tests/twin/mutants.hpp"

namespace sluice::test::sliding_windows {

inline constexpr std::string_view take = "sliding_windows_take.lua";
inline constexpr std::string_view peek = "sliding_windows_peek.lua";
inline constexpr std::string_view back = "sliding_windows_give_back.lua";
inline constexpr std::string_view kernel = "src/algorithms/sliding_windows.cpp";
inline constexpr std::string_view kernel_back = "src/algorithms/sliding_windows_give_back.cpp";
inline constexpr std::string_view quick = "sliding_windows_take_quick.lua";

inline constexpr Mutant mutants[] = {
    {"a clock set far back locks out", quick, "stamp > now + 60000000 or ", ""},
    {"nothing is dropped", quick, "dropped + size - capacity, capacity", "dropped, capacity"},
    {"written behind the ring", quick, "if after > capacity or ", "if "},
    {"the time to live is never renewed", quick,
     "if renews then redis.call('PEXPIRE', KEYS[1], ARGV[2], 'GT') end", ""},
    {"a unit is written one place late", quick, "places + next) + 1", "places + next) + 9"},
    {"what is reserved is overtaken", take,
     "if not given_up and cost > 0 and newest > grant then grant = newest end", ""},
    {"a grant beyond the end of time", take, "and grant <= 4503599627370496 -- word_limit", ""},
    {"what was dropped is forgotten", take, "if ring > capacity and dropped > 0 then",
     "if false then"},
    {"nothing is dropped", take, "local left_out = dropped - (total - size) + over",
     "local left_out = dropped - (total - size)"},
    {"the later units keep their times", take, "write(next - later, later, at)", ""},
    {"bound of the stamp >= for >", take, "stamp > now + 60000000", "stamp >= now + 60000000"},
    {"the ring is not turned", take, "if after >= ring then after = after - ring end",
     "if after > ring then after = after - ring end"},
    {"the hint is the wait", take, "status, wait = 0, wait - max_wait", "status = 0"},
    {"the least is told for the culprit", peek,
     "if not allowed and culprit then told = culprit end", ""},
    {"what is reserved is not seen", peek, "if newest > at then remaining = 0 end", ""},
    {"given back whatever came after", back, "if units > 0 and newest == time then",
     "if units > 0 and newest >= time then"},
    {"more given back than was granted", back, "if units < given then given = units end",
     "given = units"},
    {"units come back younger than they were", back,
     "if given < size then old = unit(size - 1) end", ""},
    {"the dropped are still dropped", back, "dropped - back, kept_span", "dropped, kept_span"},
    {"the newest is forgotten", back, "if given < size then newest = unit(given) end", ""},
    {"a wait of exactly max_wait refused", kernel, "wait <= args.max_wait &&",
     "wait < args.max_wait &&"},
    {"a grant beyond the end of time", kernel, "&& found.grant <= word_limit", ""},
    {"nothing is dropped", kernel, "head.dropped - assumed + over, word_limit / 2",
     "head.dropped - assumed, word_limit / 2"},
    {"the clock's time is written", kernel, "{at, found.grant, log.capacity(),",
     "{found.grant, found.grant, log.capacity(),"},
    {"the edge's units are not counted on", kernel, "const Word count = place.count + cost;",
     "const Word count = place.count;"},
    {"after a clock set back nothing counts", kernel,
     "    write(effects, log, head.next - later, later, at);\n", ""},
    {"the places are not turned on growth", kernel, "if (head.size > head.next) {", "if (false) {"},
    {"units come back younger than they were", kernel_back,
     "given < log.head().size ? log.unit(log.head().size - 1) : time", "time"},
    {"a place is remembered that is none", kernel_back, "  forget_places(effects, log, 0);\n", ""},
    {"the dropped come back twice", kernel_back, "head.dropped - back,", "head.dropped,"},
};

}  // namespace sluice::test::sliding_windows
