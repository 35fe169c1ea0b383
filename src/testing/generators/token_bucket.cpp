// Random requests for the token bucket. Threading: pure functions.
#include <algorithm>
#include <array>
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
bool impossible(const Operation& row, Arguments& args, std::size_t trial) {
  const Word capacity = args[0];
  const std::array<Word, 6> costs{-1,         INT64_MIN,      capacity + 1,
                                  word_limit, word_limit + 1, INT64_MAX};
  const bool plain = row.id <= token_bucket_peek.id;
  if (plain) {
    ask(args, 1);
  } else {
    args = {capacity, args[1], args[2], 1};
  }
  if (trial < costs.size()) {
    const Word cost = costs[trial] >= 0 && costs[trial] <= capacity ? capacity + 1 : costs[trial];
    if (row.id == token_bucket_adjust.id) {
      args[6] = cost < 0 ? cost : std::max<Word>(4, cost);
    } else {
      args[plain ? 4 : refunds(row) ? 4 : 7] = cost;
    }
    return true;
  }
  if (plain || trial > costs.size() + 3) return false;
  const std::array<std::size_t, 4> places{3, 5, 6, 6};  // interval; the others as the row has them
  const std::array<Word, 4> values{0, -1, -1, word_limit + 1};
  args[places[trial - costs.size()]] = values[trial - costs.size()];
  return true;
}
Wide most(const Configuration& config, Word us) {
  return config.args[0] + static_cast<Wide>(us) * config.args[1] / config.args[2];
}

constexpr Spender spender{&token_bucket_acquire, &token_bucket_peek, frozen, slow, ask, most};

}  // namespace

constinit const Generator generator{StateKind::token_bucket, any, draw, impossible, &spender};

}  // namespace sluice::testing::detail::token_bucket
