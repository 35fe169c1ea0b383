// Random requests for the shared token bucket. Threading: pure functions.
#include <algorithm>

#include "sluice/rules/shared_token_bucket_reserve.hpp"
#include "sluice/virtual_clock.hpp"
#include "src/testing/generators.hpp"

namespace sluice::testing::detail::shared_token_bucket {
namespace {

/// The only common argument of all calls is keep_alive: mostly long enough for every quota.
Configuration any(Rng& rng) {
  Configuration config;
  config.args[0] = log_uniform(rng, 52);
  config.args[3] = SharedTokenBucketRule::max_keep_alive;
  return config;
}
/// The output of a possible grant: often of the first quotas, and of a bucket that was never
/// charged.
void draw_return(Rng& rng, Arguments& args) {
  const Word start = to_word(VirtualClock::default_start);
  args[3] = uniform(rng, 0, args[1]);
  args[4] = rng.below(2) == 0 ? 0 : log_uniform(rng, 40);
  args[5] = rng.below(2) == 0 ? 0 : start + log_uniform(rng, 34);
  args[6] = uniform(rng, 1, 3);
  args[7] = rng.below(2) == 0 ? 0 : start + log_uniform(rng, 34);
}
void draw(Rng& rng, const Operation& row, Arguments& args) {
  const Word keep_alive = SharedTokenBucketRule::max_keep_alive;
  if (row.id != shared_token_bucket_configure.id) {
    const Word amount = rng.below(3) == 0 ? 0 : log_uniform(rng, rng.below(2) == 0 ? 6 : 30);
    args = {log_uniform(rng, 20), amount, keep_alive};
    if (row.id == shared_token_bucket_reserve.id) {
      args[3] = rng.below(4) == 0 ? SharedTokenBucketReserve::longest
                                  : uniform(rng, 0, SharedTokenBucketReserve::longest);
    } else if (row.id == shared_token_bucket_refund.id) {
      draw_return(rng, args);
    } else if (row.id == shared_token_bucket_adjust.id) {
      args[1] = uniform(rng, 0, 3);
      args[3] = args[1] == 3 ? std::min(amount, SharedTokenBucketReserve::longest) : amount;
    }
    return;
  }
  for (;;) {
    const bool is_constant = rng.below(6) == 0;
    const Quota quota = !is_constant        ? random_quota(rng)
                        : rng.below(2) == 0 ? Quota::never()
                                            : Quota::unlimited();
    if (!is_constant && quota.full_after().count() > keep_alive) continue;
    args = {quota.capacity(), quota.refill(),     quota.period(),
            keep_alive,       uniform(rng, 0, 3), uniform(rng, 0, 1)};
    return;
  }
}
std::vector<Bound> bounds_of_quota(const Arguments& call) {
  const auto [capacity, refill, period, keep_alive, inheritance, if_absent, none6, none7] = call;
  std::vector<Bound> all{{4, 0, 3}, {5, 0, 1}};
  const Word longest = SharedTokenBucketRule::max_keep_alive;
  if (capacity == 0 || capacity == unlimited) {
    all.push_back({1, 1, 1});
    all.push_back({2, 1, 1});
    all.push_back({3, 1, longest});
  } else {
    const Word filled = capacity * period;
    all.push_back({3, filled / refill + (filled % refill != 0 ? 1 : 0) + 1, longest});
    all.push_back({1, (filled + keep_alive - 2) / (keep_alive - 1), word_limit - filled});
    const bool may_be_never = refill == 1 && period == 1;
    const Wide most = std::min(Wide{word_limit} - refill, Wide{keep_alive - 1} * refill);
    all.push_back({0, may_be_never ? 0 : 1, static_cast<Word>(most / period)});
    all.push_back({2, 1, static_cast<Word>(most / capacity)});
  }
  return all;
}
std::vector<Bound> bounds(const Operation& row, const Arguments& call) {
  using Reserve = SharedTokenBucketReserve;
  if (row.id == shared_token_bucket_configure.id) return bounds_of_quota(call);
  std::vector<Bound> all{{0, 0, word_limit}, {2, 1, SharedTokenBucketRule::max_keep_alive}};
  if (row.id == shared_token_bucket_adjust.id) {
    const bool blocks = call[1] == static_cast<Word>(Reserve::Change::block);
    const Errc error = blocks ? Errc::invalid_argument : Errc::invalid_cost;
    all.push_back({3, 0, blocks ? Reserve::longest : word_limit, error, error});
    all.push_back({1, 0, call[3] <= Reserve::longest ? 3 : 2});
    return all;
  }
  const Word amount = row.id == shared_token_bucket_refund.id ? call[3] : 0;
  all.push_back({1, amount, word_limit, error_below(amount), Errc::cost_exceeds_capacity});
  if (row.id == shared_token_bucket_reserve.id) all.push_back({3, 0, Reserve::longest});
  if (row.id == shared_token_bucket_refund.id) {
    all.push_back({3, 0, call[1], Errc::invalid_cost});
    for (std::size_t i = 4; i < 8; ++i) all.push_back({i, 0, word_limit});
  }
  return all;
}

}  // namespace

constinit const Generator generator{StateKind::shared_token_bucket, any, draw, bounds, nullptr};

}  // namespace sluice::testing::detail::shared_token_bucket
