// Bugs planted in the fixed window. Threading: constants.
#pragma once

#include "tests/twin/mutants.hpp"

namespace sluice::test::fixed_window {

inline constexpr std::string_view kernel = "src/algorithms/fixed_window.cpp";
inline constexpr std::string_view take = "fixed_window_take.lua";
inline constexpr std::string_view peek = "fixed_window_peek.lua";
inline constexpr std::string_view give_back = "fixed_window_give_back.lua";

inline constexpr std::string_view adjust = "fixed_window_adjust.lua";
inline constexpr std::string_view present = "fixed_window_present.lua";
inline constexpr std::string_view foreign = "fixed_window_foreign.lua";

inline constexpr Mutant mutants[] = {
    {"boundary >= for >", take, "if want > limit then", "if want >= limit then"},
    {"the origin is forgotten", present, "now - (now - b0) % width", "now - now % width"},
    {"no window before the origin", present, "if now < b0 then\n", "if false then\n"},
    {"what an old window used counts", take, "  if last > from then\n", "  if last >= 0 then\n"},
    {"any window of the same end is one's own", take,
     "if last == stored_to and wide <= top and wide > top - unit then",
     "if last == stored_to then"},
    {"more than the limit of the stored window", take, "if cost > 0 and want <= limit then",
     "if cost > 0 then"},
    {"used not clamped to the limit", take, "    if used > limit then used = limit end\n", ""},
    {"a cost of zero writes", take,
     "  if cost == 0 then return 1, limit - used, 0, unused_after end\n", ""},
    {"the width is forgotten", take, "8 * exponent - 16", "8 * exponent - 8"},
    {"answers as if it had spent", peek, "return 1, limit - used, 0", "return 1, limit - want, 0"},
    {"given back to any window", give_back, "last == to and ", ""},
    {"given back to a wider window", give_back, "wide <= top and wide > top - unit and ", ""},
    {"given back to a window that is over", give_back, "now < to and ", ""},
    {"more given back than was used", give_back, "  if used < 0 then used = 0 end\n", ""},
    {"nothing used can be given back", give_back, " and used > 0", ""},
    {"a reward below nothing used", adjust, "  if new_used < 0 then new_used = 0 end\n", ""},
    {"a penalty without an end", adjust,
     "  if new_used > 8796093022207 then new_used = 8796093022207 end -- max_used\n", ""},
    {"a penalty of a negative remainder", adjust, "  if remaining < 0 then remaining = 0 end\n",
     ""},
    {"what changes nothing is written", adjust, "  if new_used == used then\n",
     "  if false then\n"},
    {"a foreign window takes no share", foreign, "stored + share(from, to, now)", "stored"},
    {"a foreign window's units are forgotten", foreign, "stored + share(from, to, now)",
     "share(from, to, now)"},
    {"a share of what is over is forgotten", foreign, "share(from, to, last), clear, clear",
     "0, clear, clear"},
    {"a share is remembered for ever", foreign, "if now >= forgotten then return from",
     "if false then return from"},
    {"a share is rounded down", foreign, "return limit - (product - product % width) / width",
     "return limit - (product + -product % width) / width"},
    {"a long product loses its end", foreign, "for part = 4, 0, -1", "for part = 4, 1, -1"},
    {"a clock corrected opens another window", foreign, "if begin <= reach then", "if false then"},
    {"a clock set back refuses for ever", foreign,
     "    if stored > limit - cost then stored = limit - cost end\n", ""},
    {"a hint that looks past one's own window", foreign,
     "  if to < last and stored + cost <= limit then fits_at = to end\n", ""},
    {"a hint that forgets the share", foreign, "if left + cost <= limit then fits_at",
     "if true then fits_at"},
    {"boundary >= for >", kernel, "if (want > args.limit)", "if (want >= args.limit)"},
    {"the origin is forgotten", kernel, "(at - b[0]) % args.width", "at % args.width"},
    {"used not clamped to the limit", kernel, "std::min(m.used, args.limit)", "m.used"},
    {"a window for the corrected clock", kernel, "last.begin <= now + Rule::max_ahead", "false"},
    {"a clock set back mints a window", kernel, "std::min(stored.used, args.limit - args.cost)",
     "0"},
    {"given back to a window that is over", kernel, "now < args.end &&", ""},
    {"a reward below nothing used", kernel, "std::clamp(m.used + amount, Word{0}, Rule::max_used)",
     "std::min(m.used + amount, Rule::max_used)"},
    {"a penalty without an end", kernel, "std::clamp(m.used + amount, Word{0}, Rule::max_used)",
     "std::max(m.used + amount, Word{0})"},
    {"a foreign window takes no share", kernel, "stored.used + share(args.limit, window, now)",
     "stored.used"},
    {"a share of what is over is forgotten", kernel,
     "share(args.limit, window, stored.end), clear, clear", "0, clear, clear"},
    {"any window of the same end is one's own", kernel,
     "stored.end == cut(window.end) && width <= top &&\n         width > top - (Word{1} << "
     "(stored.code / 8))",
     "stored.end == cut(window.end)"},
};

}  // namespace sluice::test::fixed_window
