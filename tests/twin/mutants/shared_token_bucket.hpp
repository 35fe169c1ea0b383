// Bugs to plant in the shared token bucket. Threading: constants.
#pragma once

#include "tests/twin/mutants.hpp"

namespace sluice::test::shared_token_bucket {

inline constexpr std::string_view set = "operation shared_token_bucket_configure";
inline constexpr std::string_view acquire = "operation shared_token_bucket_acquire";
inline constexpr std::string_view peek = "operation shared_token_bucket_peek";
inline constexpr std::string_view spend = "operation shared_token_bucket_reserve";
inline constexpr std::string_view back = "operation shared_token_bucket_refund";
inline constexpr std::string_view adjust = "operation shared_token_bucket_adjust";
inline constexpr std::string_view moment = "piece shared_token_bucket_view";
inline constexpr std::string_view give = "piece shared_token_bucket_give";
inline constexpr std::string_view kernel = "src/rules/shared_token_bucket.cpp";
inline constexpr std::string_view kernel_reserve = "src/rules/shared_token_bucket_reserve.cpp";

inline constexpr Mutant mutants[] = {
    {"a second quota wins", set, "if version == 0 or if_absent == 0 then\n    is_new",
     "if true then\n    is_new"},
    {"the version stands", set, "new_version = version + 1", "new_version = version"},
    {"what is spent is rounded for the caller", set,
     "local free = capacity - (level + -level % period) / period",
     "local free = capacity - (level - level % period) / period"},
    {"the share is of what a double holds", set, "if rest >= capacity then\n              quotient",
     "if rest > capacity then\n              quotient"},
    {"an addition forgets the old capacity", set, "next_free = free + new_capacity - capacity",
     "next_free = free + new_capacity"},
    {"a reset mints", set, "if next_free > most then next_free = most end", ""},
    {"more is free than there is", set,
     "if next_free > new_capacity then next_free = new_capacity end", ""},
    {"what is truly spent is forgotten", set, "new_spent = tokens * new_period", "new_spent = 0"},
    {"what is truly spent is not counted", acquire, "spent = spent + charge", ""},
    {"what is truly spent never drains", moment, "spent = spent - drained", ""},
    {"a quota is kept for ever", moment, "now >= stamp + keep_alive", "false"},
    {"a stamp far ahead locks the key out", acquire, "level > limit - charge then level",
     "false then level"},
    {"boundary >= for >", acquire, "if want > limit or", "if want >= limit or"},
    {"floor for ceil in the hint", peek, "(over + -over % refill) / refill",
     "(over - over % refill) / refill"},
    {"a quota that is none accepted", moment, "period < 1 or\n", "false or\n"},
    {"the share is rounded for the caller", kernel, "Wide{free} * q.capacity / b.capacity)",
     "(Wide{free} * q.capacity + b.capacity - 1) / b.capacity)"},
    {"a debt is forgiven", kernel, "free <= 0 ? free", "free <= 0 ? Word{0}"},
    {"a reset mints", kernel, "return std::min({next, q.capacity, most});",
     "return std::min(next, q.capacity);"},
    {"a quota is kept a tick too long", kernel, "shared_moment(state, args[2], now)",
     "shared_moment(state, args[2] + 1, now)"},
    {"a new quota frees what is promised", set, "if at > now and free <= 0 and next_free > 0 then",
     "if false then"},
    {"the hint is the wait for the tokens", spend, "wait - max_wait,", "wait,"},
    {"a longer wait than was asked for", spend, "if wait > max_wait then",
     "if wait > max_wait + 1 then"},
    {"a whole token is left at a stamp ahead", spend,
     "if new_level < limit - period + 1 then new_level = limit - period + 1 end", ""},
    {"what is promised drains before it is spent", spend, "  spent = spent + charge\n",
     "  spent = spent + charge - (new_stamp - at) * refill\n  if spent < 0 then spent = 0 end\n"},
    {"given back of another quota", back, "version_then == version and", "true and"},
    {"given back from the middle of the queue", back, "elseif known and not waits then",
     "elseif known then"},
    {"given back what has drained", back, "own = own - age * refill", "own = own"},
    {"given back to before the grant", back,
     "new_level, new_stamp, new_spent = rest_level, rest_stamp, spent_then",
     "new_level, new_stamp, new_spent = rest_level, now, spent_then"},
    {"what was truly spent before a grant is not restored", back,
     "new_spent = new_spent - (rest_stamp - stamp_then) * refill", "new_spent = spent - given"},
    {"a promise waits for nothing where nothing is asked", acquire,
     "or (at > now and level > limit - period)", ""},
    {"a promise waits for nothing where nothing is asked", peek,
     "or (at > now and level > limit - period)", ""},
    {"a promise waits for nothing where nothing is asked", spend,
     "or (at > now and level > limit - period)", ""},
    {"what was truly spent stays", give, "new_spent = spent - given", "new_spent = spent"},
    {"more given back than is left", give, "if given > left then given = left end", ""},
    {"a block opens what is closed longer", adjust,
     "if new_level < least then\n      new_level = least", "if true then\n      new_level = least"},
    {"what is promised beyond a block opens it", adjust, "new_level = new_level + 1", ""},
    {"a block ends a tick early", adjust, "last = now + amount - 1", "last = now + amount - 2"},
    {"a charge without end", adjust, "if new_stamp > last then", "if false then"},
    {"a debt is cut by a charge", adjust,
     "if before >= last then new_level, new_stamp = level, at end", ""},
    {"the clock's time written as stamp", kernel,
     "    write_bucket(b, at, effects);\n  }\n  return",
     "    write_bucket(b, now, effects);\n  }\n  return"},
    {"a new quota frees what is promised", kernel, "if (ahead && free <= 0)", "if (false)"},
    {"what is promised drains before it is spent", kernel_reserve,
     "truly(b, placed.stamp - at) + charge)", "drained(b.spent + charge, placed.stamp - at, 1))"},
    {"an empty grant is written", kernel_reserve, "if (cost > 0) write", "if (true) write"},
    {"given back of another quota", kernel_reserve, "r.version == b.version && !given_up",
     "!given_up"},
    {"given back what has drained", kernel_reserve,
     "drained(cost, std::max(Word{0}, at - grant.stamp), b.refill)", "cost"},
    {"given back to before the grant", kernel_reserve, "const Word at = std::max(now, rest.stamp);",
     "const Word at = now;"},
    {"the grant keeps its place", kernel_reserve, "effects.add_output(rest.stamp)",
     "effects.add_output(grant.stamp)"},
    {"what was truly spent before a grant is not restored", kernel_reserve, "then.spent = r.spent;",
     ""},
    {"a promise ahead is a clock set back", kernel_reserve, "is_known && !waits", "is_known"},
    {"a charge is not truly spent", kernel_reserve, "std::min(over, elapsed)) + fits)",
     "std::min(over, elapsed)))"},
    {"a debt drains what is truly spent", kernel_reserve, "truly(b, std::min(over, elapsed))",
     "truly(b, elapsed)"},
    {"a block lets a token through", kernel_reserve, "Word least = limit - b.period + 1;",
     "Word least = limit - b.period;"},
};

}  // namespace sluice::test::shared_token_bucket
