// Bugs to plant in the full form of the token bucket. Threading: constants.
#pragma once

#include "tests/twin/mutants.hpp"

namespace sluice::test::token_bucket_reserve {

inline constexpr std::string_view answer = "piece token_bucket_answer";
inline constexpr std::string_view spend = "operation token_bucket_reserve";
inline constexpr std::string_view some = "operation token_bucket_reserve_some";
inline constexpr std::string_view peek_reserve = "operation token_bucket_peek_reserve";
inline constexpr std::string_view set = "operation token_bucket_adjust";
inline constexpr std::string_view moment = "piece token_bucket_view";
inline constexpr std::string_view back = "operation token_bucket_refund";
inline constexpr std::string_view kernel = "src/rules/token_bucket_reserve.cpp";
inline constexpr std::string_view kernel_back = "src/rules/token_bucket_refund.cpp";

inline constexpr Mutant mutants[] = {
    {"tokens come between the intervals", moment, "now - now % interval, (first - first % 2) / 2",
     "now, (first - first % 2) / 2"},
    {"a wait reaches between the intervals", answer,
     "local reach = latest - latest % interval - at", "local reach = latest - at"},
    {"the hint is the wait for the tokens", answer,
     "covered - now + (interval - covered % interval) % interval - max_wait",
     "covered - now + (interval - covered % interval) % interval"},
    {"a bucket of which nothing is known is full", moment, "if level == 0 and full_at > at and",
     "if false and"},
    {"what comes later may come first", moment, "    at = second + -second % interval\n", ""},
    {"a promise is open", moment, "closed = first % 2 == 1", "closed = false"},
    {"a clock set back is a promise", moment, "closed = first % 2 == 1", "closed = true"},
    {"grants before the next lump", answer, "if most >= 0 and is_open then", "if most >= 0 then"},
    {"no wait for the next lump", answer, "if closed then wait = at - now end", ""},
    {"a whole token is left at a stamp ahead", answer,
     "if new_level < least then new_level = least end", ""},
    {"a stamp far ahead locks the key out", moment,
     "if level > limit - charge then level = limit - charge end\n  elseif",
     "level = limit\n  elseif"},
    {"less than the least is taken", answer, "if granted < min_cost then", "if granted < 0 then"},
    {"more is taken than was asked for", answer, "if granted > cost then granted = cost end", ""},
    {"a look spends", peek_reserve, "cost, false", "cost, true"},
    {"a spender answers as if it had looked", spend, "cost, true", "cost, false"},
    {"some are granted and not taken", some, "0, true", "0, false"},
    {"answers as if it had spent", answer, "if spends then\n    after", "if true then\n    after"},
    {"a block opens what is closed longer", set,
     "if level < least and not kept then level = least end", "level = least"},
    {"a block is open to larger bursts", set, "if new_stamp < till then", "if false then"},
    {"what a larger burst is owed is forgotten", set, "level > limit and first ~= 0", "false"},
    {"a block of what is owed is no promise", set, "      spent = first + 1\n", ""},
    {"a reward beyond the longest debt", set, "      if level > room then level = room end\n", ""},
    {"a charge without end", set, "if want > top then want = top end", ""},
    {"a reward beyond a full bucket", set,
     "level = level - units\n      if level < 0 then level = 0 end", "level = level - units"},
    {"a promise is not written", answer, "if closed or new_stamp > at then spent = spent + 1 end",
     ""},
    {"a reservation does not tell what it lies behind", answer,
     "if closed then before = before + 1 end", ""},
    {"a reservation tells what is left", answer, "spent, before = 2 * new_level, 2 * level",
     "spent, before = 2 * new_level, 2 * want"},
    {"given back before another's promise", back,
     "closes = spent_then % 2 == 1 or rest_stamp > stamp_then", "closes = rest_stamp > stamp_then"},
    {"what is left of a reservation is no promise", back,
     "closes = spent_then % 2 == 1 or rest_stamp > stamp_then", "closes = spent_then % 2 == 1"},
    {"given back from the middle of the queue", back, "elseif not waits and", "elseif"},
    {"given back while the clock is set back, as if it were a promise", back,
     "local waits = stamp > at and closed", "local waits = stamp > at"},
    {"given back of what a lump has left alone", back,
     "if waits then undrained =", "if false then undrained ="},
    {"a whole grant comes back for a part", back, "after(cost - amount)", "after(0)"},
    {"given back while more is spent than fits", back, " and level <= limit then", " then"},
    {"given back what has drained", back, "given = cost - age * refill", "given = cost"},
    {"more given back than is left", back, "if given > left then given = left end", ""},
    {"nothing left is on top", back, "if on_top and (waits or left > 0) then", "if on_top then"},
    {"tokens come between the intervals", kernel,
     "const Word at = floor_to(now, shape.interval);\n  const Word spent =",
     "const Word at = now;\n  const Word spent ="},
    {"a promise is open", kernel, "            token_bucket::is_closed(spent)}",
     "            false}"},
    {"what a larger burst is owed is forgotten", kernel,
     "level == m.level && level > limit && words[0] != 0", "false"},
    {"a block is open to larger bursts", kernel, "if (next.stamp >= until) return next;",
     "return next;"},
    {"a reservation does not tell what it lies behind", kernel, "word_of(m.level, m.closed)",
     "word_of(m.level)"},
    {"a reward that moves nothing nearer", kernel, "if (m.at > at && (", "if (false && ("},
    {"a charge that frees the time before it", kernel, "(change == Change::reset ||", "(true ||"},
    {"the hint is the wait for the tokens", kernel, "covered - now - ask.max_wait",
     "covered - now"},
    {"a first level by a clock set back", kernel,
     "if (missing > ceil_div(limit, shape.refill) + shape.longest) return limit - charge;", ""},
    {"a block ends early", kernel, "ceil_to(now + amount, shape.interval)",
     "floor_to(now + amount, shape.interval)"},
    {"an empty grant is written", kernel, "if (granted > 0) {", "if (true) {"},
    {"given back from the middle of the queue", kernel_back, "} else if (!waits &&", "} else if ("},
    {"given back what has drained", kernel_back, "drained(cost, age, args.refill)", "cost"},
    {"the grant keeps its place", kernel_back, "effects.add_output(rest.stamp)",
     "effects.add_output(grant.stamp)"},
    {"a reservation's tokens are lost", kernel_back, "if (given > 0) next = rest;",
     "if (given > 0) next.level -= std::min(given, next.level);"},
    {"given back before another's promise", kernel_back,
     "token_bucket::is_closed(args.spent) || rest.stamp", "rest.stamp"},
    {"what is left of a reservation is no promise", kernel_back, "|| rest.stamp > args.stamp", ""},
    {"given back of what a lump has left alone", kernel_back, "waits ? stamp - at : 0", "0"},
};

}  // namespace sluice::test::token_bucket_reserve
