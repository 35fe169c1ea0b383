// Bugs to plant in the shared bucket. Threading: constants.
#pragma once

#include "tests/twin/mutants.hpp"

namespace sluice::test::shared_bucket {

inline constexpr std::string_view set = "shared_bucket_set.lua";
inline constexpr std::string_view take = "shared_bucket_take.lua";
inline constexpr std::string_view peek = "shared_bucket_peek.lua";
inline constexpr std::string_view kernel = "src/algorithms/shared_bucket.cpp";

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
    {"what is truly spent is not counted", take, "spent = spent + charge", ""},
    {"what is truly spent never drains", take, "spent = spent - drained", ""},
    {"a quota is kept for ever", take, "now >= stamp + keep_alive", "false"},
    {"a stamp far ahead locks the key out", take, "level > limit - charge then level",
     "false then level"},
    {"boundary >= for >", take, "if want > limit then", "if want >= limit then"},
    {"floor for ceil in the hint", peek, "(over + -over % refill) / refill",
     "(over - over % refill) / refill"},
    {"a quota that is none accepted", peek, "period < 1 or\n", "false or\n"},
    {"the share is rounded for the caller", kernel, "Wide{free} * q.capacity / b.capacity)",
     "(Wide{free} * q.capacity + b.capacity - 1) / b.capacity)"},
    {"a debt is forgiven", kernel, "free <= 0 ? free", "free <= 0 ? Word{0}"},
    {"a reset mints", kernel, "return std::min({next, q.capacity, most});",
     "return std::min(next, q.capacity);"},
    {"what is truly spent never drains", kernel,
     "b.spent = drained(b.spent, at - b.stamp, b.refill)", "(void)0"},
    {"a quota is kept a tick too long", kernel, "now >= b.stamp + keep_alive",
     "now > b.stamp + keep_alive"},
    {"the clock's time written as stamp", kernel, "    write(b, at, effects);\n  }\n  return",
     "    write(b, now, effects);\n  }\n  return"},
};

}  // namespace sluice::test::shared_bucket
