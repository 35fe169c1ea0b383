// Token buckets under limiters of several quotas against exact fractions: what is spent is a number
// of tokens, whoever reads it, and a reader of another unit rounds it up by a 4096th of a token at
// most. Threading: single-threaded.
#include <algorithm>
#include <numeric>
#include <vector>

#include "sluice/limiters/token_bucket.hpp"
#include "sluice/testing/detail/generators.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using sluice::test::Random;
using sluice::test::scaled;
using sluice::testing::detail::log_uniform;
using sluice::testing::detail::Wide;

namespace {

/// Burst times period below it leaves room to tell the unit.
constexpr Word coded = Word{1} << 39;

/// Up to the largest burst whose unit others know.
Word draw_burst(Random& random, const Quota& quota) {
  return random.between(1, std::min<Word>(500, (coded - 1) / quota.period()));
}

/// Quotas whose units others know: their periods divide 30 days or a week.
Quota draw_quota(Random& random) {
  static constexpr Span periods[]{1ms, 1s, 5s, 60s, 3'600s, 86'400s, 7 * 86'400s};
  for (;;) {
    const Span period = periods[random.below(std::size(periods))];
    const Word count = std::max<Word>(1, log_uniform(random, 1 + unsigned(random.below(12))));
    const Quota quota = Quota::per(count, period).burst(1);
    if (quota.period() < coded) return quota.burst(draw_burst(random, quota));
  }
}

/// The same unit as another has: tokens of it are counted exactly.
Quota draw_sibling(Random& random, const Quota& quota) {
  const Word others = random.between(1, 9);
  if (random.one_in(2) || std::gcd(others, quota.period()) != 1) {
    return quota.burst(draw_burst(random, quota));
  }
  return Quota::per(others, Span{quota.period()}).burst(draw_burst(random, quota));
}

/// What is spent, as a fraction of tokens: at least, and at most.
class Spent {
 public:
  explicit Spent(const std::vector<Quota>& quotas) {
    for (const Quota& quota : quotas) {  // a common multiple of all periods
      token_ *=
          quota.period() / std::gcd(static_cast<Word>(token_ % quota.period()), quota.period());
    }
  }

  struct Range {
    Wide least, most;
  };

  /// What one of the quotas reads.
  [[nodiscard]] Range read(const Quota& quota, Word now) const {
    Range range = spent_;
    if (quota.period() != period_ && range.most > 0) range.most += token_ / 4'096 + unit(quota) + 1;
    const Wide drained = (Wide{now} - at_) * rate(quota);
    return {std::max<Wide>(0, range.least - drained), std::max<Wide>(0, range.most - drained)};
  }
  void charge(const Quota& quota, Word cost, Word now) {
    spent_ = read(quota, now);
    spent_.least += cost * token_;
    // More than the limit it was not: it would have been refused.
    spent_.most = std::min(spent_.most + cost * token_, quota.capacity() * token_);
    period_ = quota.period();
    at_ = now;
  }

  [[nodiscard]] Wide token() const { return token_; }
  [[nodiscard]] Wide unit(const Quota& quota) const { return token_ / quota.period(); }
  /// What drains in a microsecond.
  [[nodiscard]] Wide rate(const Quota& quota) const { return unit(quota) * quota.refill(); }

 private:
  Wide token_ = 1;  // how many parts a token has
  Range spent_{0, 0};
  Word period_ = 0;
  Word at_ = 0;
};

/// One key, its limiters, and what they should answer. Beside it a second key that hears nothing
/// but what was granted.
class World {
 public:
  World(Random& random, const std::vector<Quota>& quotas)
      : random_(random), quotas_(quotas), spent_(quotas) {
    for (const Quota& quota : quotas_) limiters_.emplace_back(*store_, "b", quota);
  }

  void live(int commands) {
    for (int i = 0; i < commands; ++i) {
      const std::size_t who = random_.below(quotas_.size());
      const Quota& quota = quotas_[who];
      const Word cost = random_.one_in(3) ? random_.between(0, quota.capacity())
                                          : random_.between(0, std::min<Word>(4, quota.capacity()));
      ask(who, cost);
      const Quota& other = quotas_[random_.below(quotas_.size())];
      const Word full = other.full_after().count();
      if (random_.one_in(2)) clock_.advance(Span{random_.between(0, full / 40 + 2)});
      if (random_.one_in(20)) clock_.advance(Span{random_.between(0, full)});
    }
    judge();
  }

  std::size_t granted = 0;
  std::size_t foreign = 0;
  std::size_t hints = 0;

 private:
  struct Grant {
    Word at;
    Word cost;
  };

  [[nodiscard]] Word now() { return to_word(clock_.now()); }

  void ask(std::size_t who, Word cost) {
    check(limiters_[who].peek("noisy", cost), who, cost, false);
    const Decision d = limiters_[who].try_acquire("noisy", cost);
    check(d, who, cost, true);
    if (d.allowed) {
      grant(who, cost, d);
    } else if (random_.one_in(2)) {
      wait(who, cost, d.retry_after);
    }
  }

  /// Alone, whoever looks meanwhile.
  void wait(std::size_t who, Word cost, Span hint) {
    const Time due = clock_.now() + hint;
    clock_.advance(hint / 2);
    for (const TokenBucket& other : limiters_) {
      (void)other.peek("noisy", 1);
      const Word whole = other.quota().capacity();
      if (!other.peek("noisy", whole)) (void)other.try_acquire("noisy", whole);
    }
    clock_.set(due - 1us);
    const Decision early = limiters_[who].try_acquire("noisy", cost);
    if (early.allowed || early.retry_after != 1us) FAIL("not refused a microsecond before");
    clock_.set(due);
    const Decision d = limiters_[who].try_acquire("noisy", cost);
    if (!d.allowed) FAIL("not admitted at its hint");
    check(d, who, cost, true);
    grant(who, cost, d);
    ++hints;
  }

  void grant(std::size_t who, Word cost, const Decision& d) {
    if (cost > 0) {
      grants_.push_back({now(), cost});
      ++granted;
      if (who != last_) ++foreign;
      last_ = who;
    }
    const Decision quiet = limiters_[who].try_acquire("quiet", cost);
    if (!quiet.allowed || quiet.remaining != d.remaining || quiet.reset_after != d.reset_after) {
      FAIL("questions and refusals changed what is there");
    }
  }

  /// Charges the model with what was granted.
  void check(const Decision& d, std::size_t who, Word cost, bool spends) {
    const Quota& quota = quotas_[who];
    const Spent::Range range = spent_.read(quota, now());
    const Wide limit = quota.capacity() * spent_.token();
    const Wide charge = cost * spent_.token();
    const auto wait = [&](Wide spent) {
      const Wide over = std::max<Wide>(0, spent + charge - limit);
      return static_cast<Word>((over + spent_.rate(quota) - 1) / spent_.rate(quota));
    };
    const Wide taken = spends && d.allowed ? charge : 0;
    const auto left = [&](Wide spent) {
      return static_cast<Word>(std::max<Wide>(0, limit - spent - taken) / spent_.token());
    };
    INFO("quota " << quota.refill() << "/" << quota.period() << " burst " << quota.capacity()
                  << ", cost " << cost << ": " << d.allowed << ", wait " << d.retry_after.count()
                  << ", remaining " << d.remaining << "; due in " << wait(range.least) << " to "
                  << wait(range.most) << ", remaining " << left(range.most) << " to "
                  << left(range.least));
    if (d.allowed ? wait(range.least) > 0 : wait(range.most) == 0) FAIL("a wrong answer");
    const Word hint = d.retry_after.count();
    if (hint < wait(range.least) || hint > wait(range.most)) FAIL("a wrong hint");
    if (d.remaining < left(range.most) || d.remaining > left(range.least)) FAIL("a wrong rest");
    if (taken > 0) spent_.charge(quota, cost, now());
  }

  /// No interval holds more than the largest burst and what comes back at the largest rate.
  void judge() const {
    Wide burst = 0;
    Wide rate = 0;
    for (const Quota& quota : quotas_) {
      burst = std::max(burst, Wide{quota.capacity()} * spent_.token());
      rate = std::max(rate, spent_.rate(quota));
    }
    for (std::size_t from = 0; from < grants_.size(); ++from) {
      Wide sum = 0;
      for (std::size_t to = from; to < grants_.size(); ++to) {
        sum += grants_[to].cost * spent_.token();
        if (sum > burst + (Wide{grants_[to].at} - grants_[from].at) * rate) {
          FAIL("from grant " << from << " to " << to << " an interval holds too much");
        }
      }
    }
  }

  Random& random_;
  std::vector<Quota> quotas_;
  VirtualClock clock_;
  std::unique_ptr<Store> store_ = make_virtual_store(clock_);
  std::vector<TokenBucket> limiters_;
  Spent spent_;
  std::vector<Grant> grants_;
  std::size_t last_ = 0;
};

/// Lives of buckets under what `draw` draws.
template <class Draw>
void check_worlds(Random& random, std::size_t worlds, const Draw& draw) {
  std::size_t granted = 0;
  std::size_t foreign = 0;
  std::size_t hints = 0;
  for (std::size_t i = 0; i < worlds; ++i) {
    World world(random, draw());
    world.live(120);
    granted += world.granted;
    foreign += world.foreign;
    hints += world.hints;
  }
  CHECK(granted > worlds);
  CHECK(foreign > worlds);
  CHECK(hints > worlds);
}

}  // namespace

TEST_CASE("limiters of one unit read each other's tokens exactly, of any burst and rate",
          "[oracle][token_bucket][S1][L1]") {
  Random random("limiters of one unit read each other's tokens exactly, of any burst and rate");
  CAPTURE(random.repeat());
  check_worlds(random, scaled(400), [&] {
    const Quota one = draw_quota(random);
    return std::vector<Quota>{one, draw_sibling(random, one), draw_sibling(random, one)};
  });
}

TEST_CASE("limiters of several units read each other's tokens to within a 4096th",
          "[oracle][token_bucket][S1][L1]") {
  Random random("limiters of several units read each other's tokens to within a 4096th");
  CAPTURE(random.repeat());
  check_worlds(random, scaled(400), [&] {
    return std::vector<Quota>{draw_quota(random), draw_quota(random)};
  });
}

TEST_CASE("a raised burst has the difference at once, and a lowered one keeps what is spent",
          "[oracle][token_bucket]") {
  Random random("a raised burst has the difference at once, and a lowered one keeps what is spent");
  CAPTURE(random.repeat());
  for (std::size_t i = scaled(1'000); i > 0; --i) {
    VirtualClock clock;
    const auto store = make_virtual_store(clock);
    const Quota quota = draw_quota(random);
    const TokenBucket before(*store, "b", quota);
    const Word more = random.between(0, 500);
    const TokenBucket raised(*store, "b", quota.burst(quota.capacity() + more));
    const TokenBucket lowered(*store, "b", quota.burst(random.between(1, quota.capacity())));
    const Word spent = random.between(1, quota.capacity());
    REQUIRE(before.try_acquire("k", spent));
    clock.advance(Span{random.between(0, quota.full_after().count() / 2)});
    const Word rest = before.peek("k", 1).remaining;
    const Word missing = quota.capacity() - rest;
    CHECK(lowered.peek("k", 1).remaining ==
          std::max<Word>(0, lowered.quota().capacity() - missing));
    if (lowered.peek("k", 1).remaining == 0) CHECK_FALSE(lowered.try_acquire("k", 1));
    CHECK(raised.peek("k", 1).remaining == rest + more);
    if (rest + more > 0) CHECK(raised.try_acquire("k", rest + more));
    if (missing > 0) CHECK_FALSE(raised.try_acquire("k", 1));
    CHECK(before.peek("k", 1).remaining == 0);
  }
}
