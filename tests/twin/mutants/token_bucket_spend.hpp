// Bugs to plant in the full form of the token bucket. Threading: constants.
#pragma once

#include "tests/twin/mutants.hpp"

namespace sluice::test::token_bucket_spend {

inline constexpr std::string_view answer = "token_bucket_answer.lua";
inline constexpr std::string_view spend = "token_bucket_spend.lua";
inline constexpr std::string_view some = "token_bucket_spend_some.lua";
inline constexpr std::string_view look = "token_bucket_look.lua";
inline constexpr std::string_view set = "token_bucket_set.lua";
inline constexpr std::string_view moment = "token_bucket_moment.lua";
inline constexpr std::string_view back = "token_bucket_give_back.lua";
inline constexpr std::string_view kernel = "src/algorithms/token_bucket_spend.cpp";
inline constexpr std::string_view kernel_back = "src/algorithms/token_bucket_give_back.cpp";

inline constexpr Mutant mutants[] = {
    {"tokens come between the intervals", moment, "now - now % interval, first, false",
     "now, first, false"},
    {"a wait reaches between the intervals", answer,
     "local reach = latest - latest % interval - at", "local reach = latest - at"},
    {"the hint is the wait for the tokens", answer,
     "covered - now + (interval - covered % interval) % interval - max_wait",
     "covered - now + (interval - covered % interval) % interval"},
    {"a bucket of which nothing is known is full", moment, "if level == 0 and full_at > at and",
     "if false and"},
    {"no time between the intervals", moment, "closed = interval > 1", "closed = false"},
    {"what comes later may come first", moment, "    at = second + -second % interval\n", ""},
    {"a unit that has no room", moment, " or limit >= 549755813888", ""},
    {"a promise is open to other quotas", moment, " or promised", ""},
    {"grants before the next lump", answer, "if most >= 0 and is_open then", "if most >= 0 then"},
    {"no wait for the next lump", answer, "if closed then wait = at - now end", ""},
    {"a whole token is left at a stamp ahead", answer,
     "if new_level < least then new_level = least end", ""},
    {"a stamp far ahead locks the key out", moment,
     "if level > limit - charge then level = limit - charge end\n  elseif",
     "level = limit\n  elseif"},
    {"less than the least is taken", answer, "if granted < min_cost then", "if granted < 0 then"},
    {"more is taken than was asked for", answer, "if granted > cost then granted = cost end", ""},
    {"a look spends", look, "cost, false", "cost, true"},
    {"a spender answers as if it had looked", spend, "cost, true", "cost, false"},
    {"some are granted and not taken", some, "0, true", "0, false"},
    {"answers as if it had spent", answer, "if spends then\n    after", "if true then\n    after"},
    {"a block opens what is closed longer", set,
     "if level < least and not kept then level = least end", "level = least"},
    {"a block is open to larger quotas", set, "if new_stamp < till and unit > 0 then",
     "if false then"},
    {"what a larger quota is owed is forgotten", set, "level > limit and first ~= 0", "false"},
    {"a block of what is owed is no promise", set, "spent = spent + 4096", ""},
    {"a reward beyond the longest debt", set, "      if level > room then level = room end\n", ""},
    {"a charge without end", set, "if want > top then want = top end", ""},
    {"a reward beyond a full bucket", set,
     "level = level - units\n      if level < 0 then level = 0 end", "level = level - units"},
    {"a promise is not written", answer,
     "if closed or new_stamp > at then spent = spent + promise end", ""},
    {"a receipt does not tell what it lies behind", answer,
     "if behind then receipt = receipt + promise end", ""},
    {"given back before another's promise", back, "local stays = ahead > 0", "local stays = false"},
    {"given back from the middle of the queue", back, "elseif ahead == 0 and", "elseif"},
    {"given back of another unit", back, "on_top = on_top and same_unit", ""},
    {"given back while more is spent than fits", back, " and level <= limit then", " then"},
    {"given back what has drained", back, "given = cost * period - age * refill",
     "given = cost * period"},
    {"more given back than is left", back, "if given > left then given = left end", ""},
    {"nothing left is on top", back, "on_top and left > 0 and 1 or 0", "on_top and 1 or 0"},
    {"tokens come between the intervals", kernel,
     "const Word at = floor_to(now, shape.interval);\n  const Word spent =",
     "const Word at = now;\n  const Word spent ="},
    {"a promise is open to other quotas", kernel, "|| token_bucket::is_promise(spent)", ""},
    {"what a larger quota is owed is forgotten", kernel,
     "level == m.level && level > limit && words[0] != 0", "false"},
    {"a block is open to larger quotas", kernel, "shape.unit == 0 || next.stamp >= until", "true"},
    {"a receipt does not tell what it lies behind", kernel, "if (!m.closed) return false;",
     "return false;"},
    {"a reward that moves nothing nearer", kernel, "if (m.at > at && (", "if (false && ("},
    {"a charge that frees the time before it", kernel, "(change == Change::reset ||", "(true ||"},
    {"the hint is the wait for the tokens", kernel, "covered - now - ask.max_wait",
     "covered - now"},
    {"a first level by a clock set back", kernel,
     "if (missing > ceil_div(limit, shape.refill) + shape.longest) return limit - charge;", ""},
    {"a block ends early", kernel, "ceil_to(now + amount, shape.interval)",
     "floor_to(now + amount, shape.interval)"},
    {"an empty grant is written", kernel, "if (granted > 0) {", "if (true) {"},
    {"given back from the middle of the queue", kernel_back, "} else if (ahead == 0 &&",
     "} else if ("},
    {"given back what has drained", kernel_back,
     "drained(args.cost * args.period, age, args.refill)", "args.cost * args.period"},
    {"the grant keeps its place", kernel_back, "moved ? next.stamp : args.stamp", "args.stamp"},
    {"a reservation's tokens are lost", kernel_back, "ahead == 0 || given == 0 || stays ?",
     "true ?"},
    {"given back before another's promise", kernel_back,
     "ahead > 0 && token_bucket::is_promise(args.spent);", "false;"},
};

}  // namespace sluice::test::token_bucket_spend
