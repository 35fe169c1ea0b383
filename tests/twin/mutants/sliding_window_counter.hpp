// Bugs to plant in the sliding window counter. Threading: constants.
#pragma once

#include "tests/twin/mutants.hpp"

namespace sluice::test::sliding_window_counter {

inline constexpr std::string_view acquire = "operation sliding_window_counter_acquire";
inline constexpr std::string_view peek = "operation sliding_window_counter_peek";
inline constexpr std::string_view adjust = "operation sliding_window_counter_adjust";
inline constexpr std::string_view block = "operation sliding_window_counter_block";
inline constexpr std::string_view view = "piece sliding_window_counter_view";
inline constexpr std::string_view standing = "piece sliding_window_counter_standing";
inline constexpr std::string_view decide = "piece sliding_window_counter_decide";
inline constexpr std::string_view reset = "operation sliding_window_counter_reset";
inline constexpr std::string_view kernel = "src/rules/sliding_window_counter.cpp";

inline constexpr Mutant mutants[] = {
    {"products beyond 2^53", view, "if a * b <= word_limit then", "if true then"},
    {"a digit's rest is forgotten", view, "local sum = rest * 1024 + digit * b",
     "local sum = digit * b"},
    {"what is two windows old counts", view,
     "if aligned == start + span then previous = current else previous = 0 end",
     "previous = current"},
    {"a clock set back locks out", view, "start > now + Rule.max_ahead", "false"},
    {"a clock set back frees a window", view, "local units = current + previous",
     "local units = current"},
    {"words that no counter leaves accepted", view,
     "if current > Rule.max_limit or previous > Rule.max_limit then", "if false then"},
    {"the window before counts in full", standing, " - scale(previous, at - start, span)", ""},
    {"units remain while blocked", standing, "if left < 0 or closed > now then",
     "if left < 0 then"},
    {"a question forgets how long the block lasts", standing,
     "  if closed - now > clear then clear = closed - now end\n", ""},
    {"the hint forgets the current window", decide, "scale(room - current, span, previous)",
     "scale(room, span, previous)"},
    {"the hint is a microsecond early", decide, "fits + span - scale(room, span, current)",
     "fits + span - scale(room, span, current) - 1"},
    {"a hint to the end of the block whatever is counted", decide, "    if estimate > room then\n",
     "    if closed <= now then\n"},
    {"a hint that forgets the block", decide, "    if closed > fits then fits = closed end\n", ""},
    {"a cost of zero writes", acquire, "  if cost == 0 then return 1, left, 0, clear end\n", ""},
    {"a grant leaves a block that is over", acquire, "  if closed > 0 then counts",
     "  if false then counts"},
    {"answers as if it had spent", peek, "return 1, left, 0, clear",
     "return 1, left - cost, 0, clear"},
    {"a reset leaves the block", reset, "32", "24"},
    {"given back a window too late", adjust, "local is_before, changed = window + span == start",
     "local is_before, changed = window + 2 * span == start"},
    {"more taken off than there is", adjust, "if units > count then units = count end", ""},
    {"a reward is taken off twice", adjust, "local units = amount - changed",
     "local units = amount"},
    {"a charge beyond what is counted", adjust, "if changed > amount then changed = amount end",
     "changed = amount"},
    {"old units are charged now", adjust, "if window >= start then current = add(current) end",
     "if not is_before then current = add(current) end"},
    {"a later block is shortened", block, " and till > closed", ""},
    {"a block of nothing writes", block, "if length > 0 and till", "if till"},
    {"a block beyond the end of time", block, "  if till > word_limit then till = word_limit end\n",
     ""},
    {"a block moves the window", block, "struct.pack('<i8', head[1])", "struct.pack('<i8', start)"},
    {"a block is forgotten", kernel, "{view[0], view[1], view[2], view[3]}",
     "{view[0], view[1], view[2], 0}"},
    {"a hint to the end of the block whatever is counted", kernel,
     "m.estimate > room ? fits_at(m.state, args.span, room) : now", "now"},
    {"a later block is shortened", kernel, "args.length > 0 && until > m.state.closed",
     "args.length > 0"},
    {"the weight is rounded down", kernel, "scale(s.previous, m.at - s.start, span);",
     "scale(s.previous, m.at - s.start, span) - (s.previous > 0 ? 1 : 0);"},
    {"what is two windows old counts", kernel, "start == s.start + args.span ? s.current : 0",
     "s.current"},
    {"the hint is a microsecond early", kernel, "return end + span - scale(room, span, s.current);",
     "return end + span - scale(room, span, s.current) - 1;"},
    {"the units before are not written", kernel, "effects.put(2, state.previous);",
     "effects.put(2, 0);"},
    {"after a clock set back a full window is free", kernel,
     "std::min(s.current + s.previous, args.limit - args.cost)", "0"},
    {"old units are charged now", kernel, "if (window >= m.state.start) add",
     "if (!is_before) add"},
    {"nothing changed is written", kernel, "if (changed > 0) write", "write"},
};

}  // namespace sluice::test::sliding_window_counter
