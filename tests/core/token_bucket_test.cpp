// The kernels of the token bucket, in its plain and its full form, as tables of moments: at this
// instant, this request, this answer; and what acquire_lagging() promises, which no store shows.
// Threading: single-threaded.
#include "sluice/rules/token_bucket_reserve.hpp"

#include <algorithm>

#include "src/testing/generators.hpp"
#include "tests/core/kernel.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;
using sluice::testing::detail::log_uniform;
using sluice::testing::detail::random_quota;
using sluice::testing::detail::Wide;
using namespace std::chrono_literals;

namespace {

/// Requests of ten tokens a second; what is spent is counted in units, of which one drains a
/// microsecond.
Ask ask(const Operation& row, Word cost, Word burst) {
  Arguments args{};
  detail::pack(args, TokenBucketRule::args(Quota::per_second(10).burst(burst), cost));
  return {&row, args};
}
Ask acquire(Word cost, Word burst = 5) { return ask(token_bucket_acquire, cost, burst); }
Ask peek(Word cost, Word burst = 5) { return ask(token_bucket_peek, cost, burst); }

/// The same tokens in the full form, up to a minute ahead.
constexpr Word token = 100'000;  // units
Ask in_full_form(const Operation& row, Word cost, Span max_wait) {
  return {&row, {5, 1, token, 1, 0, 60'000'000, max_wait.count(), cost}};
}
Ask reserve(Word cost, Span max_wait = 0s) {
  return in_full_form(token_bucket_reserve, cost, max_wait);
}
Ask peek_reserve(Word cost, Span max_wait) {
  return in_full_form(token_bucket_peek_reserve, cost, max_wait);
}
/// How the state tells a level.
Word spent(Word level) { return token_bucket::word_of(level); }

Word draw_cost(Random& random, const Quota& quota) {
  if (random.one_in(4)) return quota.capacity();
  return std::min(quota.capacity(), log_uniform(random, 1 + unsigned(random.below(52))));
}

}  // namespace

TEST_CASE("spent tokens come back one by one, to the microsecond",
          "[core][token_bucket][C-003][C-005][C-029][C-055]") {
  check_moments({{0ms, acquire(3), admitted(2, 300ms)},
                 {0ms, acquire(2), admitted(0, 500ms)},
                 {0ms, acquire(1), turned_away(100ms, 500ms)},
                 {100ms - 1us, acquire(1), turned_away(1us, 400ms + 1us)},
                 {100ms, peek(1), admitted(1, 400ms)},
                 {100ms, acquire(1), admitted(0, 500ms)},
                 {150ms, acquire(5), turned_away(450ms, 450ms)},
                 {290ms, peek(1), admitted(1, 310ms)},  // 1.9 tokens
                 {290ms, acquire(2), turned_away(10ms, 310ms, 1)},
                 {300ms, acquire(2), admitted(0, 500ms)},
                 {10s, acquire(5), admitted(0, 500ms)}});
}

TEST_CASE("a reservation is granted for when its tokens are there", "[core][token_bucket]") {
  check_moments({{0ms, reserve(5), admitted(0, 500ms), {5, spent(0), start}},
                 {0ms, reserve(1), turned_away(100ms, 500ms), {0, 0, 0}},
                 {100ms - 1us, reserve(1), turned_away(1us, 400ms + 1us)},
                 {100ms, reserve(1), admitted(0, 500ms)},
                 {100ms, reserve(1, 100ms - 1us), turned_away(1us, 500ms)},
                 {100ms,
                  reserve(1, 250ms),
                  admitted(0, 600ms, 100ms),
                  {1, spent(5 * token), start + 100'000}},
                 {100ms, reserve(1, 250ms), admitted(0, 700ms, 200ms)},
                 {100ms, peek_reserve(1, 250ms), turned_away(50ms, 700ms), {0, 0, 0}},
                 {100ms, reserve(1), turned_away(300ms, 700ms)},
                 {150ms - 1us, reserve(1, 250ms), turned_away(1us, 650ms + 1us)},
                 {150ms, peek_reserve(1, 250ms), admitted(0, 650ms, 250ms)},
                 {150ms, reserve(1, 250ms), admitted(0, 750ms, 250ms)}});
}

TEST_CASE("a limit that cannot be told twice over is an error of the full form",
          "[core][token_bucket]") {
  constexpr Word too_large = Word{1} << 51;
  check_errors(Errc::invalid_argument,
               {{&token_bucket_reserve, {1, 1, too_large, 1, 0, 60'000'000, 0, 1}},
                {&token_bucket_refund, {1, 1, too_large, 1, 1, 1, 0, start}}});
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
