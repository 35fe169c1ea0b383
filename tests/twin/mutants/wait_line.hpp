// Bugs to plant in the wait line. Threading: constants.
#pragma once

#include "tests/twin/mutants.hpp"

namespace sluice::test::wait_line {

inline constexpr std::string_view scan = "piece wait_line_scan";
inline constexpr std::string_view enter = "operation wait_line_enter";
inline constexpr std::string_view turn = "operation wait_line_turn";
inline constexpr std::string_view leave = "operation wait_line_leave";
inline constexpr std::string_view peek = "operation wait_line_peek";
inline constexpr std::string_view kernel = "src/rules/wait_line.cpp";

inline constexpr Mutant mutants[] = {
    {"the dead stay in line", scan, "till <= now or", ""},
    {"dead at its last instant already", scan, "till <= now or", "till <= now + 1 or"},
    {"a place from before the clock was set back lives on", scan, "or till > now + Rule.max_ttl",
     ""},
    {"who came at the same instant does not stand before", scan,
     "or (came == arrival and who < client) then\n        before", "then\n        before"},
    {"equals stand in no order", scan, "(came == first_since and who < first)", "false"},
    {"the hint is that of the last one read", scan, "if till > clear_at then clear_at = till end",
     "clear_at = till"},
    {"two places of one client accepted", scan, "if mine >= 0 then is_corrupt = true end", ""},
    {"life from the epoch", scan, "local till = now + ttl", "local till = ttl"},
    {"a second place for who has one", scan, "local place = mine", "local place = -1"},
    {"places behind are cut off", scan, "if place >= finish then finish = place + 1 end",
     "finish = place + 1"},
    {"tells itself as the first", enter, "struct.pack('<i8i8', ahead, first)",
     "struct.pack('<i8i8', ahead, client)"},
    {"a TTL that is too short accepted", enter, "ttl < Rule.min_ttl", "ttl < 999"},
    {"nobody waits for a turn", turn, "if before > 0 then", "if false then"},
    {"the next caller has the place of this one", turn, "client, next, ttl",
     "client, arrival, ttl"},
    {"the place is never given up", turn, "elseif mine >= 0 then -- drop()", "elseif false then"},
    {"a later place is given up", leave, "(arrival == 0 or arrival == since)", "true"},
    {"writes for who is not in line", leave, "mine >= 0 and ", ""},
    {"one is always in line", peek, "struct.pack('<i8i8', ahead", "struct.pack('<i8i8', 1 + ahead"},
    {"the dead stay in line", kernel, "until <= now ||", ""},
    {"nobody waits for a turn", kernel, "if (scan.before > 0) {", "if (scan.before > 9) {"},
    {"the next caller has the place of this one", kernel, "hold(scan, a.client, a.next,",
     "hold(scan, a.client, a.arrival,"},
    {"a later place is given up", kernel, "(a.arrival == 0 || a.arrival == scan.since)", "true"},
    {"life from the epoch", kernel, "std::min(now + ttl, word_limit)", "ttl"},
    {"places behind are cut off", kernel, "std::max(scan.end, place + 1)", "place + 1"},
};

}  // namespace sluice::test::wait_line
