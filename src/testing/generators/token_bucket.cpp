// Random requests for the token bucket. Threading: pure functions.
#include <algorithm>
#include <numeric>

#include "sluice/rules/token_bucket_reserve.hpp"
#include "sluice/virtual_clock.hpp"
#include "src/testing/generators.hpp"

namespace sluice::testing::detail {

Quota random_quota(Rng& rng) {
  if (rng.below(2) == 0) {
    const Word rate = log_uniform(rng, 20);
    return Quota::per_second(rate).burst(log_uniform(rng, 10));
  }
  for (;;) {
    const Word count = log_uniform(rng, 52);
    const Word period = log_uniform(rng, 52);
    const Word common = std::gcd(count, period);
    const Word largest = (Quota::bound - count / common) / (period / common);
    if (largest < 1) continue;
    const auto bits = static_cast<unsigned>(64 - __builtin_clzll(std::uint64_t(largest)));
    const Word burst = rng.below(4) == 0 ? largest : std::min(largest, log_uniform(rng, bits));
    return Quota::per(count, Span{period}).burst(burst);
  }
}

}  // namespace sluice::testing::detail

namespace sluice::testing::detail::token_bucket {

Configuration pack(const Quota& quota) {
  Configuration config;
  sluice::detail::pack(config.args, TokenBucketRule::args(quota, 1));
  return config;
}

namespace {

/// The kind of refill and its start belong to a configuration: all limiters of a key share them.
/// Words 6 and 7 hold them, which in a call hold its own arguments; 0 and 0: the plain form.
Configuration any(Rng& rng) {
  Configuration config = pack(random_quota(rng));
  Arguments& args = config.args;
  const Word room = (word_limit - args[0] * args[2]) / args[1];
  if (rng.below(4) == 0) {
    args[6] = std::min({room, TokenBucketReserve::max_interval, log_uniform(rng, 40)});
  }
  if (rng.below(6) == 0) args[7] = to_word(VirtualClock::default_start) + log_uniform(rng, 38);
  return config;
}
Configuration frozen(Word limit) { return pack(Quota::per(1, std::chrono::days{2}).burst(limit)); }
Configuration slow(Rng& rng) {
  const auto period = static_cast<Word>(1'000'000 + rng.below(1'000'000'000));
  const auto burst = static_cast<Word>(3'600'000'000 / period + 1 + Word(rng.below(20)));
  return pack(Quota::per(1, Span{period}).burst(burst));
}
void ask(Arguments& args, Word units) { args = {args[0], args[1], args[2], args[3], units}; }
Word draw_cost(Rng& rng, Word capacity) {
  const auto bits = static_cast<unsigned>(64 - __builtin_clzll(std::uint64_t(capacity)));
  switch (rng.below(8)) {
    case 0:
      return 0;
    case 1:
      return capacity;
    case 2:
    case 3:
      return std::min(capacity, log_uniform(rng, bits));
    default:
      return uniform(rng, 1, std::min<Word>(capacity, 3));
  }
}
/// The common arguments of the rows of the full form, which replace those of the plain form.
void draw_shape(Rng& rng, Arguments& args) {
  const Word room = (word_limit - args[0] * args[2]) / args[1];
  const Word interval = std::max<Word>(args[6], 1);
  const Word longest =
      std::min({room - interval, TokenBucketReserve::max_longest, log_uniform(rng, 32)});
  args = {args[0], args[1], args[2], interval, args[7], longest};
}
void draw_return(Rng& rng, Arguments& args) {
  const Word cost = draw_cost(rng, args[0]);
  const Word start = to_word(VirtualClock::default_start);
  const Word level = rng.below(2) == 0 ? 0 : uniform(rng, 0, args[0] * args[2]);
  const Word stamp = rng.below(2) == 0 ? 0 : start + log_uniform(rng, 34);
  args = {args[0],
          args[1],
          args[2],
          args[3],
          cost,
          uniform(rng, 0, cost),
          sluice::token_bucket::word_of(level, rng.below(4) == 0),
          stamp};
}
bool refunds(const Operation& row) noexcept {
  return row.id == token_bucket_refund.id || row.id == token_bucket_refund_in_full.id;
}
void draw(Rng& rng, const Operation& row, Arguments& args) {
  const Word cost = draw_cost(rng, args[0]);
  if (row.id <= token_bucket_peek.id) {
    // With another refill than that of the plain form, only the peek of the plain form is called.
    const bool plain = args[6] <= 1 && args[7] == 0;
    return ask(args, plain ? cost : 0);
  }
  draw_shape(rng, args);
  if (refunds(row)) return draw_return(rng, args);
  args[7] = cost;
  if (row.id == token_bucket_reserve_some.id) {
    args[6] = uniform(rng, 0, cost);
  } else if (row.id == token_bucket_adjust.id) {
    args[6] = uniform(rng, 0, 2);
    const Word longest = args[5];
    if (rng.below(4) == 0 && longest >= args[3] - 1) {
      args[6] = 3;
      args[7] = uniform(rng, 0, longest - args[3] + 1);
    }
  } else {
    args[6] = uniform(rng, 0, args[5]);
  }
}
/// What a shape leaves for its interval and the longest time ahead, together.
Word room_of(const Arguments& call) { return (word_limit - call[0] * call[2]) / call[1]; }

std::vector<Bound> bounds(const Operation& row, const Arguments& call) {
  using Rule = TokenBucketReserve;
  const auto cost_within = [](std::size_t index, Word most) {
    return Bound{index, 0, most, Errc::invalid_cost, Errc::cost_exceeds_capacity};
  };
  const Word capacity = call[0];
  if (row.id <= token_bucket_peek.id) return {cost_within(4, capacity)};
  const Word interval = call[3];
  if (refunds(row)) {
    const Word amount = call[5];
    return {{3, 1, std::min(Rule::max_interval, room_of(call))},
            {4, amount, capacity, error_below(amount), Errc::cost_exceeds_capacity},
            {5, 0, call[4], Errc::invalid_cost},
            {6, 0, word_limit},
            {7, 0, word_limit}};
  }
  const Word longest = call[5];
  std::vector<Bound> all{{4, 0, word_limit}};
  if (row.id == token_bucket_adjust.id) {
    const bool blocks = call[6] == static_cast<Word>(Rule::Change::block);
    const Word span = longest - interval + 1;  // of a block
    const Errc error = blocks ? Errc::invalid_argument : Errc::invalid_cost;
    all.push_back({6, 0, call[7] <= span ? 3 : 2});
    all.push_back({7, 0, blocks ? span : word_limit, error, error});
    return all;
  }
  all.push_back({3, 1, std::min(Rule::max_interval, room_of(call) - longest)});
  if (row.id == token_bucket_reserve_some.id) {
    const Word least = call[6];
    all.push_back({5, 0, std::min(Rule::max_longest, room_of(call) - interval)});
    all.push_back({6, 0, call[7], Errc::invalid_cost});
    all.push_back({7, least, capacity, error_below(least), Errc::cost_exceeds_capacity});
  } else {
    const Word wait = call[6];
    all.push_back({5, wait, std::min(Rule::max_longest, room_of(call) - interval)});
    all.push_back({6, 0, longest});
    all.push_back(cost_within(7, capacity));
  }
  return all;
}
Wide most(const Configuration& config, Word us) {
  return config.args[0] + static_cast<Wide>(us) * config.args[1] / config.args[2];
}

constexpr Spender spender{&token_bucket_acquire, &token_bucket_peek, frozen, slow, ask, most};

}  // namespace

constinit const Generator generator{StateKind::token_bucket, any, draw, bounds, &spender};

}  // namespace sluice::testing::detail::token_bucket
