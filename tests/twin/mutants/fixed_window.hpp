// Bugs planted in the fixed window. Threading: constants.
#pragma once

#include "tests/twin/mutants.hpp"

namespace sluice::test::fixed_window {

inline constexpr std::string_view kernel = "src/algorithms/fixed_window.cpp";
inline constexpr std::string_view take = "fixed_window_take.lua";
inline constexpr std::string_view peek = "fixed_window_peek.lua";
inline constexpr std::string_view give_back = "fixed_window_give_back.lua";

inline constexpr Mutant mutants[] = {
    {"boundary >= for >", take, "if want > limit then", "if want >= limit then"},
    {"the origin is forgotten", take, "at - (at - b0) % width", "at - at % width"},
    {"no window before the origin", take, "if at < b0 then\n", "if false then\n"},
    {"what an old window used counts", take, "  if start < from then used = 0 end\n", ""},
    {"used not clamped to the limit", take, "  if used > limit then used = limit end\n", ""},
    {"a clock corrected opens another window", take,
     "  if start > at and not set_back then at = start end\n", ""},
    {"a clock set back refuses for ever", take,
     "  if set_back and used > limit - cost then used = limit - cost end\n", ""},
    {"a cost of zero writes", take, "if cost > 0 then return 1", "if cost >= 0 then return 1"},
    {"answers as if it had spent", peek, "return 1, limit - used, 0", "return 1, limit - want, 0"},
    {"given back to any window", give_back, "start >= from and start < to and ", ""},
    {"given back to a window that is over", give_back, "now < to and ", ""},
    {"more given back than was used", give_back, "  if used < 0 then used = 0 end\n", ""},
    {"nothing used can be given back", give_back, " and used > 0", ""},
    {"boundary >= for >", kernel, "if (want > args.limit)", "if (want >= args.limit)"},
    {"the origin is forgotten", kernel, "(at - b[0]) % args.width", "at % args.width"},
    {"used not clamped to the limit", kernel, "std::min(state.used, args.limit)", "state.used"},
    {"a window for the corrected clock", kernel, "std::max(now, state.start)", "now"},
    {"a clock set back mints a window", kernel,
     "if (set_back) used = std::min(used, args.limit - args.cost);", "if (set_back) used = 0;"},
    {"given back to a window that is over", kernel, "now < args.end &&", ""},
};

}  // namespace sluice::test::fixed_window
