// Properties of the token bucket's kernel that no store shows: extreme words, ttl() and
// acquire_lagging(). All others are those of its model (tests/models/token_bucket_test.cpp).
// Threading: single-threaded.
#include <algorithm>

#include "sluice/rules/token_bucket.hpp"
#include "src/testing/generators.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using sluice::test::Random;
using sluice::test::scaled;
using sluice::testing::detail::log_uniform;
using sluice::testing::detail::random_quota;
using sluice::testing::detail::Wide;
using State = TokenBucketRule::State;

namespace {

Verdict acquire(State& state, const Quota& quota, Word cost, Word now) {
  return TokenBucketRule::acquire(state, TokenBucketRule::args(quota, cost), now);
}

bool same(const State& a, const State& b) { return a.spent == b.spent && a.stamp == b.stamp; }

Word draw_cost(Random& random, const Quota& quota) {
  if (random.one_in(4)) return quota.capacity();
  return std::min(quota.capacity(), log_uniform(random, 1 + unsigned(random.below(52))));
}

}  // namespace

TEST_CASE("a refusal or an error leaves the state untouched, and extreme values never overflow",
          "[core][property][S5]") {
  // Under the undefined-behaviour sanitizer this is also the proof that nothing overflows.
  Random random("a refusal or an error leaves the state untouched, and extreme values never");
  CAPTURE(random.repeat());
  const std::size_t trials = scaled(300'000);
  const auto extreme = [&]() -> Word {
    return random.one_in(3) ? word_limit - random.between(0, 2) : log_uniform(random, 52);
  };
  std::size_t refusals = 0;
  for (std::size_t trial = 0; trial < trials; ++trial) {
    const Quota quota = random_quota(random);
    State state{extreme(), extreme()};
    const State before = state;
    const Word now =
        random.one_in(3) ? std::min(word_limit, before.stamp + random.between(0, 9)) : extreme();
    const Word cost =
        random.one_in(10) ? static_cast<Word>(random.next()) : draw_cost(random, quota);
    const Verdict verdict = acquire(state, quota, cost, now);
    if (verdict.status != Verdict::allowed && !same(state, before)) FAIL("a refusal wrote");
    refusals += verdict.status == Verdict::refused ? 1 : 0;
    const bool in_range = state.spent >= 0 && state.spent <= word_limit && state.stamp >= 0 &&
                          state.stamp <= word_limit && verdict.remaining >= 0 &&
                          verdict.remaining <= quota.capacity() && verdict.retry_after >= 0 &&
                          verdict.retry_after <= word_limit + TokenBucketRule::max_ahead &&
                          verdict.reset_after >= 0;
    if (!in_range) FAIL("out of range: " << verdict.remaining << " " << verdict.retry_after);
    if ((verdict.status == Verdict::refused) != (verdict.retry_after > 0)) FAIL("a wrong hint");
  }
  CHECK(refusals > trials / 100);
}

TEST_CASE("after keep() a state means the same as none", "[core][property]") {
  Random random("after keep() a state means the same as none");
  CAPTURE(random.repeat());
  const std::size_t trials = scaled(100'000);
  for (std::size_t trial = 0; trial < trials; ++trial) {
    const Quota quota = random_quota(random);
    Arguments args{};
    detail::pack(args, TokenBucketRule::args(quota, draw_cost(random, quota)));
    StateWords used{};
    StateWords fresh{};
    const Word now = random.between(TokenBucketRule::max_ahead, word_limit / 4);
    // Written by a clock up to max_ahead behind the stamp that it met.
    (void)token_bucket_acquire.apply(used, args, now);
    (void)token_bucket_acquire.apply(used, args,
                                     now - random.between(0, TokenBucketRule::max_ahead));
    const Word written = std::max<Word>(0, used[1] - TokenBucketRule::max_ahead);
    const Word later = std::max(now, written + token_bucket_acquire.ttl(args));
    const Verdict a = token_bucket_acquire.apply(used, args, later);
    const Verdict b = token_bucket_acquire.apply(fresh, args, later);
    if (a != b || used != fresh) FAIL("a kept state still counts after keep()");
  }
}

TEST_CASE("what a lagging clock settles, any instant of the lag decides alike",
          "[core][property]") {
  Random random("what a lagging clock settles, any instant of the lag decides alike");
  CAPTURE(random.repeat());
  const std::size_t trials = scaled(200'000);
  std::size_t settled = 0;
  for (std::size_t trial = 0; trial < trials; ++trial) {
    const Quota quota = random_quota(random);
    const Word full = quota.full_after().count();
    const Word from = random.between(0, word_limit / 4);
    const Word lag = random.between(0, random.one_in(2) ? 100'000 : full);
    const Wide limit = Wide{quota.capacity()} * quota.period();
    const Word ahead = random.one_in(8) ? 2 * TokenBucketRule::max_ahead : 100'000;
    const StateWords state{random.between(0, static_cast<Word>(limit)),
                           std::max<Word>(0, from - random.between(-ahead, full))};
    Arguments args{};
    detail::pack(args, TokenBucketRule::args(quota, draw_cost(random, quota)));
    TokenBucketRule::State first_state{state[0], state[1]};
    const Verdict first = TokenBucketRule::acquire_lagging(
        first_state, {args[0], args[1], args[2], args[3], args[4]}, from, lag);
    StateWords at_first{first_state.spent, first_state.stamp};
    if (first.status == Verdict::unsettled) {
      if (at_first != state) FAIL("unsettled, and the state changed");
      continue;
    }
    ++settled;
    StateWords plain = state;
    if (first != token_bucket_acquire.apply(plain, args, from)) FAIL("not what apply() answers");
    if (at_first != plain) FAIL("not the state that apply() writes");
    StateWords at_other = state;
    const Verdict other = token_bucket_acquire.apply(at_other, args, from + random.between(0, lag));
    if (first.status != other.status) FAIL("allowed and refused within a settled lag");
    const Word later = from + lag + random.between(0, full);
    const Verdict a = token_bucket_acquire.apply(at_first, args, later);
    const Verdict b = token_bucket_acquire.apply(at_other, args, later);
    if (a != b) FAIL("states of a settled lag differ in what they admit later");
  }
  CHECK(settled > trials / 20);
}
