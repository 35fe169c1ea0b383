// Bugs planted in the gate. Threading: constants.
#pragma once

#include "tests/twin/mutants.hpp"

namespace sluice::test::gate {

inline constexpr std::string_view kernel = "src/rules/gate.cpp";
inline constexpr std::string_view close = "operation gate_close";
inline constexpr std::string_view pass = "operation gate_pass";
inline constexpr std::string_view peek = "operation gate_peek";

inline constexpr Mutant mutants[] = {
    {"the last closure wins", close, "(later > until_ or renewed)", "true"},
    {"no cap", close, "  if span > cap then span = cap end\n", ""},
    {"a closure of no time closes", close, "if later > now and", "if"},
    {"what is left after a clock set back is not capped", close,
     "    if rest > cap then rest = cap end\n", ""},
    {"a clock set back keeps it closed", close, "if stamp > now + Rule.max_ahead", "if false"},
    {"no ramp", pass, "until_ == 0 or now >= free_at", "now >= until_"},
    {"passes of the ramp are not spaced", pass, "    if mark > due then due = mark end\n", ""},
    {"the hint lies beyond the ramp", pass, "    if due > free_at then due = free_at end\n", ""},
    {"boundary > for >=", pass, "now >= free_at", "now > free_at"},
    {"a gate never closed is in its ramp", pass, "until_ == 0 or ", ""},
    {"a clock set back keeps it closed", pass, "if stamp > now + Rule.max_ahead", "if false"},
    {"the mark counts from the end of the closure", pass, "mark = now + spacing",
     "mark = until_ + spacing"},
    {"words that contradict each other accepted", pass,
     "  if until_ > mark + Rule.max_cap or mark > until_ + Rule.max_ramp + Rule.max_ramp then\n",
     "  if false then\n"},
    {"a question refuses at the due time", peek, "if now < due", "if now <= due"},
    {"the last closure wins", kernel, "(until > m.until || m.renewed)", "true"},
    {"no cap", kernel, "now + std::min(args.span, args.cap)", "now + args.span"},
    {"what is left after a clock set back is not capped", kernel,
     "now + std::min(state.until - stamp, args.cap)", "now + (state.until - stamp)"},
    {"the hint lies beyond the ramp", kernel,
     "std::min(std::max(state.mark, state.until), free_at)", "std::max(state.mark, state.until)"},
    {"bound of the stamp >= for >", kernel, "if (stamp > now", "if (stamp >= now"},
};

}  // namespace sluice::test::gate
