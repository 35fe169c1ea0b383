// The kernel of the shared bucket. Its twins are backends/redis/lua/shared_bucket_*.lua: same
// names, same order. All words stay within 2^52 and sums within 2^53; one product has 104 bits, and
// the twins divide it bit by bit.
#include "sluice/algorithms/shared_bucket.hpp"

#include <algorithm>

#include "token_bucket_position.hpp"

namespace sluice {
namespace {

using Bucket = SharedBucketRule::State;
__extension__ typedef __int128 Wide;

Word error(Errc code) noexcept { return -static_cast<Word>(code); }

bool is_quota(Word capacity, Word refill, Word period) noexcept {
  return capacity >= 1 && refill >= 1 && refill < word_limit && period >= 1 &&
         capacity <= (word_limit - refill) / period;
}

/// The bucket at one instant; no quota if the version is 0.
struct Moment {
  Bucket bucket;
  Word at;
};

Moment moment(const StateView& state, Word keep_alive, Word now) noexcept {
  Bucket b{state[0], state[1], state[2], state[3], state[4], state[5], state[6]};
  if (b.version == 0 || now >= b.stamp + keep_alive) return {{}, now};
  if (!is_quota(b.capacity, b.refill, b.period)) {
    state.call_corrupt();
    return {{}, now};
  }
  if (b.stamp > now + SharedBucketRule::max_ahead) return {b, now};
  const Word at = std::max(now, b.stamp);
  b.level = drained(b.level, at - b.stamp, b.refill);
  if (b.spent < word_limit) b.spent = drained(b.spent, at - b.stamp, b.refill);
  return {b, at};
}

void write(const Bucket& b, Word at, Effects& effects) noexcept {
  effects.put(0, b.version);
  effects.put(1, b.capacity);
  effects.put(2, b.refill);
  effects.put(3, b.period);
  effects.put(4, b.level);
  effects.put(5, b.spent);
  effects.put(6, at);
}

bool is_keep_alive(Word keep_alive) noexcept {
  return keep_alive >= 1 && keep_alive <= SharedBucketRule::max_keep_alive;
}

Word check_cost(const Arguments& args) noexcept {
  if (args[1] < 0) return error(Errc::invalid_cost);
  if (args[1] > word_limit) return error(Errc::cost_exceeds_capacity);
  if (args[0] < 0 || args[0] > word_limit || !is_keep_alive(args[2])) {
    return error(Errc::invalid_argument);
  }
  return Verdict::allowed;
}

Verdict answer(const StateView& state, const Arguments& args, Word now, Effects& effects,
               bool spends) noexcept {
  if (const Word status = check_cost(args); status < 0) return {status, 0, 0, 0};
  const Word cost = args[1];
  auto [b, at] = moment(state, args[2], now);
  if (b.version == 0) return {error(Errc::not_configured), 0, 0, 0};
  if (cost > b.capacity) return {error(Errc::cost_exceeds_capacity), 0, 0, 0};
  const Word limit = b.capacity * b.period;
  const Word charge = cost * b.period;
  if (state[6] > now + SharedBucketRule::max_ahead) b.level = std::min(b.level, limit - charge);
  effects.tell(b.version);
  effects.tell(b.capacity);
  effects.tell(b.refill);
  effects.tell(b.period);
  const Word want = b.level + charge;
  if (want > limit) {
    return {Verdict::refused, floor_div(std::max(Word{0}, limit - b.level), b.period),
            at - now + ceil_div(want - limit, b.refill), at - now + ceil_div(b.level, b.refill)};
  }
  const Word level = spends ? want : b.level;
  if (spends && cost > 0) {
    b.level = want;
    b.spent = std::min(word_limit, b.spent + charge);
    write(b, at, effects);
  }
  return {Verdict::allowed, floor_div(limit - level, b.period), 0,
          at - now + ceil_div(level, b.refill)};
}

Verdict decide_take(const StateView& state, const RuleRequest& request, Word now,
                    Effects& effects) noexcept {
  return answer(state, request.args, now, effects, true);
}
Verdict decide_peek(const StateView& state, const RuleRequest& request, Word now,
                    Effects& effects) noexcept {
  return answer(state, request.args, now, effects, false);
}

struct NewQuota {
  Word capacity, refill, period, keep_alive;
  Word inheritance;
  Word if_absent;
};

NewQuota quota_of(const Arguments& a) noexcept { return {a[0], a[1], a[2], a[3], a[4], a[5]}; }

Word check_set(const Arguments& args) noexcept {
  const NewQuota q = quota_of(args);
  const bool fits = is_quota(q.capacity, q.refill, q.period) && is_keep_alive(q.keep_alive) &&
                    q.keep_alive >= ceil_div(q.capacity * q.period, q.refill) &&
                    q.inheritance >= 0 && q.inheritance <= static_cast<Word>(Inheritance::reset) &&
                    (q.if_absent == 0 || q.if_absent == 1);
  return fits ? Verdict::allowed : error(Errc::invalid_argument);
}

/// Tokens that are free under the new quota; fewer than none are a debt.
Word inherited(const Bucket& b, const NewQuota& q) noexcept {
  const Word free = b.capacity - ceil_div(b.level, b.period);
  Word next = q.capacity;
  switch (static_cast<Inheritance>(q.inheritance)) {
    case Inheritance::as_is:
      next = free;
      break;
    case Inheritance::proportional:
      next = free <= 0 ? free : static_cast<Word>(Wide{free} * q.capacity / b.capacity);
      break;
    case Inheritance::additive:
      next = free + q.capacity - b.capacity;
      break;
    case Inheritance::reset:
      break;
  }
  const Word most =
      b.spent == word_limit ? free : std::max(b.capacity, q.capacity) - ceil_div(b.spent, b.period);
  return std::min({next, q.capacity, most});
}

Word units(Word tokens, Word period) noexcept {
  return tokens > floor_div(word_limit, period) ? word_limit : tokens * period;
}

Verdict decide_set(const StateView& state, const RuleRequest& request, Word now,
                   Effects& effects) noexcept {
  if (const Word status = check_set(request.args); status < 0) return {status, 0, 0, 0};
  const NewQuota q = quota_of(request.args);
  auto [b, at] = moment(state, q.keep_alive, now);
  const bool is_new = b.version == 0 || q.if_absent == 0;
  if (is_new) {
    Bucket next{1, q.capacity, q.refill, q.period, 0, 0, at};
    if (b.version != 0) {
      next.version = b.version < word_limit ? b.version + 1 : 1;
      next.level = units(q.capacity - inherited(b, q), q.period);
      next.spent =
          b.spent == word_limit ? word_limit : units(ceil_div(b.spent, b.period), q.period);
    }
    b = next;
    write(b, at, effects);
  }
  effects.tell(b.version);
  effects.tell(is_new ? 1 : 0);
  const Word limit = b.capacity * b.period;
  return {Verdict::allowed, floor_div(std::max(Word{0}, limit - b.level), b.period), 0,
          at - now + ceil_div(b.level, b.refill)};
}

/// The stamp may be ahead of the clock by max_ahead when it is written.
Word keep_take(const Arguments& args) noexcept { return args[2] + SharedBucketRule::max_ahead; }
Word keep_set(const Arguments& args) noexcept { return args[3] + SharedBucketRule::max_ahead; }

}  // namespace

constinit const Operation shared_bucket_set{"shared_bucket.set",
                                            24,
                                            StateKind::shared_bucket,
                                            true,
                                            6,
                                            nullptr,
                                            check_set,
                                            keep_set,
                                            nullptr,
                                            decide_set,
                                            2};
constinit const Operation shared_bucket_take{"shared_bucket.take",
                                             25,
                                             StateKind::shared_bucket,
                                             true,
                                             3,
                                             nullptr,
                                             check_cost,
                                             keep_take,
                                             nullptr,
                                             decide_take,
                                             4};
constinit const Operation shared_bucket_peek{"shared_bucket.peek",
                                             26,
                                             StateKind::shared_bucket,
                                             false,
                                             3,
                                             nullptr,
                                             check_cost,
                                             keep_take,
                                             nullptr,
                                             decide_peek,
                                             4};

}  // namespace sluice
