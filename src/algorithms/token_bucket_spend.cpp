// The kernels of the token bucket's full form, but for give_back. Their twins are
// backends/redis/lua/token_bucket_{spend,spend_some,look,set}.lua: same names, same order. A shape
// that check() accepts keeps limit + (longest + interval) * refill within 2^52, so all products of
// one refill and sums are within 2^53.
#include "sluice/algorithms/token_bucket_spend.hpp"

#include <algorithm>

#include "token_bucket_position.hpp"

namespace sluice {
namespace {

using Shape = TokenBucketSpend::Shape;
using Ask = TokenBucketSpend::Ask;
using Change = TokenBucketSpend::Change;

Shape shape_of(const Arguments& a) noexcept { return {a[0], a[1], a[2], a[3], a[4], a[5]}; }

/// What is spent of a bucket of which nothing is known.
Word first_level(const Shape& shape, Word limit, Word charge, Word at) noexcept {
  if (shape.full_at <= at) return 0;
  const Word missing = shape.full_at - at;
  // Farther ahead than a bucket takes to fill: the clock was set back.
  if (missing > ceil_div(limit, shape.refill) + shape.longest) return limit - charge;
  return missing * shape.refill;
}

/// What is spent at `at`, the last instant at which tokens came.
Word level_at(const State& state, const Shape& shape, Word limit, Word charge, Word at,
              Word now) noexcept {
  if (state.level == 0 && state.stamp == 0) return first_level(shape, limit, charge, at);
  const Word level = std::min(state.level, limit);
  if (state.stamp > now + shape.longest) return std::min(level, limit - charge);
  if (state.stamp > at) return level + (state.stamp - at) * shape.refill;
  const Word elapsed = at - state.stamp;
  const Word left = drained(level, elapsed, shape.refill);
  // Long enough that the store may have dropped the state: the same as none.
  if (left == 0 && elapsed >= ceil_div(limit, shape.refill) + shape.interval) {
    return first_level(shape, limit, charge, at);
  }
  return left;
}

Word check_shape(const Shape& shape) noexcept {
  const bool fits =
      shape.interval >= 1 && shape.interval <= TokenBucketSpend::max_interval &&
      shape.full_at >= 0 && shape.full_at <= word_limit && shape.longest >= 0 &&
      shape.longest <= TokenBucketSpend::max_longest &&
      shape.longest + shape.interval <= (word_limit - shape.capacity * shape.period) / shape.refill;
  return fits ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

Word check_ask(const Shape& shape, const Ask& ask) noexcept {
  if (ask.cost < 0) return -static_cast<Word>(Errc::invalid_cost);
  if (ask.cost > shape.capacity) return -static_cast<Word>(Errc::cost_exceeds_capacity);
  if (ask.min_cost < 0 || ask.min_cost > ask.cost || ask.max_wait < 0 ||
      ask.max_wait > shape.longest) {
    return -static_cast<Word>(Errc::invalid_argument);
  }
  return check_shape(shape);
}

Verdict answer(const StateView& words, const Shape& shape, const Ask& ask, Word now,
               Effects& effects, bool spends) noexcept {
  if (const Word status = check_ask(shape, ask); status < 0) return {status, 0, 0, 0};
  const Word limit = shape.capacity * shape.period;
  const Word at = floor_to(now, shape.interval);
  const Word level = level_at({words[0], words[1]}, shape, limit, ask.cost * shape.period, at, now);
  const Word remaining = floor_div(std::max(Word{0}, limit - level), shape.period);
  const Word reset_after = until_drained(level, shape.refill, shape.interval, at, now);

  const Word reach = std::max(Word{0}, floor_to(now + ask.max_wait, shape.interval) - at);
  const Word most = limit + reach * shape.refill - level;
  const Word granted = most < 0 ? -1 : std::min(ask.cost, floor_div(most, shape.period));
  if (granted < ask.min_cost) {
    const Word over = level + ask.min_cost * shape.period - limit;
    const Word covered = ceil_to(at + ceil_div(over, shape.refill), shape.interval);
    for (int i = 0; i < 3; ++i) effects.tell(0);
    return {Verdict::refused, remaining, covered - now - ask.max_wait, reset_after};
  }
  const Word want = level + granted * shape.period;
  const Word wait =
      want <= limit ? 0 : ceil_to(at + ceil_div(want - limit, shape.refill), shape.interval) - now;
  const State next = place(want, limit, shape.refill, shape.period, shape.interval, at);
  effects.tell(granted);
  effects.tell(next.level);
  effects.tell(next.stamp);
  if (!spends) return {Verdict::allowed, remaining, wait, reset_after};
  if (granted > 0) {
    effects.put(0, next.level);
    effects.put(1, next.stamp);
  }
  return {Verdict::allowed, floor_div(std::max(Word{0}, limit - want), shape.period), wait,
          until_drained(want, shape.refill, shape.interval, at, now)};
}

Ask whole(const Arguments& a) noexcept { return {a[6], a[7], a[7]}; }
Ask some(const Arguments& a) noexcept { return {0, a[6], a[7]}; }

Verdict decide_spend(const StateView& state, const RuleRequest& request, Word now,
                     Effects& effects) noexcept {
  return answer(state, shape_of(request.args), whole(request.args), now, effects, true);
}
Verdict decide_spend_some(const StateView& state, const RuleRequest& request, Word now,
                          Effects& effects) noexcept {
  return answer(state, shape_of(request.args), some(request.args), now, effects, true);
}
Verdict decide_look(const StateView& state, const RuleRequest& request, Word now,
                    Effects& effects) noexcept {
  return answer(state, shape_of(request.args), whole(request.args), now, effects, false);
}

Word check_whole(const Arguments& args) noexcept { return check_ask(shape_of(args), whole(args)); }
Word check_some(const Arguments& args) noexcept { return check_ask(shape_of(args), some(args)); }

Word check_set(const Arguments& args) noexcept {
  const Shape shape = shape_of(args);
  if (args[6] < 0 || args[6] > static_cast<Word>(Change::block) || args[7] < 0 ||
      args[7] > word_limit) {
    return -static_cast<Word>(Errc::invalid_argument);
  }
  if (args[6] == static_cast<Word>(Change::block) && args[7] > shape.longest - shape.interval + 1) {
    return -static_cast<Word>(Errc::invalid_argument);
  }
  return check_shape(shape);
}

/// The level after a change of so many tokens or microseconds.
Word changed(const Shape& shape, Change change, Word amount, Word level, Word limit, Word at,
             Word now) noexcept {
  if (change == Change::reset) return 0;
  if (change == Change::block) {
    const Word until = ceil_to(now + amount, shape.interval);
    return std::max(level, limit - shape.period + (until - at) * shape.refill);
  }
  const Word top = limit + (floor_to(now + shape.longest, shape.interval) - at) * shape.refill;
  const Word units = amount > floor_div(top, shape.period) ? top : amount * shape.period;
  return change == Change::reward ? std::max(Word{0}, level - units)
                                  : std::max(level, std::min(top, level + units));
}

Verdict decide_set(const StateView& words, const RuleRequest& request, Word now,
                   Effects& effects) noexcept {
  if (const Word status = check_set(request.args); status < 0) return {status, 0, 0, 0};
  const Shape shape = shape_of(request.args);
  const Word limit = shape.capacity * shape.period;
  const Word at = floor_to(now, shape.interval);
  const Word before = level_at({words[0], words[1]}, shape, limit, 0, at, now);
  const Word level =
      changed(shape, static_cast<Change>(request.args[6]), request.args[7], before, limit, at, now);
  const State next = place(level, limit, shape.refill, shape.period, shape.interval, at);
  effects.put(0, next.level);
  effects.put(1, next.stamp);
  return {Verdict::allowed, floor_div(std::max(Word{0}, limit - level), shape.period), 0,
          until_drained(level, shape.refill, shape.interval, at, now)};
}

/// The stamp may be ahead by `longest` when it is written, and draining shows only once an
/// interval.
Word keep(const Arguments& args) noexcept {
  const Shape shape = shape_of(args);
  return std::min(word_limit, ceil_div(shape.capacity * shape.period, shape.refill) +
                                  shape.longest + shape.interval);
}

}  // namespace

constinit const Operation token_bucket_spend{
    "token_bucket.spend", 2, StateKind::token_bucket, true, 8, nullptr, check_whole, keep, nullptr,
    decide_spend,         3};
constinit const Operation token_bucket_set{
    "token_bucket.set", 4, StateKind::token_bucket, true, 8, nullptr, check_set, keep, nullptr,
    decide_set};
constinit const Operation token_bucket_look{
    "token_bucket.look", 5, StateKind::token_bucket, false, 8, nullptr, check_whole, keep, nullptr,
    decide_look,         3};
constinit const Operation token_bucket_spend_some{"token_bucket.spend_some",
                                                  6,
                                                  StateKind::token_bucket,
                                                  true,
                                                  8,
                                                  nullptr,
                                                  check_some,
                                                  keep,
                                                  nullptr,
                                                  decide_spend_some,
                                                  3};

}  // namespace sluice
