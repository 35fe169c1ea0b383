// Properties of the token bucket's kernel over random quotas and histories, judged by exact
// arithmetic of another kind: a list of what was admitted, and 128-bit integers.
// Threading: single-threaded.
#include <algorithm>
#include <vector>

#include "sluice/rules/token_bucket.hpp"
#include "sluice/testing/detail/generators.hpp"
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

/// From the smallest step to far beyond what fills the bucket.
Word draw_gap(Random& random, const Quota& quota) {
  if (random.one_in(3)) return random.between(0, 2);
  const Word full = quota.full_after().count();
  if (random.one_in(2)) return random.between(0, std::max<Word>(1, full / 4));
  return std::min<Word>(log_uniform(random, 51), full + 2);
}

/// Watches that no interval admits more than capacity and what comes back in it, in O(1) a request:
/// keeps the least of (admitted before i) - refill * time over all starts i, in units.
class AdmissionBound {
 public:
  AdmissionBound(const Quota& quota, Word origin) : quota_(quota), origin_(origin) {}

  /// False if some interval that ends with this admission holds too much.
  bool admit(Word cost, Word at) {
    const Wide earned = Wide{at - origin_} * quota_.refill();
    least_ = std::min(least_, admitted_ - earned);
    admitted_ += Wide{cost} * quota_.period();
    return admitted_ - earned - least_ <= Wide{quota_.capacity()} * quota_.period();
  }

 private:
  Quota quota_;
  Word origin_;
  Wide admitted_ = 0;
  Wide least_ = 0;
};

/// The token bucket from its definition: a request fits unless some stretch of time that ends with
/// it, and begins with an admission, would hold more than capacity and what came back meanwhile.
class Oracle {
 public:
  explicit Oracle(const Quota& quota) : quota_(quota) {}

  Verdict ask(Word cost, Word now, bool spend) {
    const Word at = admitted_.empty() ? now : std::max(now, admitted_.back().at);
    const Wide limit = Wide{quota_.capacity()} * quota_.period();
    Wide most_spent = 0;  // in units of a period-th of a token, drained since
    Wide wait = 0;
    Wide until_empty = 0;
    Wide sum = 0;
    for (std::size_t i = admitted_.size(); i-- > 0;) {
      sum += Wide{admitted_[i].cost} * quota_.period();
      const Wide age = at - admitted_[i].at;
      most_spent = std::max(most_spent, sum - age * quota_.refill());
      wait = std::max(wait, up(sum + Wide{cost} * quota_.period() - limit) - age);
      until_empty = std::max(until_empty, up(sum) - age);
    }
    const bool fits = most_spent + Wide{cost} * quota_.period() <= limit;
    if (fits && spend && cost > 0) {
      admitted_.push_back({at, cost});
      most_spent += Wide{cost} * quota_.period();
      until_empty = up(most_spent);
    }
    const Word late = at - now;
    return {fits ? Verdict::allowed : Verdict::refused,
            static_cast<Word>((limit - most_spent) / quota_.period()),
            fits ? 0 : late + static_cast<Word>(wait), late + static_cast<Word>(until_empty)};
  }

 private:
  struct Admission {
    Word at;
    Word cost;
  };
  /// In how many whole microseconds this many units drain.
  [[nodiscard]] Wide up(Wide amount) const {
    return amount <= 0 ? 0 : (amount + quota_.refill() - 1) / quota_.refill();
  }

  Quota quota_;
  std::vector<Admission> admitted_;
};

}  // namespace

TEST_CASE("alone, a request is refused 1 us before its hint and admitted at it",
          "[core][property][L1]") {
  Random random("alone, a request is refused 1 us before its hint and admitted at it");
  CAPTURE(random.repeat());
  const std::size_t wanted = scaled(200'000);
  std::size_t checked = 0;
  for (std::size_t trial = 0; trial < wanted * 4 && checked < wanted; ++trial) {
    const Quota quota = random_quota(random);
    State state;
    Word now = random.between(0, word_limit / 4);
    for (int i = 0; i < 3; ++i, now += draw_gap(random, quota)) {
      (void)acquire(state, quota, draw_cost(random, quota), now);
    }
    const Word cost = draw_cost(random, quota);
    const Verdict refusal = acquire(state, quota, cost, now);
    if (refusal.status != Verdict::refused) continue;
    ++checked;
    const Word due = now + refusal.retry_after;
    State early = state;
    const Verdict before = acquire(early, quota, cost, due - 1);
    if (refusal.retry_after < 1 || before.status != Verdict::refused || before.retry_after != 1 ||
        acquire(state, quota, cost, due).status != Verdict::allowed) {
      FAIL("quota " << quota.refill() << "/" << quota.period() << " burst " << quota.capacity()
                    << ", cost " << cost << ", hint " << refusal.retry_after);
    }
  }
  CHECK(checked == wanted);
}

TEST_CASE("no interval admits more than capacity and what comes back in it",
          "[core][property][S1]") {
  Random random("no interval admits more than capacity and what comes back in it");
  CAPTURE(random.repeat());
  const std::size_t histories = scaled(400);
  std::size_t admissions = 0;
  for (std::size_t history = 0; history < histories; ++history) {
    const Quota quota = random_quota(random);
    State state;
    Word now = random.between(0, 1'000'000);
    AdmissionBound bound(quota, now);
    for (int i = 0; i < 500; ++i) {
      const Word gap = random.one_in(20) ? draw_gap(random, quota)
                                         : random.between(0, quota.full_after().count() / 50 + 1);
      if (now > word_limit - gap) break;
      now += gap;
      const Word cost = draw_cost(random, quota);
      if (acquire(state, quota, cost, now).status != Verdict::allowed) continue;
      ++admissions;
      if (!bound.admit(cost, now)) {
        FAIL("quota " << quota.refill() << "/" << quota.period() << " burst " << quota.capacity());
      }
    }
  }
  CHECK(admissions > histories * 10);
}

TEST_CASE("one admission too many is found by the bound that judges intervals",
          "[core][property][S1]") {
  const Quota quota = Quota::per_second(10).burst(5);
  AdmissionBound bound(quota, 0);
  for (int i = 0; i < 5; ++i) CHECK(bound.admit(1, 0));
  for (Word us = 100'000; us <= 10'000'000; us += 100'000) {
    if (!bound.admit(1, us)) FAIL("what the quota allows is no excess");
  }
  AdmissionBound same_until_then = bound;
  CHECK(bound.admit(1, 10'100'000));
  CHECK_FALSE(same_until_then.admit(1, 10'099'999));
}

TEST_CASE("every answer is what the definition says, by a list of admissions and exact fractions",
          "[core][property][oracle]") {
  Random random("every answer is what the definition says, by a list of admissions");
  CAPTURE(random.repeat());
  const std::size_t histories = scaled(3'000);
  std::size_t refusals = 0;
  for (std::size_t history = 0; history < histories; ++history) {
    const Quota quota = random_quota(random);
    Oracle oracle(quota);
    State state;
    Word now = random.between(0, word_limit / 8);
    for (int i = 0; i < 60 && now < word_limit / 2; ++i) {
      const Word cost = random.one_in(6) ? 0 : draw_cost(random, quota);
      const bool spend = !random.one_in(5);
      const auto args = TokenBucketRule::args(quota, cost);
      const Verdict verdict = spend ? TokenBucketRule::acquire(state, args, now)
                                    : TokenBucketRule::peek(state, args, now);
      const Verdict expected = oracle.ask(cost, now, spend);
      refusals += verdict.status == Verdict::refused ? 1 : 0;
      if (verdict != expected) {
        FAIL("quota " << quota.refill() << "/" << quota.period() << " burst " << quota.capacity()
                      << ", request " << i << " at " << now << " for " << cost << ": "
                      << verdict.status << " " << verdict.remaining << " " << verdict.retry_after
                      << " " << verdict.reset_after << ", by definition " << expected.status << " "
                      << expected.remaining << " " << expected.retry_after << " "
                      << expected.reset_after);
      }
      now += draw_gap(random, quota);
      // A clock that is set back by less than the bound, behind the last stamp.
      if (random.one_in(10)) {
        now = std::max({Word{0}, state.stamp - TokenBucketRule::max_ahead,
                        now - random.between(0, TokenBucketRule::max_ahead)});
      }
    }
  }
  CHECK(refusals > histories);
}

TEST_CASE("questions and refusals never change what is admitted later", "[core][property][C-023]") {
  Random random("questions and refusals never change what is admitted later");
  CAPTURE(random.repeat());
  const std::size_t histories = scaled(3'000);
  std::size_t extra = 0;
  for (std::size_t history = 0; history < histories; ++history) {
    const Quota quota = random_quota(random);
    State polled;
    State patient;
    Word now = random.between(0, word_limit / 8);
    for (int i = 0; i < 50 && now < word_limit / 2; ++i) {
      const Word gap = draw_gap(random, quota);
      for (int poll = 0; poll < 4; ++poll) {
        const Word between = now + random.between(0, gap);
        const auto args = TokenBucketRule::args(quota, draw_cost(random, quota));
        const bool fits = TokenBucketRule::peek(polled, args, between).status == Verdict::allowed;
        if (fits) continue;
        ++extra;
        if (TokenBucketRule::acquire(polled, args, between).status == Verdict::allowed) {
          FAIL("a question refused what a request at the same instant gets");
        }
      }
      now += gap;
      const Word cost = draw_cost(random, quota);
      const Verdict a = acquire(polled, quota, cost, now);
      const Verdict b = acquire(patient, quota, cost, now);
      if (a != b || !same(polled, patient)) FAIL("polling changed the bucket");
    }
  }
  CHECK(extra > histories);
}

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
    StateWords at_first = state;
    const Verdict first = token_bucket_acquire.apply_lagging(at_first, args, from, lag);
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
