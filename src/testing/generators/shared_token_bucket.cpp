// Random requests for the shared token bucket. Threading: pure functions.
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
bool impossible(const Operation& row, Arguments& args, std::size_t trial) {
  const Word keep_alive = SharedTokenBucketRule::max_keep_alive;
  if (row.id == shared_token_bucket_configure.id) {
    args = {10, 1, 100'000, keep_alive, 0, 0};
    const std::array<std::size_t, 10> places{0, 0, 0, 1, 2, 3, 3, 4, 4, 5};
    const std::array<Word, 10> values{0, word_limit, -1, 0, -1, 0, 1'000'000, -1, 4, 2};
    if (trial >= places.size()) return false;
    args[places[trial]] = values[trial];
    return true;
  }
  args = {1, 1, keep_alive};
  const std::array<std::size_t, 6> places{1, 1, 1, 2, 2, 0};
  const std::array<Word, 6> values{-1, INT64_MIN, word_limit + 1, 0, keep_alive + 1, -1};
  if (trial < places.size()) {
    args[places[trial]] = values[trial];
    return true;
  }
  const std::size_t more = trial - places.size();
  if (more >= 2 || row.argument_count < 4) return false;
  if (row.id == shared_token_bucket_adjust.id) args[1] = 3;
  args[3] = more == 0 ? -1 : SharedTokenBucketReserve::longest + 1;
  return true;
}

}  // namespace

constinit const Generator generator{StateKind::shared_token_bucket, any, draw, impossible, nullptr};

}  // namespace sluice::testing::detail::shared_token_bucket
