// The kernel of the token bucket. Its twins are backends/redis/lua/token_bucket_take.lua and
// token_bucket_peek.lua: same names, same order. All values stay within 2^52 for a Quota's
// arguments, and sums within 2^53.
#include "sluice/algorithms/token_bucket.hpp"

#include <algorithm>

namespace sluice {
namespace {

using State = TokenBucketRule::State;
using Args = TokenBucketRule::Args;

/// floor(a / b) for a >= 0, b > 0, without a division where the answer is plain.
Word floor_div(Word a, Word b) noexcept { return a < b ? 0 : b == 1 ? a : a / b; }

Word ceil_div(Word a, Word b) noexcept { return b == 1 ? a : (a + b - 1) / b; }

/// The bucket as it is at one instant, before a request is looked at.
struct Moment {
  Word limit;
  Word charge;
  Word at;     // the instant that the rule sees: never before the stamp
  Word level;  // spent at `at`
};

Moment moment(const State& state, const Args& args, Word now) noexcept {
  const Word limit = args.capacity * args.period;
  const Word charge = args.cost * args.period;
  const Word level = std::min(state.level, limit);
  if (state.stamp > now + TokenBucketRule::max_ahead) {
    return {limit, charge, now, std::min(level, limit - charge)};
  }
  const Word at = std::max(now, state.stamp);
  const Word elapsed = at - state.stamp;
  if (elapsed >= args.full_after) return {limit, charge, at, 0};
  return {limit, charge, at, std::max(Word{0}, level - elapsed * args.refill)};
}

Verdict refused(const Moment& m, const Args& args, Word want, Word now) noexcept {
  return {Verdict::refused, floor_div(m.limit - m.level, args.period),
          m.at - now + ceil_div(want - m.limit, args.refill),
          m.at - now + ceil_div(m.level, args.refill)};
}

Verdict allowed(const Moment& m, const Args& args, Word level, Word now) noexcept {
  return {Verdict::allowed, floor_div(m.limit - level, args.period), 0,
          m.at - now + ceil_div(level, args.refill)};
}

}  // namespace

Verdict TokenBucketRule::take(State& state, const Args& args, Word now) noexcept {
  if (const Word status = check(args); status < 0) return {status, 0, 0, 0};
  const Moment m = moment(state, args, now);
  const Word want = m.level + m.charge;
  if (want > m.limit) return refused(m, args, want, now);
  if (args.cost > 0) state = {want, m.at};
  return allowed(m, args, want, now);
}

Verdict TokenBucketRule::peek(const State& state, const Args& args, Word now) noexcept {
  if (const Word status = check(args); status < 0) return {status, 0, 0, 0};
  const Moment m = moment(state, args, now);
  const Word want = m.level + m.charge;
  if (want > m.limit) return refused(m, args, want, now);
  return allowed(m, args, m.level, now);
}

Word TokenBucketRule::check(const Args& args) noexcept {
  if (args.cost < 0) return -static_cast<Word>(Errc::invalid_cost);
  if (args.cost > args.capacity) return -static_cast<Word>(Errc::cost_exceeds_capacity);
  return Verdict::allowed;
}

bool TokenBucketRule::settled(const State& state, const Args& args, Word from,
                              Word until) noexcept {
  if (check(args) < 0 || state.stamp > from + max_ahead) return false;
  const Word limit = args.capacity * args.period;
  const Word charge = args.cost * args.period;
  const Word elapsed = std::max(until - state.stamp, Word{0});
  if (elapsed >= args.full_after) return false;
  const Word level = std::min(state.level, limit);
  const Word last = level - elapsed * args.refill;
  if (last <= 0) return false;
  if (last + charge > limit) return true;  // refused at `until`, so before as well
  const Word first = level - std::max(from - state.stamp, Word{0}) * args.refill;
  return first + charge <= limit;  // allowed at `from`, so later as well
}

namespace {

bool settled_take(const StateWords& words, const Arguments& args, Word from, Word until) noexcept {
  return TokenBucketRule::settled(detail::unpack<State>(words), detail::unpack<Args>(args), from,
                                  until);
}

Verdict apply_take(StateWords& words, const Arguments& args, Word now) noexcept {
  auto state = detail::unpack<State>(words);
  const Verdict verdict = TokenBucketRule::take(state, detail::unpack<Args>(args), now);
  detail::pack(words, state);
  return verdict;
}

Verdict apply_peek(StateWords& words, const Arguments& args, Word now) noexcept {
  return TokenBucketRule::peek(detail::unpack<State>(words), detail::unpack<Args>(args), now);
}

Word check_cost(const Arguments& args) noexcept {
  return TokenBucketRule::check(detail::unpack<Args>(args));
}

/// The stamp may be ahead of the clock by max_ahead when it is written.
Word keep(const Arguments& args) noexcept {
  return detail::unpack<Args>(args).full_after + TokenBucketRule::max_ahead;
}

}  // namespace

constinit const Operation token_bucket_take{
    "token_bucket.take", 0, StateKind::token_bucket, true, 5, 2, apply_take, check_cost, keep,
    settled_take};
constinit const Operation token_bucket_peek{
    "token_bucket.peek", 1, StateKind::token_bucket, false, 5, 2, apply_peek, check_cost, keep};

}  // namespace sluice
