// The kernels of the token bucket's full form, but for refund. Their twin is
// backends/redis/lua/rules/token_bucket.lua: same names, same order. A shape that check() accepts
// keeps limit + (longest + interval) * refill within 2^52, so all products of one refill and sums
// are within 2^53.
#include "sluice/rules/token_bucket_reserve.hpp"

#include <algorithm>

#include "sluice/extend/operation.hpp"
#include "src/rules/token_bucket_ahead.hpp"
#include "src/rules/token_bucket_position.hpp"

namespace sluice {
namespace {

using Shape = TokenBucketReserve::Shape;
using Ask = TokenBucketReserve::Ask;
using Change = TokenBucketReserve::Change;

Shape shape_of(const Arguments& a) noexcept { return {a[0], a[1], a[2], a[3], a[4], a[5]}; }

/// The units spent of a bucket without state.
Word first_level(const Shape& shape, Word limit, Word charge, Word at) noexcept {
  if (shape.full_at <= at) return 0;
  const Word missing = shape.full_at - at;
  // Further ahead than a bucket takes to fill: the clock was set back.
  if (missing > ceil_div(limit, shape.refill) + shape.longest) return limit - charge;
  return missing * shape.refill;
}

/// The bucket before a request. A request is scheduled after all reservations, of any limiter.
struct BucketView {
  Word at;              // the last refill, or the stamp, if that is later
  Word level;           // what is spent then
  bool closed = false;  // nothing is granted before `at`
};

BucketView moment(const StateView& words, const Shape& shape, Word limit, Word charge,
                  Word now) noexcept {
  const Word at = floor_to(now, shape.interval);
  const Word spent = words[0];
  const Word stamp = words[1];
  if (spent == 0 && stamp == 0) return {at, first_level(shape, limit, charge, at)};
  const Word level = token_bucket::level_in(spent);
  if (stamp > now + token_bucket::most_ahead(spent, shape.longest)) {
    return {at, std::min(level, limit - charge)};
  }
  if (stamp > at) {
    return {std::min(word_limit, ceil_to(stamp, shape.interval)), level,
            token_bucket::is_closed(spent)};
  }
  const Word elapsed = at - stamp;
  const Word left = drained(level, elapsed, shape.refill);
  // After its TTL, when the store may have dropped it, the state is equivalent to an absent one:
  // the interval in ttl() is how far `at` may be behind `now`.
  if (left == 0 && elapsed > ceil_div(limit, shape.refill)) {
    return {at, first_level(shape, limit, charge, at)};
  }
  return {at, left};
}

Word tokens_left(const BucketView& m, Word level, const Shape& shape, Word limit) noexcept {
  return m.closed ? 0 : floor_div(std::max(Word{0}, limit - level), shape.period);
}

Word check_shape(const Shape& shape) noexcept {
  const bool fits =
      shape.interval >= 1 && shape.interval <= TokenBucketReserve::max_interval &&
      shape.full_at >= 0 && shape.full_at <= word_limit && shape.longest >= 0 &&
      shape.longest <= TokenBucketReserve::max_longest &&
      shape.capacity * shape.period < word_limit / 2 &&
      shape.longest + shape.interval <= (word_limit - shape.capacity * shape.period) / shape.refill;
  return fits ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

Word check_ask(const Shape& shape, const Ask& ask) noexcept {
  if (ask.cost < 0) return -static_cast<Word>(Errc::invalid_cost);
  if (ask.cost > shape.capacity) return -static_cast<Word>(Errc::cost_exceeds_capacity);
  if (ask.min_cost < 0) return -static_cast<Word>(Errc::invalid_cost);
  if (ask.min_cost > ask.cost || ask.max_wait < 0 || ask.max_wait > shape.longest) {
    return -static_cast<Word>(Errc::invalid_argument);
  }
  return check_shape(shape);
}

Verdict answer(const StateView& words, const Shape& shape, const Ask& ask, Word now,
               Effects& effects, bool spends) noexcept {
  if (const Word status = check_ask(shape, ask); status < 0) return {status, 0, 0, 0};
  const Word limit = shape.capacity * shape.period;
  const BucketView m = moment(words, shape, limit, ask.cost * shape.period, now);
  const auto remaining = [&] { return tokens_left(m, m.level, shape, limit); };
  const auto reset_after = [&] {
    return until_drained(m.level, shape.refill, shape.interval, m.at, now);
  };

  const Word latest = floor_to(now + ask.max_wait, shape.interval);
  const Word reach = std::max(Word{0}, latest - m.at);
  const Word most = m.closed && latest < m.at ? -1 : limit + reach * shape.refill - m.level;
  const Word granted = most < 0 ? -1 : std::min(ask.cost, floor_div(most, shape.period));
  if (granted < ask.min_cost) {
    const Word over = std::max(Word{0}, m.level + ask.min_cost * shape.period - limit);
    const Word covered = ceil_to(m.at + ceil_div(over, shape.refill), shape.interval);
    for (int i = 0; i < 3; ++i) effects.add_output(0);
    return {Verdict::refused, remaining(), covered - now - ask.max_wait, reset_after()};
  }
  const Word want = m.level + granted * shape.period;
  Word wait = m.closed ? m.at - now : 0;
  if (want > limit) {
    wait = ceil_to(m.at + ceil_div(want - limit, shape.refill), shape.interval) - now;
  }
  const Position next = place(want, limit, shape.refill, shape.period, shape.interval, m.at);
  const bool closes = m.closed || next.stamp > m.at;
  effects.add_output(granted);
  effects.add_output(token_bucket::word_of(m.level, m.closed));
  effects.add_output(m.at);
  if (!spends) return {Verdict::allowed, remaining(), wait, reset_after()};
  if (granted > 0) {
    effects.put(0, token_bucket::word_of(next.level, closes));
    effects.put(1, next.stamp);
  }
  return {Verdict::allowed, tokens_left(m, want, shape, limit), wait,
          until_drained(want, shape.refill, shape.interval, m.at, now)};
}

Ask whole(const Arguments& a) noexcept { return {a[6], a[7], a[7]}; }
Ask some(const Arguments& a) noexcept { return {0, a[6], a[7]}; }

Verdict decide_reserve(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept {
  return answer(state, shape_of(request.args), whole(request.args), now, effects, true);
}
Verdict decide_reserve_some(const StateView& state, const RuleRequest& request, Word now,
                            Effects& effects) noexcept {
  return answer(state, shape_of(request.args), some(request.args), now, effects, true);
}
Verdict decide_peek_reserve(const StateView& state, const RuleRequest& request, Word now,
                            Effects& effects) noexcept {
  return answer(state, shape_of(request.args), whole(request.args), now, effects, false);
}

Word check_whole(const Arguments& args) noexcept { return check_ask(shape_of(args), whole(args)); }
Word check_some(const Arguments& args) noexcept { return check_ask(shape_of(args), some(args)); }

Word check_adjust(const Arguments& args) noexcept {
  const Shape shape = shape_of(args);
  constexpr auto block = static_cast<Word>(Change::block);
  if (args[6] < 0 || args[6] > block) return -static_cast<Word>(Errc::invalid_argument);
  if (args[7] < 0 || args[7] > word_limit) {
    return -static_cast<Word>(args[6] == block ? Errc::invalid_argument : Errc::invalid_cost);
  }
  if (args[6] == block && args[7] > shape.longest - shape.interval + 1) {
    return -static_cast<Word>(Errc::invalid_argument);
  }
  return check_shape(shape);
}

/// A debt is a level beyond the limit, so that a limiter of a larger burst has the difference.
BucketView charged(const Shape& shape, Word amount, const BucketView& m, Word limit,
                   Word now) noexcept {
  const Word top = limit + (floor_to(now + shape.longest, shape.interval) - m.at) * shape.refill;
  const Word room = std::max(Word{0}, top);
  const Word units = amount > floor_div(room, shape.period) ? room : amount * shape.period;
  const Word level = std::max(m.level, std::min(top, m.level + units));
  if (level == m.level || level <= token_bucket::most_level) return {m.at, level, m.closed};
  const Position next = place(level, limit, shape.refill, shape.period, shape.interval, m.at);
  return {next.stamp, next.level, true};
}

/// What is ahead comes nearer, by whole intervals, for as long as the tokens last.
BucketView rewarded(const Shape& shape, Word amount, const BucketView& m, Word at) noexcept {
  const Word units =
      amount > floor_div(word_limit, shape.period) ? word_limit : amount * shape.period;
  const Word ahead = m.closed ? m.at - at : 0;
  const Word nearer = std::min(ahead, floor_to(floor_div(units, shape.refill), shape.interval));
  const Word level = std::max(Word{0}, m.level - (units - nearer * shape.refill));
  return {m.at - nearer, level, nearer < ahead};
}

/// Closed until the block ends, and one token then. A longer one, or a debt beyond it, remains. The
/// highest level matters for a word that no rule has written.
BucketView blocked(const Shape& shape, Word until, const BucketView& m, Word limit) noexcept {
  const Word at = std::max(until, m.at);
  const Word least = limit - shape.period - (at - until) * shape.refill;
  const Word rest = drained(m.level, at - m.at, shape.refill);
  return {at, std::min(std::max(rest, least), token_bucket::most_level), true};
}

BucketView changed(const Shape& shape, Change change, Word amount, const BucketView& m, Word limit,
                   Word now) noexcept {
  const Word at = floor_to(now, shape.interval);
  switch (change) {
    case Change::reset:
      break;
    case Change::reward:
      return rewarded(shape, amount, m, at);
    case Change::charge:
      return charged(shape, amount, m, limit, now);
    case Change::block: {
      if (amount == 0) return m;
      const Word until = std::min(word_limit, ceil_to(now + amount, shape.interval));
      return blocked(shape, until, m, limit);
    }
  }
  return {at, 0};
}

Verdict decide_adjust(const StateView& words, const RuleRequest& request, Word now,
                      Effects& effects) noexcept {
  if (const Word status = check_adjust(request.args); status < 0) return {status, 0, 0, 0};
  const Shape shape = shape_of(request.args);
  const auto change = static_cast<Change>(request.args[6]);
  const Word limit = shape.capacity * shape.period;
  const BucketView m = moment(words, shape, limit, 0, now);
  const BucketView next = changed(shape, change, request.args[7], m, limit, now);
  // A debt under a larger burst must not expire with this one.
  const bool owed = m.level > limit && words[0] != 0;
  const bool same = next.level == m.level && next.at == m.at && next.closed == m.closed;
  if (!owed || !same) {
    effects.put(0, token_bucket::word_of(next.level, next.closed));
    effects.put(1, next.at);
  }
  const Word more =
      change == Change::charge ? next.level - m.level + (next.at - m.at) * shape.refill : 0;
  effects.add_output(std::min(request.args[7], floor_div(std::max(Word{0}, more), shape.period)));
  return {Verdict::allowed, tokens_left(next, next.level, shape, limit), 0,
          until_drained(next.level, shape.refill, shape.interval, next.at, now)};
}

/// The stamp may be ahead by twice `longest` when it is written, and draining shows only once an
/// interval.
Word ttl(const Arguments& args) noexcept {
  const Shape shape = shape_of(args);
  return std::min(word_limit, ceil_div(shape.capacity * shape.period, shape.refill) +
                                  2 * shape.longest + shape.interval + Operation::clock_slack);
}

}  // namespace

constinit const Operation token_bucket_reserve{
    .name = "token_bucket.reserve",
    .id = 2,
    .kind = StateKind::token_bucket,
    .writes = true,
    .argument_count = 8,
    .check = check_whole,
    .ttl = ttl,
    .decide = decide_reserve,
    .output = 3,
    .grants = Operation::Grants::cost,
    .without_store = Operation::WithoutStore::fresh_state,
    .share = Operation::Share::bucket,
    .charge_output = {.first = 1, .count = 2},
    .arguments = {{.index = 7, .name = "cost", .role = Argument::Role::cost},
                  {.index = 6, .name = "wait", .unit = "us", .role = Argument::Role::wait}},
};
constinit const Operation token_bucket_adjust{
    .name = "token_bucket.adjust",
    .id = 4,
    .kind = StateKind::token_bucket,
    .writes = true,
    .argument_count = 8,
    .check = check_adjust,
    .ttl = ttl,
    .decide = decide_adjust,
    .output = 1,
    .arguments = {{.index = 7, .name = "amount"}},
};
constinit const Operation token_bucket_peek_reserve{
    .name = "token_bucket.peek_reserve",
    .id = 5,
    .kind = StateKind::token_bucket,
    .writes = false,
    .argument_count = 8,
    .check = check_whole,
    .ttl = ttl,
    .decide = decide_peek_reserve,
    .output = 3,
    .without_store = Operation::WithoutStore::fresh_state,
    .share = Operation::Share::bucket,
    .charge_output = {.first = 1, .count = 2},
    .arguments = {{.index = 7, .name = "cost", .role = Argument::Role::cost},
                  {.index = 6, .name = "wait", .unit = "us", .role = Argument::Role::wait}},
};
constinit const Operation token_bucket_reserve_some{
    .name = "token_bucket.reserve_some",
    .id = 6,
    .kind = StateKind::token_bucket,
    .writes = true,
    .argument_count = 8,
    .check = check_some,
    .ttl = ttl,
    .decide = decide_reserve_some,
    .output = 3,
    .grants = Operation::Grants::up_to_cost,
    .without_store = Operation::WithoutStore::fresh_state,
    .share = Operation::Share::bucket,
    .charge_output = {.first = 1, .count = 2},
    .arguments = {{.index = 6, .name = "least"},
                  {.index = 7, .name = "most", .role = Argument::Role::cost}},
};

}  // namespace sluice
