// Bugs planted in the slot lock. Threading: constants.
#pragma once

#include "tests/twin/mutants.hpp"

namespace sluice::test::slot_lock {

inline constexpr std::string_view kernel = "src/rules/slot_lock.cpp";
inline constexpr std::string_view acquire = "operation slot_lock_acquire";
inline constexpr std::string_view peek = "operation slot_lock_peek";
inline constexpr std::string_view cancel = "operation slot_lock_cancel";
inline constexpr std::string_view block = "operation slot_lock_block";

inline constexpr Mutant mutants[] = {
    {"the hint is the wait for the slot", acquire, "wait - max_wait, wait end", "wait, wait end"},
    {"a wait of exactly max_wait refused", acquire, "if wait > max_wait then return",
     "if wait >= max_wait then return"},
    {"the next slot counts from the claim", acquire, "next = slot + interval",
     "next = now + interval"},
    {"beyond the end of time", acquire, "  if next > word_limit then next = word_limit end\n", ""},
    {"a clock set back locks the key", acquire, "if stamp > now + Rule.max_ahead", "if false"},
    {"a queue is taken for a clock set back", acquire, "if stamp > now + Rule.max_ahead",
     "if next > now + Rule.max_ahead"},
    {"after a clock set back the queue is forgotten", acquire, "slot = now + queue", "slot = now"},
    {"words that contradict each other accepted", acquire,
     "  if next < stamp then return Errc.corrupt_state end\n", ""},
    {"a question refuses at exactly max_wait", peek, "if wait > max_wait then return",
     "if wait >= max_wait then return"},
    {"any slot can be given back", cancel, "if not is_last or now", "if now"},
    {"a later slot is drawn nearer by a block", block, "if slot >= next then next = slot + 1 end",
     ""},
    {"a block is opened by who gives a slot back", block, "next = slot + 1", "next = slot"},
    {"a block that ends with the last slot leaves it on top", block, "if slot >= next",
     "if slot > next"},
    {"a block of nothing writes", block, "span == 0 or wait > most", "wait > most"},
    {"after a clock set back a block forgets the queue", block, "slot = now + queue", "slot = now"},
    {"a block beyond the end of time", block, "  if next > word_limit then next = word_limit end\n",
     ""},
    {"a block is opened by who gives a slot back", kernel, "slot + 1, word_limit",
     "slot, word_limit"},
    {"what is kept for longer than a block is written", kernel, "args.span == 0 || wait > most",
     "args.span == 0"},
    {"the hint is the wait for the slot", kernel,
     "if (wait > args.max_wait) return {Verdict::refused, 0, wait - args.max_wait, wait};\n\n  "
     "const "
     "Word next",
     "if (wait > args.max_wait) return {Verdict::refused, 0, wait, wait};\n\n  const Word next"},
    {"the next slot counts from the claim", kernel, "slot + args.interval, word_limit",
     "now + args.interval, word_limit"},
    {"the slot written as stamp", kernel,
     "effects.put(1, now);\n  return {Verdict::allowed, 0, wait",
     "effects.put(1, slot);\n  return {Verdict::allowed, 0, wait"},
    {"bound of the stamp >= for >", kernel, "return state.stamp > now",
     "return state.stamp >= now"},
};

}  // namespace sluice::test::slot_lock
