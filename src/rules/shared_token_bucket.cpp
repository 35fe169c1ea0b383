// The kernels of the shared token bucket's quota, acquire and peek. Their twin is
// backends/redis/lua/rules/shared_token_bucket.lua: same names, same order. All words stay within
// 2^52 and sums within 2^53; one product has 104 bits, and the twin divides it bit by bit.
#include "sluice/rules/shared_token_bucket.hpp"

#include <algorithm>

#include "src/rules/shared_token_bucket_view.hpp"

namespace sluice {
namespace {

__extension__ typedef __int128 Wide;

Verdict answer(const StateView& state, const Arguments& args, Word now, Effects& effects,
               bool spends) noexcept {
  if (const Word status = check_shared_cost(args); status < 0) return {status, 0, 0, 0};
  const Word cost = args[1];
  auto [b, at, given_up] = shared_moment(state, args[2], now);
  if (b.version == 0) return {shared_error(Errc::not_configured), 0, 0, 0};
  if (cost > b.capacity && !is_constant(b)) return Verdict::failed(Errc::cost_exceeds_capacity);
  effects.add_output(b.version);
  effects.add_output(b.capacity);
  effects.add_output(b.refill);
  effects.add_output(b.period);
  if (is_constant(b)) {
    if (spends) keep_constant(b, at, cost, effects);
    return constant_verdict(b, cost);
  }
  const Word limit = b.capacity * b.period;
  const Word charge = cost * b.period;
  if (given_up) b.level = std::min(b.level, limit - charge);
  const Word want = b.level + charge;
  if (const Word wait = shared_wait(b, want, at, now); wait > 0) {
    return {Verdict::refused, floor_div(std::max(Word{0}, limit - b.level), b.period), wait,
            at - now + ceil_div(b.level, b.refill)};
  }
  const Word level = spends ? want : b.level;
  if (spends && cost > 0) {
    b.level = want;
    b.spent = std::min(word_limit, b.spent + charge);
    write_bucket(b, at, effects);
  }
  return {Verdict::allowed, floor_div(limit - level, b.period), 0,
          at - now + ceil_div(level, b.refill)};
}

Verdict decide_acquire(const StateView& state, const RuleRequest& request, Word now,
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

Word check_configure(const Arguments& args) noexcept {
  const NewQuota q = quota_of(args);
  const bool is_kept = is_quota(q.capacity, q.refill, q.period) &&
                       q.keep_alive > ceil_div(q.capacity * q.period, q.refill);
  const bool is_constant = detail::is_constant(q.capacity) && q.refill == 1 && q.period == 1;
  const bool fits = (is_kept || is_constant) && is_keep_alive(q.keep_alive) && q.inheritance >= 0 &&
                    q.inheritance <= static_cast<Word>(Inheritance::reset) &&
                    (q.if_absent == 0 || q.if_absent == 1);
  return fits ? Verdict::allowed : shared_error(Errc::invalid_argument);
}

/// a * b / c, at most word_limit, rounded down and up. REQUIRES: 0 to word_limit, c > 0.
Word scaled(Word a, Word b, Word c) noexcept {
  return static_cast<Word>(std::min(Wide{a} * b / c, Wide{word_limit}));
}
Word scaled_up(Word a, Word b, Word c) noexcept {
  return static_cast<Word>(std::min((Wide{a} * b + c - 1) / c, Wide{word_limit}));
}

/// The level under a new quota. Fractions of a token carry over, rounded against the caller. While
/// a reservation or a block is ahead nothing becomes free, because it would be spent before it. A
/// debt never outlasts the quota, so that no hint is beyond its expiry.
Word inherited(const Bucket& b, const NewQuota& q, bool ahead) noexcept {
  const bool is_known = !is_constant(b);  // otherwise what is spent stays spent
  const Word limit = is_known ? b.capacity * b.period : 0;
  const Word next_limit = q.capacity * q.period;
  const Word kept = scaled_up(b.level, q.period, b.period);
  const Word free = limit - b.level;
  const Word as_is = !is_known ? kept
                     : free < 0
                         ? std::min(word_limit, next_limit + scaled_up(-free, q.period, b.period))
                         : std::max(Word{0}, next_limit - scaled(free, q.period, b.period));
  Word level = 0;
  switch (static_cast<Inheritance>(q.inheritance)) {
    case Inheritance::as_is:
      level = as_is;
      break;
    case Inheritance::proportional:
      level = free < 0 || !is_known ? as_is : next_limit - scaled(free, next_limit, limit);
      break;
    case Inheritance::additive:
      level = kept;
      break;
    case Inheritance::reset:
      break;
  }
  Wide least = as_is;  // so much is truly spent, of the larger capacity
  if (b.spent < word_limit) {
    least = Wide{scaled_up(b.spent, q.period, b.period)} -
            Wide{is_known ? std::max(Word{0}, b.capacity - q.capacity) : 0} * q.period;
  }
  if (ahead && is_full(b)) least = std::max(least, Wide{next_limit});
  return static_cast<Word>(std::min(std::max(Wide{level}, least),
                                    std::min(Wide{word_limit}, Wide{q.keep_alive - 1} * q.refill)));
}

/// The quota is in force already, and its bucket is not to be filled.
bool is_same(const Bucket& b, const NewQuota& q) noexcept {
  return b.version != 0 && q.inheritance != static_cast<Word>(Inheritance::reset) &&
         b.capacity == q.capacity &&
         (is_constant(b) || (b.refill == q.refill && b.period == q.period));
}

Verdict decide_configure(const StateView& state, const RuleRequest& request, Word now,
                         Effects& effects) noexcept {
  if (const Word status = check_configure(request.args); status < 0) return {status, 0, 0, 0};
  const NewQuota q = quota_of(request.args);
  auto [b, at, given_up] = shared_moment(state, q.keep_alive, now);
  const bool is_set = q.if_absent == 0;
  const bool is_new = b.version == 0 || (is_set && !is_same(b, q));
  if (is_new) {
    Bucket next{1, q.capacity, q.refill, q.period, 0, 0, at};
    if (b.version != 0) {
      next = b;
      next.version = b.version < word_limit ? b.version + 1 : 1;
      next.capacity = q.capacity;
    }
    if (b.version != 0 && !detail::is_constant(q.capacity)) {
      next.refill = q.refill;
      next.period = q.period;
      next.level = inherited(b, q, at > now);
      next.spent = b.spent == word_limit ? word_limit : scaled_up(b.spent, q.period, b.period);
    }
    b = next;
  }
  // Also a quota that is the same: it is kept from now on.
  if (is_new || (is_set && !given_up)) write_bucket(b, at, effects);
  effects.add_output(b.version);
  effects.add_output(is_new ? 1 : 0);
  if (is_constant(b)) return constant_verdict(b, 0);
  const Word limit = b.capacity * b.period;
  return {Verdict::allowed, floor_div(std::max(Word{0}, limit - b.level), b.period), 0,
          at - now + ceil_div(b.level, b.refill)};
}

/// As ttl_shared().
Word ttl_set(const Arguments& args) noexcept {
  return args[3] + 2 * SharedTokenBucketRule::max_ahead + Operation::clock_slack;
}

}  // namespace

constinit const Operation shared_token_bucket_configure{
    .name = "shared_token_bucket.configure",
    .id = 24,
    .kind = StateKind::shared_token_bucket,
    .writes = true,
    .argument_count = 6,
    .check = check_configure,
    .ttl = ttl_set,
    .decide = decide_configure,
    .output = 2,
    .arguments = {{.index = 3, .name = "keep_alive", .unit = "us"}},
};
constinit const Operation shared_token_bucket_acquire{
    .name = "shared_token_bucket.acquire",
    .id = 25,
    .kind = StateKind::shared_token_bucket,
    .writes = true,
    .argument_count = 3,
    .check = check_shared_cost,
    .ttl = ttl_shared,
    .decide = decide_acquire,
    .output = 4,
    .grants = Operation::Grants::cost,
    .without_store = Operation::WithoutStore::no_state,
    .arguments = {{.index = 1, .name = "cost", .role = Argument::Role::cost}},
};
constinit const Operation shared_token_bucket_peek{
    .name = "shared_token_bucket.peek",
    .id = 26,
    .kind = StateKind::shared_token_bucket,
    .writes = false,
    .argument_count = 3,
    .check = check_shared_cost,
    .ttl = ttl_shared,
    .decide = decide_peek,
    .output = 4,
    .without_store = Operation::WithoutStore::no_state,
    .arguments = {{.index = 1, .name = "cost", .role = Argument::Role::cost}},
};

}  // namespace sluice
