// Bugs planted in the fixed window. Threading: constants.
#pragma once

#include "tests/twin/mutants.hpp"

namespace sluice::test::fixed_window {

inline constexpr std::string_view kernel = "src/rules/fixed_window.cpp";
inline constexpr std::string_view acquire = "operation fixed_window_acquire";
inline constexpr std::string_view peek = "operation fixed_window_peek";
inline constexpr std::string_view refund = "operation fixed_window_refund";
inline constexpr std::string_view adjust = "operation fixed_window_adjust";
inline constexpr std::string_view block = "operation fixed_window_block";
inline constexpr std::string_view view = "piece fixed_window_view";
inline constexpr std::string_view standing = "piece fixed_window_standing";
inline constexpr std::string_view decide = "piece fixed_window_decide";

inline constexpr Mutant mutants[] = {
    {"boundary >= for >", decide, "closed or want > limit", "closed or want >= limit"},
    {"a hint to the block's end whatever is left", decide,
     "    if want > limit then fits_at = to end\n", ""},
    {"a hint behind the block's window", decide, "local fits_at = begin", "local fits_at = to"},
    {"the origin is forgotten", view, "at - (at - b0) % width", "at - at % width"},
    {"no window before the origin", view, "    if at < b0 then return 0, b0 end\n", ""},
    {"what an old window used counts", view, "begin, used = from, 0", "begin = from"},
    {"a window that another version of the zone began is forgotten", view, "begin < from then",
     "begin ~= from then"},
    {"a clock corrected opens another window", view, "if begin > now then at = begin end",
     "if begin > now and is_block == 1 then at = begin end"},
    {"a clock set back refuses for ever", view,
     "    if used > limit - cost then used = limit - cost end\n", ""},
    {"a clock set back opens a block", view, "if is_block == 0 and from >", "if from >"},
    {"a clock set back within a window frees it", view, "if is_block == 0 and from >",
     "if is_block == 0 and begin >"},
    {"a block is open from the first", view, "is_block == 1 and now < begin", "false"},
    {"a block stays closed", view, "is_block == 1 and now < begin", "is_block == 1"},
    {"used not clamped to the limit", standing, "if left < 0 or closed then", "if closed then"},
    {"units remain while blocked", standing, "if left < 0 or closed then", "if left < 0 then"},
    {"a question forgets how long the block lasts", standing,
     "elseif closed then clear = begin - now end", "end"},
    {"a cost of zero writes", acquire, "  if cost == 0 then return 1, left, 0, clear end\n", ""},
    {"a grant leaves the block", acquire, "begin, 2 * want", "begin, 2 * want + is_block"},
    {"answers as if it had spent", peek, "return 1, left, 0", "return 1, limit - want, 0"},
    {"given back to any window", refund, "from <= begin and begin < to", "true"},
    {"given back to a window that is over", refund, "now < to and ", ""},
    {"given back to a window that the clock is far from", refund,
     " and from <= now + Rule.max_ahead", ""},
    {"more given back than was used", refund, "  if given > used then given = used end\n", ""},
    {"tells what was asked for as given back", refund, "struct.pack('<i8', given)",
     "struct.pack('<i8', cost)"},
    {"nothing used can be given back", refund, " and used > 0", ""},
    {"a refund opens a block", refund, "2 * used + is_block", "2 * used"},
    {"a reward below nothing used", adjust, "  if new_used < 0 then new_used = 0 end\n", ""},
    {"a penalty without an end", adjust,
     "  if new_used > Rule.max_used then new_used = Rule.max_used end\n", ""},
    {"what changes nothing is written", adjust, "if new_used ~= used then", "if true then"},
    {"a penalty opens a block", adjust, "if closed then new_packed = new_packed + 1 end", ""},
    {"what is charged before the block's window counts in it", adjust,
     "  if closed and now < from then new_used = used end\n", ""},
    {"a block of nothing writes", block, "if span > 0 and (", "if ("},
    {"a later block is shortened", block, " and (packed % 2 == 0 or begin < till)", ""},
    {"a block forgets what was used", block, "2 * last_used + 1", "1"},
    {"a block beyond the end of time", block, "  if till > word_limit then till = word_limit end\n",
     ""},
    {"a block before a window that was spent of", block,
     "    if begin < last_from then begin = last_from end\n", ""},
    {"a block counts from what is used now", block, "view_at(begin, packed, till)",
     "view_at(begin, packed, now)"},
    {"a block is open from the first", kernel, "stored.is_block && now < stored.begin};",
     "false};"},
    {"a block forgets what was used", kernel, "last.used, true}", "0, true}"},
    {"a later block is shortened", kernel,
     "span > 0 && !(stored.is_block && stored.begin >= until)", "span > 0"},
    {"a hint to the block's end whatever is left", kernel,
     "want > args.limit ? m.window.end : m.begin", "m.closed ? m.begin : m.window.end"},
    {"what is charged before the block's window counts in it", kernel,
     "  if (m.closed && now < m.window.begin) used = m.used;\n", ""},
    {"boundary >= for >", kernel, "m.closed || want > args.limit",
     "m.closed || want >= args.limit"},
    {"the origin is forgotten", kernel, "(at - b[0]) % args.width", "at % args.width"},
    {"a window that another version of the zone began is forgotten", kernel,
     "stored.begin < window.begin", "stored.begin != window.begin"},
    {"a window for the corrected clock", kernel, "std::max(now, stored.begin)", "now"},
    {"a clock set back within a window frees it", kernel, "window.begin > now + Rule::max_ahead",
     "stored.begin > now + Rule::max_ahead"},
    {"a clock set back mints a window", kernel, "std::min(stored.used, args.limit - args.cost)",
     "0"},
    {"more given back than was used", kernel, "std::min(args.cost, stored.used)", "args.cost"},
    {"tells what was asked for as given back", kernel, "effects.add_output(given)",
     "effects.add_output(args.cost)"},
    {"given back to a window that is over", kernel, "now < args.end &&", ""},
    {"a reward below nothing used", kernel, "std::clamp(m.used + amount, Word{0}, Rule::max_used)",
     "std::min(m.used + amount, Rule::max_used)"},
    {"a penalty without an end", kernel, "std::clamp(m.used + amount, Word{0}, Rule::max_used)",
     "std::max(m.used + amount, Word{0})"},
};

}  // namespace sluice::test::fixed_window
