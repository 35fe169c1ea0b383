// The kernels that refund units of a token bucket. Their twins are in
// backends/redis/lua/rules/token_bucket.lua: same names, same order.
#include <algorithm>

#include "sluice/extend/operation.hpp"
#include "sluice/rules/token_bucket_reserve.hpp"
#include "src/rules/token_bucket_position.hpp"

namespace sluice {
namespace {

struct Args {
  Word capacity, refill, period, interval;
  Word cost;          // tokens granted
  Word amount;        // tokens to refund
  Word spent, stamp;  // the bucket before the grant
};

Args args_of(const Arguments& a) noexcept {
  return {a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]};
}

Word check(const Arguments& arguments) noexcept {
  const Args args = args_of(arguments);
  if (args.cost < 0 || args.amount < 0) return -static_cast<Word>(Errc::invalid_cost);
  if (args.cost > args.capacity) return -static_cast<Word>(Errc::cost_exceeds_capacity);
  if (args.amount > args.cost || args.interval < 1 ||
      args.interval > TokenBucketReserve::max_interval || args.spent < 0 ||
      args.spent > word_limit || args.stamp < 0 || args.stamp > word_limit ||
      args.capacity * args.period >= word_limit / 2 ||
      args.interval > (word_limit - args.capacity * args.period) / args.refill) {
    return -static_cast<Word>(Errc::invalid_argument);
  }
  return Verdict::allowed;
}

/// The verdict for the bucket in this state.
Verdict left_so(Word word, Word level, Word stamp, const Args& args, Word at, Word now) noexcept {
  const Word limit = args.capacity * args.period;
  const bool closed = stamp > at && token_bucket::is_closed(word);
  const Word rest = stamp > at ? level : drained(level, at - stamp, args.refill);
  return {Verdict::allowed, closed ? 0 : floor_div(std::max(Word{0}, limit - rest), args.period), 0,
          until_drained(rest, args.refill, args.interval, std::max(at, stamp), now)};
}

/// `in_full`: what has drained since the grant comes back as well.
Verdict decide(const StateView& words, const RuleRequest& request, Word now, Effects& effects,
               bool in_full) noexcept {
  if (const Word status = check(request.args); status < 0) return {status, 0, 0, 0};
  const Args args = args_of(request.args);
  const Word limit = args.capacity * args.period;
  const Word at = floor_to(now, args.interval);
  const Word level = token_bucket::level_in(words[0]);
  const Word stamp = words[1];

  const Word cost = args.cost * args.period;
  const Word amount = args.amount * args.period;
  const Word before = token_bucket::level_in(args.spent);
  const auto after = [&](Word units) {
    if (units == 0) return Position{before, args.stamp};
    return place(before + units, limit, args.refill, args.period, args.interval, args.stamp);
  };
  const Position grant = after(cost);
  const Position rest = after(cost - amount);
  // A stamp that is ahead but not closed means that the clock was set back: time stands still at
  // it.
  const bool waits = stamp > at && token_bucket::is_closed(words[0]);
  const bool is_last = waits && level == grant.level && stamp == grant.stamp;

  Position next{level, stamp};
  bool closes = false;
  Word given = 0;
  if (is_last) {
    given = amount;
    next = rest;
    closes = token_bucket::is_closed(args.spent) || rest.stamp > args.stamp;
    if (amount < cost && rest.stamp < at) {  // the rest is spent now, not when it could have been
      next = {drained(rest.level, at - rest.stamp, args.refill), at};
      closes = false;
    }
  } else if (!waits && stamp >= grant.stamp) {
    const Word left = drained(level, std::max(at, stamp) - stamp, args.refill);
    const Word held = std::min(cost, grant.level);  // the rest had drained by a time rounded up
    const Word most = in_full ? amount : drained(held, stamp - grant.stamp, args.refill);
    given = std::min({amount, most, left});
    next.level -= given;
  }
  const Word word = given > 0 ? token_bucket::word_of(next.level, closes) : words[0];
  if (given > 0) {
    effects.put(0, word);
    effects.put(1, next.stamp);
  }
  effects.add_output(floor_div(given, args.period));
  effects.add_output(is_last ? 1 : 0);
  effects.add_output(rest.stamp);
  return left_so(word, next.level, next.stamp, args, at, now);
}

Verdict decide_undrained(const StateView& words, const RuleRequest& request, Word now,
                         Effects& effects) noexcept {
  return decide(words, request, now, effects, false);
}
Verdict decide_in_full(const StateView& words, const RuleRequest& request, Word now,
                       Effects& effects) noexcept {
  return decide(words, request, now, effects, true);
}

/// The longest TTL of any shape, because the arguments do not contain it.
Word ttl(const Arguments& arguments) noexcept {
  const Args args = args_of(arguments);
  return std::min(word_limit, ceil_div(args.capacity * args.period, args.refill) +
                                  2 * TokenBucketReserve::max_longest + args.interval +
                                  Operation::clock_slack);
}

}  // namespace

constinit const Operation token_bucket_refund{
    .name = "token_bucket.refund",
    .id = 3,
    .kind = StateKind::token_bucket,
    .writes = true,
    .argument_count = 8,
    .check = check,
    .ttl = ttl,
    .decide = decide_undrained,
    .output = 3,
    .arguments = {{.index = 5, .name = "amount"}, {.index = 4, .name = "granted"}},
};
constinit const Operation token_bucket_refund_in_full{
    .name = "token_bucket.refund_in_full",
    .id = 74,
    .kind = StateKind::token_bucket,
    .writes = true,
    .argument_count = 8,
    .check = check,
    .ttl = ttl,
    .decide = decide_in_full,
    .output = 3,
    .arguments = {{.index = 5, .name = "amount"}, {.index = 4, .name = "granted"}},
};

}  // namespace sluice
