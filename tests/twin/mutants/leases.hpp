// Bugs to plant in the leases. Threading: constants.
#pragma once

#include "tests/twin/mutants.hpp"

namespace sluice::test::leases {

inline constexpr std::string_view acquire = "operation leases_acquire";
inline constexpr std::string_view release = "operation leases_release";
inline constexpr std::string_view renew = "operation leases_renew";
inline constexpr std::string_view peek = "operation leases_peek";
inline constexpr std::string_view block = "operation leases_block";
inline constexpr std::string_view reset = "operation leases_reset";
inline constexpr std::string_view base = "piece leases_base";
inline constexpr std::string_view find = "piece leases_find";
inline constexpr std::string_view pop = "piece leases_pop";
inline constexpr std::string_view order = "piece leases_place";
inline constexpr std::string_view prolong = "piece leases_prolong";
inline constexpr std::string_view unlink = "piece leases_unlink";
inline constexpr std::string_view front = "piece leases_front";
inline constexpr std::string_view quick = "fast leases_acquire";
inline constexpr std::string_view quick_release = "fast leases_release";
inline constexpr std::string_view quick_renew = "fast leases_renew";
inline constexpr std::string_view kernel = "src/rules/leases.cpp";

inline constexpr Mutant mutants[] = {
    {"a block of nothing is one", block, "local stands = span == 0 or", "local stands ="},
    {"a later block is shortened", block, " or (found ~= 0 and old >= ends)", ""},
    {"what has an id is not found", find, "          found = i\n", "          found = 0\n"},
    {"a block leaves room", block, "used = used + Rule.block_weight", "used = used + 1"},
    {"a block is a holder's", block, "low = 0, 0, 0, Rule.block_id", "low = 0, 0, 0, 0"},
    {"what has lapsed stays", pop,
     "if taken > Rule.max_reclaimed then taken = Rule.max_reclaimed end", "taken = 1"},
    {"a later block is shortened", kernel, "if (record.node.expiry >= until) return",
     "if (false) return"},
    {"a block beyond what can be counted", kernel,
     "if (!has_room || used > word_limit - block_weight)", "if (!has_room)"},
    {"a block counts from the clock", kernel, "std::min(book.at + a.span, word_limit)",
     "std::min(now + a.span, word_limit)"},
    {"a weight of zero accepted", acquire, "if weight < 1 then", "if weight < 0 then"},
    {"the whole limit refused", acquire, "if weight > limit then", "if weight >= limit then"},
    {"a TTL that is too short accepted", acquire, "ttl < Rule.min_ttl or", "ttl < 999 or"},
    {"the first to expire is never looked at", acquire, "(at >= earliest or stepped)", "false"},
    {"a lease that lapsed answers to its id", find, "held > 0 and ends > at then\n",
     "held > 0 then\n"},
    {"an id is known by its first word", find, "if b == middle and c == low and", "if"},
    {"the order of expiry is not kept", order,
     "while after ~= 0 and after ~= found and other > ends do", "while false do"},
    {"equals go before their equals", order, "after ~= found and other > ends do",
     "after ~= found and other >= ends do"},
    {"the fence stands", acquire, "else fence = fence + 1 end", "end"},
    {"the fence follows the clock back", acquire, "if now > fence then fence = now else",
     "if now ~= fence then fence = now else"},
    {"the clock's time written as stamp", acquire, "used, at, ahead, fence",
     "used, now, ahead, fence"},
    {"the first forgets its neighbour", acquire,
     "if before ~= 0 then put(8 * before + 6, struct.pack('<i8', slot)) else tail = slot end",
     "if before == 0 then tail = slot end"},
    {"a free place is lost", pop, "if under == Rule.unread then free = word(8 * slot + 4) else",
     "if under == Rule.unread then free = 0 else"},
    {"expiry told by the state's time", acquire, "tier, slot, fence, ends - ahead",
     "tier, slot, fence, ends"},
    {"a refusal tells no tier", acquire, "'<i8i8i8i8', tier, 0, 0, 0", "'<i8i8i8i8', 0, 0, 0, 0"},
    {"a clock set far back locks out", base, "stamp > base + Rule.max_ahead", "false"},
    {"bound of the stamp >= for >", base, "stamp > base + Rule.max_ahead",
     "stamp >= base + Rule.max_ahead"},
    {"what lapsed is found in its place", find, "held > 0 and ends > at then found = slot end",
     "held > 0 then found = slot end"},
    {"a stranger is found in a place", find,
     "if a == high and b == middle and c == low and held > 0", "if held > 0"},
    {"given back twice", release, "struct.pack('<i8i8', 0, free)) -- push()",
     "struct.pack('<i8i8', held, free)) -- push()"},
    {"the weight stays in use", release, "used = used - held", "used = used"},
    {"the neighbours still point at it", unlink, "put(8 * prev + 4, struct.pack('<i8', next))", ""},
    {"a renewal shortens", renew, "is_changed = ends > old", "is_changed = ends ~= old"},
    {"moved in its old place", prolong, "if after == found then", "if true then"},
    {"answers as if it had taken", peek, "local remaining = limit - used + lapsed\n  if",
     "local remaining = limit - used + lapsed - weight\n  if"},
    {"the hint is that of the first", peek, "till = expiry",
     "if till == base then till = expiry end"},
    {"fences start anew", reset, "0, stamp, ahead, fence, 0", "0, stamp, ahead, 0, 0"},
    {"another kind of state", front, "kind ~= Operation.kind or ", ""},
    {"words that contradict each other accepted", front,
     "under > slots and under ~= Rule.unread or ", ""},
    {"a clock set far back locks out", front, "if stamp > base + Rule.max_ahead then return end",
     ""},
    {"more than the limit", quick, "used > limit - weight", "used > limit"},
    {"what has lapsed is still held", quick, "elseif at >= earliest then", "elseif false then"},
    {"the fence stands", quick, "else fence = fence + 1 end", "end"},
    {"the last forgets who follows", quick, "place, 64 * after + 33, pack('<l', slot)}", "place}"},
    {"the time to live is never renewed", quick,
     "local renews = ends - ends % 500000 ~= old - old % 500000", "local renews = false"},
    {"a refusal leaves nothing", quick, "local remaining = limit - used\n  if remaining",
     "local remaining = 0\n  if remaining"},
    {"less than nothing remains", quick, "  if remaining < 0 then remaining = 0 end\n", ""},
    {"the hint is that of the last", quick, "till - base, last", "last - base, last"},
    {"the hint counts from the stamp", quick, "till - base, last", "till - at, last"},
    {"reset_after is that of the first", quick, "till - base, last - base",
     "till - base, till - base"},
    {"the last to end is never looked at", quick, "if first ~= tail then", "if false then"},
    {"a refusal tells no tier", quick, "pack('<llll', tier, 0, 0, 0)", "pack('<llll', 0, 0, 0, 0)"},
    {"a weight that cannot be", quick, "held < 1 or held > used or ", ""},
    {"a weight of all that is used", quick, "(held == used) ~= (first == tail) or ", ""},
    {"the first to end frees enough", quick, "used - held > limit - weight then", "false then"},
    {"what ends sooner is put last", quick, "  if ends < latest then return end\n", ""},
    {"all go when the first has lapsed", quick, "  if at < latest then return end\n", ""},
    {"a lease that is held is acquired anew", quick, "seek ~= 0 or ", ""},
    {"given back by a stranger", quick_release, "a ~= high or ", ""},
    {"the neighbours still point at it", quick_release, "    links = true\n", ""},
    {"renewed by a stranger", quick_renew, "a ~= high or ", ""},
    {"what ends sooner is put last", quick_renew, " or ends < latest or", " or"},
    {"the time to live is never renewed", quick_renew,
     "local renews = ends - ends % 500000 ~= latest - latest % 500000", "local renews = false"},
    {"fences do not rise", kernel, "std::max(book.head.fence + 1, now)",
     "std::max(book.head.fence, now)"},
    {"expiry beyond what a word holds", kernel,
     "const Word expiry = std::min(book.at + a.ttl, word_limit);",
     "const Word expiry = book.at + a.ttl;"},
    {"a TTL that is too short accepted", kernel, "ttl >= Rule::min_ttl", "ttl >= 0"},
    {"expiry counted from the clock", kernel,
     "const Word expiry = std::min(book.at + a.ttl, word_limit);",
     "const Word expiry = std::min(now + a.ttl, word_limit);"},
    {"the weight is not counted", kernel, "book.head.used += weight;", ""},
    {"a renewal shortens", kernel,
     "std::max(record.node.expiry, std::min(book.at + a.ttl, word_limit))",
     "std::min(book.at + a.ttl, word_limit)"},
    {"the place is not free", kernel, "    book.push(slot);\n", ""},
    {"the weight stays in use", kernel, "    book.head.used -= record.node.weight;\n", ""},
    {"a question answers for weight 1", kernel,
     "return book.fits(lapse, a.limit, a.weight) ? book.granted",
     "return book.fits(lapse, a.limit, 1) ? book.granted"},
    {"fences start anew", kernel, "    book.at = state[1];", "    book.head.fence = 0;"},
};

}  // namespace sluice::test::leases
