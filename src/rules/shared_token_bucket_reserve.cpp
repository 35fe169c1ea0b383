// The kernels of the shared token bucket's reservations, refunds and adjustments. Their twin is
// backends/redis/lua/rules/shared_token_bucket.lua: same names, same order. All words stay within
// 2^52 and sums within 2^53; times ahead are compared as times, so that a span is never multiplied
// by an unknown rate.
#include "sluice/rules/shared_token_bucket_reserve.hpp"

#include <algorithm>

#include "src/rules/shared_token_bucket_view.hpp"

namespace sluice {
namespace {

using Change = SharedTokenBucketReserve::Change;

constexpr Word longest = SharedTokenBucketReserve::longest;

/// The bucket with another level and time, and the units truly spent then.
struct Next {
  Word level, stamp, spent;
};

Word remaining(const Bucket& b, Word level) noexcept {
  return floor_div(std::max(Word{0}, b.capacity * b.period - level), b.period);
}

/// The verdict for the bucket after a change.
Verdict left_so(const Bucket& b, const Next& next, Word now, Word wait = 0) noexcept {
  return {Verdict::allowed, remaining(b, next.level), wait,
          next.stamp - now + ceil_div(next.level, b.refill)};
}

void write(Bucket b, const Next& next, Effects& effects) noexcept {
  b.level = next.level;
  b.spent = next.spent;
  write_bucket(b, next.stamp, effects);
}

/// The units truly spent, `elapsed` later.
Word truly(const Bucket& b, Word elapsed) noexcept {
  return b.spent == word_limit ? word_limit : drained(b.spent, elapsed, b.refill);
}

Word check_reserve(const Arguments& args) noexcept {
  if (const Word status = check_shared_cost(args); status < 0) return status;
  const bool fits = args[3] >= 0 && args[3] <= longest;
  return fits ? Verdict::allowed : shared_error(Errc::invalid_argument);
}

/// What it grants was charged to nothing: no version, so that nothing of it is refunded.
Verdict constant_reserve(const Bucket& b, Word at, Word cost, Effects& effects) noexcept {
  keep_constant(b, at, cost, effects);
  const Verdict verdict = constant_verdict(b, cost);
  effects.add_output(verdict.status == Verdict::allowed ? cost : 0);
  for (int i = 0; i < 4; ++i) effects.add_output(0);
  effects.add_output(b.capacity);
  return verdict;
}

Verdict decide_reserve(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept {
  const Arguments& args = request.args;
  if (const Word status = check_reserve(args); status < 0) return {status, 0, 0, 0};
  const Word cost = args[1];
  const Word max_wait = args[3];
  auto [b, at, given_up] = shared_moment(state, args[2], now);
  if (b.version == 0) return Verdict::failed(Errc::not_configured);
  if (is_constant(b)) return constant_reserve(b, at, cost, effects);
  if (cost > b.capacity) return Verdict::failed(Errc::cost_exceeds_capacity);
  const Word limit = b.capacity * b.period;
  const Word charge = cost * b.period;
  if (given_up) b.level = std::min(b.level, limit - charge);

  const Word want = b.level + charge;
  const Word wait = shared_wait(b, want, at, now);
  if (wait > max_wait) {
    for (int i = 0; i < 5; ++i) effects.add_output(0);
    effects.add_output(b.capacity);
    return {Verdict::refused, remaining(b, b.level), wait - max_wait,
            at - now + ceil_div(b.level, b.refill)};
  }
  const Position placed = place(want, limit, b.refill, b.period, 1, at);
  const Next next{placed.level, placed.stamp,
                  std::min(word_limit, truly(b, placed.stamp - at) + charge)};
  if (cost > 0) write(b, next, effects);
  effects.add_output(cost);
  effects.add_output(b.level);
  effects.add_output(at);
  effects.add_output(b.version);
  effects.add_output(b.spent);
  effects.add_output(b.capacity);
  return left_so(b, next, now, wait);
}

/// Subtracts `units` as of now, if something is ahead: the stamp moves nearer, never farther, and a
/// level that stays beyond the limit keeps it. Nothing if the units cannot be counted. After the
/// clock was set back, time stands still: they are subtracted at the stamp.
Next rewarded(const Bucket& b, Word at, Word units, Word now) noexcept {
  const Word base = is_closed(b, at, now) ? now : at;
  const Word ahead = at - base;
  const Next same{b.level, at, b.spent};
  if (ahead > floor_div(word_limit - b.level, b.refill)) return same;
  const Word left = b.level + ahead * b.refill;
  const Word given = std::min(units, left);
  if (given == 0) return same;
  const Word limit = b.capacity * b.period;
  Position placed{b.level - given, at};
  if (placed.level < limit) placed = place(left - given, limit, b.refill, b.period, 1, base);
  Word spent = word_limit;
  if (b.spent < word_limit) {
    spent = std::max(Word{0}, b.spent - given) + (at - placed.stamp) * b.refill;
    spent = std::min(word_limit, spent);
  }
  return {placed.level, placed.stamp, spent};
}

struct Return {
  Word cost, keep_alive;
  Word amount;                        // how much of the cost to refund
  Word level, stamp, version, spent;  // the bucket before the grant
};

Return return_of(const Arguments& a) noexcept { return {a[1], a[2], a[3], a[4], a[5], a[6], a[7]}; }

Word check_return(const Arguments& args) noexcept {
  const Return r = return_of(args);
  if (r.amount < 0) return shared_error(Errc::invalid_cost);
  if (const Word status = check_shared_cost(args); status < 0) return status;
  const auto is_word = [](Word word) { return word >= 0 && word <= word_limit; };
  const bool fits = r.amount <= r.cost && is_word(r.level) && is_word(r.stamp) &&
                    is_word(r.version) && is_word(r.spent);
  return fits ? Verdict::allowed : shared_error(Errc::invalid_argument);
}

/// The bucket as before the grant, plus the rest of the grant, as of `now` at least: its units are
/// spent then at the earliest.
Next returned(const Bucket& b, const Return& r, const Position& rest, Word units,
              Word now) noexcept {
  Bucket then = b;
  then.spent = r.spent;
  const Word at = std::max(now, rest.stamp);
  const Word spent = std::min(word_limit, truly(then, at - r.stamp) + units);
  return {drained(rest.level, at - rest.stamp, b.refill), at, spent};
}

/// The bucket after a refund of grants that others did not wait behind: the units truly spent fall
/// as the level does, by the same argument.
Next lowered(const StateView& state, Word given) noexcept {
  const Word spent = state[5] == word_limit ? word_limit : std::max(Word{0}, state[5] - given);
  return {state[4] - given, state[6], spent};
}

Verdict decide_refund(const StateView& state, const RuleRequest& request, Word now,
                      Effects& effects) noexcept {
  if (const Word status = check_return(request.args); status < 0) return {status, 0, 0, 0};
  const Return r = return_of(request.args);
  const auto [found, at, given_up] = shared_moment(state, r.keep_alive, now);
  const auto& b = found;  // a lambda cannot capture a structured binding
  if (b.version == 0) return Verdict::failed(Errc::not_configured);
  if (is_constant(b)) {
    for (int i = 0; i < 3; ++i) effects.add_output(0);
    return constant_verdict(b, 0);
  }
  const bool is_known = r.version == b.version && !given_up && r.cost <= b.capacity;
  const Word cost = is_known ? r.cost * b.period : 0;
  const Word amount = is_known ? r.amount * b.period : 0;
  const auto after = [&](Word units) {
    if (units == 0) return Position{r.level, r.stamp};
    return place(r.level + units, b.capacity * b.period, b.refill, b.period, 1, r.stamp);
  };
  const Position grant = after(cost);
  const Position rest = after(cost - amount);
  const Word stamp = state[6];
  const bool waits = is_closed(b, at, now);
  const bool is_last = is_known && waits && state[4] == grant.level && stamp == grant.stamp;

  Next next{b.level, at, b.spent};
  Word given = 0;
  if (is_last) {
    given = amount;
    if (given > 0) {
      next = returned(b, r, rest, cost - amount, now);
      write(b, next, effects);
    }
  } else if (is_known && !waits && stamp >= grant.stamp) {
    given = std::min({amount, drained(cost, stamp - grant.stamp, b.refill), b.level});
    next.level -= given;
    if (given > 0) write(b, lowered(state, given), effects);
  }
  effects.add_output(floor_div(given, b.period));
  effects.add_output(is_last ? 1 : 0);
  effects.add_output(rest.stamp);
  return left_so(b, next, now);
}

Word check_adjust(const Arguments& args) noexcept {
  constexpr auto block = static_cast<Word>(Change::block);
  const bool fits = args[0] >= 0 && args[0] <= word_limit && args[1] >= 0 && args[1] <= block &&
                    is_keep_alive(args[2]);
  if (!fits) return shared_error(Errc::invalid_argument);
  if (args[3] >= 0 && args[3] <= (args[1] == block ? longest : word_limit)) return Verdict::allowed;
  return shared_error(args[1] == block ? Errc::invalid_argument : Errc::invalid_cost);
}

Next charged(const Bucket& b, Word at, Word units, Word now) noexcept {
  const Word limit = b.capacity * b.period;
  const Word end = now + longest;
  const Position before = place(b.level, limit, b.refill, b.period, 1, at);
  Position after = place(std::min(word_limit, b.level + units), limit, b.refill, b.period, 1, at);
  if (after.stamp > end) after = before.stamp >= end ? Position{b.level, at} : Position{limit, end};
  // At the limit, units are granted as they drain, so that the units truly spent stay constant
  // until the stamp. Of those drained before, as many are spent again as are available at once.
  const Word elapsed = after.stamp - at;
  const Word over = floor_div(std::max(Word{0}, b.level - limit), b.refill);
  const Word fits = std::min(units, std::max(Word{0}, limit - b.level));
  const Word stays = std::min(word_limit, truly(b, std::min(over, elapsed)) + fits);
  return {after.level, after.stamp, std::max(stays, std::min(limit, truly(b, elapsed) + units))};
}

/// No whole token is available until `now + span`, and then one, or what one microsecond refills. A
/// later reservation is moved a unit later: no longer the last, it cannot end the block when it is
/// refunded. At the end of `longest` that unit is a debt. `span` is not zero.
Next blocked(const Bucket& b, Word at, Word span, Word now) noexcept {
  const Word limit = b.capacity * b.period;
  const Word last = std::min(word_limit, now + span - 1);
  const Word stamp = std::max(at, last);
  const Word least = limit - b.period + (last >= at ? std::min(b.period, b.refill) : 1);
  Position next{drained(b.level, stamp - at, b.refill), stamp};
  if (next.level < least) {
    next.level = least;
  } else if (next.level == limit && stamp < now + longest) {
    next = place(limit + 1, limit, b.refill, b.period, 1, stamp);
  } else {
    next.level = std::min(word_limit, next.level + 1);
  }
  return {next.level, next.stamp, truly(b, next.stamp - at)};
}

Verdict decide_adjust(const StateView& state, const RuleRequest& request, Word now,
                      Effects& effects) noexcept {
  const Arguments& args = request.args;
  if (const Word status = check_adjust(args); status < 0) return {status, 0, 0, 0};
  auto [b, at, given_up] = shared_moment(state, args[2], now);
  if (b.version == 0) return Verdict::failed(Errc::not_configured);
  if (is_constant(b)) {
    for (const Word word : {b.version, b.capacity, Word{0}}) effects.add_output(word);
    return constant_verdict(b, 0);
  }
  const Word amount = args[3];
  const Word units = amount > floor_div(word_limit, b.period) ? word_limit : amount * b.period;
  if (given_up) b.level = std::min(b.level, b.capacity * b.period);

  Next next{b.level, at, b.spent};
  switch (static_cast<Change>(args[1])) {
    case Change::reset:
      next = {0, now, 0};
      break;
    case Change::reward:
      next = rewarded(b, at, units, now);
      break;
    case Change::charge:
      next = charged(b, at, units, now);
      break;
    case Change::block:
      if (amount > 0) next = blocked(b, at, amount, now);
      break;
  }
  write(b, next, effects);
  effects.add_output(b.version);
  effects.add_output(b.capacity);
  const bool charges = args[1] == static_cast<Word>(Change::charge);
  const Word more = charges ? next.level - b.level + (next.stamp - at) * b.refill : 0;
  effects.add_output(std::min(amount, floor_div(std::max(Word{0}, more), b.period)));
  return left_so(b, next, now);
}

}  // namespace

constinit const Operation shared_token_bucket_reserve{
    .name = "shared_token_bucket.reserve",
    .id = 27,
    .kind = StateKind::shared_token_bucket,
    .writes = true,
    .argument_count = 4,
    .check = check_reserve,
    .ttl = ttl_shared,
    .decide = decide_reserve,
    .output = 6,
    .grants = Operation::Grants::cost,
    .without_store = Operation::WithoutStore::no_state,
    .arguments = {{.index = 1, .name = "cost", .role = Argument::Role::cost},
                  {.index = 3, .name = "wait", .unit = "us", .role = Argument::Role::wait}},
};
constinit const Operation shared_token_bucket_refund{
    .name = "shared_token_bucket.refund",
    .id = 28,
    .kind = StateKind::shared_token_bucket,
    .writes = true,
    .argument_count = 8,
    .check = check_return,
    .ttl = ttl_shared,
    .decide = decide_refund,
    .output = 3,
    .arguments = {{.index = 3, .name = "amount"}, {.index = 1, .name = "granted"}},
};
constinit const Operation shared_token_bucket_adjust{
    .name = "shared_token_bucket.adjust",
    .id = 29,
    .kind = StateKind::shared_token_bucket,
    .writes = true,
    .argument_count = 4,
    .check = check_adjust,
    .ttl = ttl_shared,
    .decide = decide_adjust,
    .output = 3,
    .arguments = {{.index = 3, .name = "amount"}},
};

}  // namespace sluice
