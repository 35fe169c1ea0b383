// Bugs to plant in the sliding windows: the kernels, the twins that know the whole log, and the
// short cut. Threading: constants.
#pragma once

#include "tests/twin/mutants.hpp"

namespace sluice::test::sliding_window {

inline constexpr std::string_view both = "sliding_window_decide.lua";
inline constexpr std::string_view log = "sliding_window_log.lua";
inline constexpr std::string_view fewer = "sliding_window_fewer.lua";
inline constexpr std::string_view search = "sliding_window_search.lua";
inline constexpr std::string_view table = "sliding_window_table.lua";
inline constexpr std::string_view peek = "sliding_window_peek.lua";
inline constexpr std::string_view back = "sliding_window_give.lua";
inline constexpr std::string_view reward = "sliding_window_reward.lua";
inline constexpr std::string_view block = "sliding_window_block.lua";
inline constexpr std::string_view kernel = "src/rules/sliding_window.cpp";
inline constexpr std::string_view kernel_back = "src/rules/sliding_window_give_back.cpp";
inline constexpr std::string_view quick = "sliding_window_take_quick.lua";

inline constexpr Mutant mutants[] = {
    {"a clock set far back locks out (two)", quick,
     "stamp > now + 60000000 or newest > 4503599627370496 or\n    count1 > size or before1 > "
     "4503599627370496 or first1 > 4503599627370496 or\n    count2",
     "newest > 4503599627370496 or\n    count1 > size or before1 > "
     "4503599627370496 or first1 > 4503599627370496 or\n    count2"},
    {"the places' words are not looked at (two)", quick,
     "or\n    count1 > size or before1 > 4503599627370496 or first1 > 4503599627370496 or\n    "
     "count2 > size or before2 > 4503599627370496 or first2 > 4503599627370496 then",
     "then"},
    {"a window of no limit", table, "window < 1 or ", ""},
    {"the longest window is the last", table, "if span > longest then longest = span end",
     "longest = span"},
    {"all but the newest four have left", fewer, "elseif d > edge and high > 3 then", "else"},
    {"an assumed unit is as new as the log", search, "if other < time then time = other end", ""},
    {"a block is not seen (one)", quick, "kind ~= 21 or layout ~= 1 or", "kind ~= 21 or"},
    {"a block is not seen (two)", quick, "kind ~= 21 or layout ~= 2 or", "kind ~= 21 or"},
    {"a smaller log is not seen (one)", quick, "window1 > capacity or span1 < 1", "span1 < 1"},
    {"a smaller log is not seen (two)", quick, "or cost > window2 or window2 > capacity",
     "or cost > window2"},
    {"a span of any length (one)", quick, "span1 > 31622400000000 or max_wait", "max_wait"},
    {"a span of any length (two)", quick, "or span2 > 31622400000000", ""},
    {"the third of four is the second (two)", quick, "count2 - 3, b, c", "count2 - 2, b, c"},
    {"all have left, but the newest (two)", quick, "count2, before2, first2 = 0, newest, 0",
     "count2, before2, first2 = 1, newest, newest"},
    {"the second window never makes one wait", quick, "latest, told = first2 + span2, 1 end",
     "end"},
    {"the culprit of what is allowed is told", quick, "      told = nil\n", ""},
    {"nothing is dropped (two)", quick,
     "dropped + size - capacity, capacity\n      if dropped > 2251799813685248 then dropped = "
     "2251799813685248 end\n    end\n    -- First: a right that is missing shows before anything "
     "is "
     "written.\n    if max_wait > 0 or longest > kept_span or at - at % 500000 ~= stamp - stamp % "
     "500000 then\n      if call('PEXPIRE', key, read('<L', message, 73), 'GT')",
     "dropped, capacity\n      if dropped > 2251799813685248 then dropped = "
     "2251799813685248 end\n    end\n    -- First: a right that is missing shows before anything "
     "is "
     "written.\n    if max_wait > 0 or longest > kept_span or at - at % 500000 ~= stamp - stamp % "
     "500000 then\n      if call('PEXPIRE', key, read('<L', message, 73), 'GT')"},
    {"written behind the ring (one)", quick,
     "if after > capacity or count1 + cost > capacity then break end",
     "if count1 + cost > capacity then break end"},
    {"written behind the ring (two)", quick,
     "if after > capacity or count1 + cost > capacity or count2 + cost > capacity then",
     "if count1 + cost > capacity or count2 + cost > capacity then"},
    {"the time to live is never renewed (one)", quick,
     "if call('PEXPIRE', key, read('<L', message, 57), 'GT') == 0 then", "if false then"},
    {"the time to live is never renewed (two)", quick,
     "if call('PEXPIRE', key, read('<L', message, 73), 'GT') == 0 then", "if false then"},
    {"a unit is written one place late (one)", quick, "8 * next + 89", "8 * next + 97"},
    {"a unit is written one place late (two)", quick, "8 * next + 113", "8 * next + 121"},
    {"the rule gets the time to live as a window", "brief_end.lua",
     "ARGV[1] = string.sub(ARGV[1], 1, -9)", ""},
    {"another time to live", "brief_end.lua", "#ARGV[1] - 7))", "#ARGV[1] - 15))"},
    {"what is reserved is overtaken", both,
     "if not given_up and newest > grant then grant = newest end", ""},
    {"a grant beyond the end of time", both, "and grant <= 4503599627370496 -- word_limit", ""},
    {"what was dropped is forgotten", both, "if ring > capacity and dropped > 0 then",
     "if false then"},
    {"nothing is dropped", both, "local left_out = dropped - (total - size) + over",
     "local left_out = dropped - (total - size)"},
    {"the later units keep their times", both, "write(next - later, later, at)", ""},
    {"bound of the stamp >= for >", both, "stamp > now + 60000000", "stamp >= now + 60000000"},
    {"the ring is not turned", both, "if after >= ring then after = after - ring end",
     "if after > ring then after = after - ring end"},
    {"the hint is the wait", both, "status, wait = 0, wait - max_wait", "status = 0"},
    {"a peek spends", peek, "longest, false)", "longest, true)"},
    {"the least is told for the culprit", both,
     "if not allowed and culprit then told = culprit end", ""},
    {"what is reserved is not seen", both, "if new_newest > at or block > at then",
     "if block > at then"},
    {"given back whatever came after", back, "if units > 0 and newest == time then",
     "if units > 0 and newest >= time then"},
    {"more given back than was granted", back,
     "    if units < given then given = units end\n    if", "    given = units\n    if"},
    {"units come back younger than they were", back, "local back, old = given, unit(size - 1)",
     "local back, old = given, newest"},
    {"the dropped are still dropped", back, "dropped - back, kept_span", "dropped, kept_span"},
    {"the newest is forgotten", back, "if given < size then newest = unit(given) end", ""},
    {"a block is not seen", both,
     "if blocks == 1 and not given_up and head[10] > at then stands = head[10] end", ""},
    {"a log that is given up stays blocked", both, "if blocks == 1 and not given_up and",
     "if blocks == 1 and"},
    {"a shorter block shortens", both, "if till > block then block = till end", "block = till"},
    {"what is reserved opens a block", both, "if block > 0 then new_layout = places + 16 end", ""},
    {"a place is remembered under a block", both, "and not given_up and block == 0 then",
     "and not given_up then"},
    {"a block is told as if it were a window", both, "latest, culprit = stands, asked + 1 end",
     "latest, culprit = stands, 1 end"},
    {"a block does not refuse what remains", both, "if new_newest > at or block > at then",
     "if new_newest > at then"},
    {"a block that is longer than any", log, "or head[10] > stamp + 31622400000000)", ")"},
    {"a block under a place that is known", log, "(head[9] ~= 4503599627370496 or head[10]",
     "(head[10]"},
    {"a block of any length", block, " or span > 31622400000000", ""},
    {"a reward below zero", reward, "units < 0 or", ""},
    {"a reward is only of the newest instant", reward, "now, units, -1)", "now, units, head[2])"},
    {"more is rewarded than there was", back, "    if units < given then given = units end\n  else",
     "    given = units\n  else"},
    {"what had left a full log is never rewarded", back,
     "dropped, back = dropped - (back - size), size", "back = size"},
    {"a reward tells what no window held", back, "if held < told then told = held end", ""},
    {"what comes back opens a block", back, "    if blocks == 1 then\n      front,",
     "    if false then\n      front,"},
    {"a block is over where units come back", back,
     "if blocks == 1 and head[10] > at then block = head[10] end", ""},
    {"a wait of exactly max_wait refused", kernel, "wait <= args.max_wait &&",
     "wait < args.max_wait &&"},
    {"a grant beyond the end of time", kernel, "&& found.grant <= word_limit", ""},
    {"nothing is dropped", kernel, "head.dropped - assumed + over, word_limit / 2",
     "head.dropped - assumed, word_limit / 2"},
    {"the clock's time is written", kernel, "{at, newest, log.capacity(),",
     "{newest, newest, log.capacity(),"},
    {"the edge's units are not counted on", kernel, "const Word count = place.count + cost;",
     "const Word count = place.count;"},
    {"after a clock set back nothing counts", kernel,
     "    write(effects, log, head.next - later, later, at);\n", ""},
    {"the places are not turned on growth", kernel, "if (head.size > head.next) {", "if (false) {"},
    {"a shorter block shortens", kernel, "std::max(stands, std::min(at + span, word_limit))",
     "std::min(at + span, word_limit)"},
    {"a block that has ended stands", kernel, "given_up || log.block_end() <= at ? 0",
     "given_up ? 0"},
    {"what is reserved opens a block", kernel, "(block > 0 ? 16 : 0)", "0"},
    {"units come back younger than they were", kernel_back, "= log.unit(log.head().size - 1);",
     "= log.head().newest;"},
    {"a place is remembered that is none", kernel_back,
     "  forget_places(effects, log, 0, log.block_end());\n", ""},
    {"the dropped come back twice", kernel_back, " dropped - back,", " dropped,"},
    {"what comes back opens a block", kernel_back,
     "forget_places(effects, log, 0, log.block_end())", "forget_places(effects, log, 0)"},
    {"what had left a full log is never rewarded", kernel_back,
     "head.dropped - std::min(head.dropped, units - given)", "head.dropped"},
};

}  // namespace sluice::test::sliding_window
