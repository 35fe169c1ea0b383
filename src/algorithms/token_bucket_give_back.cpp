// The kernel of giving back what a token bucket granted. Its twin is
// backends/redis/lua/token_bucket_give_back.lua: same names, same order.
#include <algorithm>

#include "sluice/algorithms/token_bucket_spend.hpp"
#include "token_bucket_level.hpp"
#include "token_bucket_position.hpp"

namespace sluice {
namespace {

struct Args {
  Word capacity, refill, period, interval;
  Word cost;          // what was granted, in tokens
  Word amount;        // how much of it to give back
  Word spent, stamp;  // the state after the grant
};

Args args_of(const Arguments& a) noexcept {
  return {a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]};
}

Word check(const Arguments& arguments) noexcept {
  const Args args = args_of(arguments);
  if (args.cost < 0 || args.amount < 0) return -static_cast<Word>(Errc::invalid_cost);
  if (args.cost > args.capacity) return -static_cast<Word>(Errc::cost_exceeds_capacity);
  if (args.amount > args.cost || args.interval < 1 ||
      args.interval > TokenBucketSpend::max_interval || args.spent < 0 || args.spent > word_limit ||
      args.stamp < 0 || args.stamp > word_limit ||
      !token_bucket::is_unit(token_bucket::unit_in(args.spent), args.capacity * args.period)) {
    return -static_cast<Word>(Errc::invalid_argument);
  }
  return Verdict::allowed;
}

/// True if draining alone leads from the earlier of the two to the later.
bool same_position(Word level, Word stamp, Word other_level, Word other_stamp,
                   Word refill) noexcept {
  if (stamp < other_stamp) return same_position(other_level, other_stamp, level, stamp, refill);
  const Word elapsed = stamp - other_stamp;
  return elapsed <= floor_div(other_level, refill) && other_level - elapsed * refill == level;
}

Verdict decide(const StateView& words, const RuleRequest& request, Word now,
               Effects& effects) noexcept {
  if (const Word status = check(request.args); status < 0) return {status, 0, 0, 0};
  const Args args = args_of(request.args);
  const Word limit = args.capacity * args.period;
  const Word at = floor_to(now, args.interval);
  const Word unit = token_bucket::unit_in(args.spent);
  const Word level_then = token_bucket::level_in(args.spent);
  const bool same_unit = token_bucket::unit_in(words[0]) == unit;
  const Word level = token_bucket::level_of(words[0], unit, args.period, limit);
  const Word stamp = words[1];

  const Word ahead = stamp > at ? stamp - at : 0;
  const bool lost = ahead > floor_div(word_limit - limit, args.refill);
  const Word left = lost        ? limit
                    : ahead > 0 ? level + ahead * args.refill
                                : drained(level, at - stamp, args.refill);
  const bool on_top = same_unit && same_position(level, stamp, level_then, args.stamp, args.refill);
  const bool stays = ahead > 0 && token_bucket::is_promise(args.spent);  // see is_behind()
  Word given = 0;
  if (on_top && !lost) {
    given = std::min(args.amount * args.period, stays ? level : left);
  } else if (ahead == 0 && same_unit && level <= limit) {
    // Part of a lump may have drained unseen: a whole one counts as drained.
    const Word lump = args.interval > 1 ? args.interval : 0;
    const Word age = std::max(Word{0}, at - args.stamp) + lump;
    const Word own = drained(args.cost * args.period, age, args.refill);
    given = std::min({args.amount * args.period, own, left});
  }
  const Position next = ahead == 0 || given == 0 || stays ? Position{level - given, stamp}
                                                          : place(left - given, limit, args.refill,
                                                                  args.period, args.interval, at);
  if (given > 0) {
    const bool promises = token_bucket::is_promise(words[0]) && next.stamp > at;
    effects.put(0, token_bucket::word_of(next.level, unit, promises));
    effects.put(1, next.stamp);
  }
  effects.tell(floor_div(given, args.period));
  effects.tell(on_top && left > 0 ? 1 : 0);  // nothing is left of a state that may be gone
  const bool moved = ahead > 0 && given > 0 && !stays;
  const Word kept = moved ? next.level : std::max(Word{0}, level_then - given);
  effects.tell(token_bucket::word_of(kept, unit, token_bucket::is_promise(args.spent)));
  effects.tell(moved ? next.stamp : args.stamp);
  return {Verdict::allowed, floor_div(std::max(Word{0}, limit - (left - given)), args.period), 0,
          until_drained(left - given, args.refill, args.interval, at, now)};
}

/// The longest that any shape allows: the arguments do not say which it is.
Word keep(const Arguments& arguments) noexcept {
  const Args args = args_of(arguments);
  return std::min(word_limit, ceil_div(args.capacity * args.period, args.refill) +
                                  TokenBucketSpend::max_longest + args.interval);
}

}  // namespace

constinit const Operation token_bucket_give_back{"token_bucket.give_back",
                                                 3,
                                                 StateKind::token_bucket,
                                                 true,
                                                 8,
                                                 nullptr,
                                                 check,
                                                 keep,
                                                 nullptr,
                                                 decide,
                                                 4};

}  // namespace sluice
