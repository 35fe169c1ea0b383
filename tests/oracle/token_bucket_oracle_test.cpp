// The token bucket limiter against its definition: one absolute position in 128-bit units, and a
// list of what was granted and when, over which every interval is judged.
// Threading: single-threaded.
#include <algorithm>
#include <vector>

#include "sluice/limiters/token_bucket.hpp"
#include "sluice/testing/detail/generators.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using sluice::test::Random;
using sluice::test::scaled;
using sluice::testing::detail::log_uniform;
using sluice::testing::detail::random_quota;
using sluice::testing::detail::Wide;

namespace {

/// Where a bucket stood when it was asked at `now`.
struct Place {
  Wide position;
  Word stamp;
  Word now;
};
struct Grant {
  Word at;
  Wide units;     // that are still charged for it
  Wide position;  // behind it
  Word from;      // when it began to drain, if it lay at the bottom
  Place before;
  Reservation reservation;
};

/// A bucket as one number: all that was ever charged, and what has drained by a time.
class Oracle {
 public:
  Oracle(const Quota& quota, Word interval, Word longest)
      : quota_(quota), interval_(interval), longest_(longest) {}

  [[nodiscard]] Wide limit() const { return Wide{quota_.capacity()} * quota_.period(); }
  [[nodiscard]] Word tick(Word now) const { return now / interval_ * interval_; }
  [[nodiscard]] Wide level(Word now) const {
    return std::max<Wide>(0, position_ - Wide{tick(now)} * quota_.refill());
  }
  [[nodiscard]] Word remaining(Word now) const {
    return static_cast<Word>(std::max<Wide>(0, limit() - level(now)) / quota_.period());
  }
  /// How long until this many units are covered: the first tick of tokens at which they are.
  [[nodiscard]] Word wait(Wide units, Word now) const {
    const Wide over = level(now) + units - limit();
    if (over <= 0) return 0;
    const Wide due = tick(now) + (over + quota_.refill() - 1) / quota_.refill();
    return static_cast<Word>((due + interval_ - 1) / interval_ * interval_ - now);
  }
  /// Returns the position behind the charge.
  Wide charge(Wide units, Word now) {
    const Word stamp = now + wait(units, now);
    position_ = Wide{tick(now)} * quota_.refill() + level(now) + units;
    settle_at(stamp, now);
    return position_;
  }
  void charge_anyway(Wide units, Word now) {
    const Wide top = limit() + (Wide{tick(now + longest_)} - tick(now)) * quota_.refill();
    charge(std::max<Wide>(0, std::min(units, top - level(now))), now);
  }
  void block(Word span, Word now) {
    const Wide until = (Wide{now} + span + interval_ - 1) / interval_ * interval_;
    const Wide least = limit() - quota_.period() + (until - tick(now)) * quota_.refill();
    if (least > level(now)) charge(least - level(now), now);
    if (until > tick(now)) stamp_ = std::max(stamp_, static_cast<Word>(until));
  }
  void give(Wide units, Word now) {
    const Wide left = std::max<Wide>(0, level(now) - units);
    position_ = Wide{tick(now)} * quota_.refill() + left;
    settle_at(now + wait(0, now), now);
  }
  /// Where it stands: draining does not show in what was charged before.
  [[nodiscard]] Place place(Word now) const {
    return {std::max(position_, Wide{tick(now)} * quota_.refill()), stamp_, now};
  }
  /// As if, standing there, it had been asked for so much.
  void restore(const Place& before, Wide units) {
    position_ = before.position;
    stamp_ = before.stamp;
    if (units > 0) charge(units, before.now);
  }
  /// Units given back of `amount`, of a grant that is `grant`.
  Wide refund(const Grant& grant, Wide amount, Word now) {
    const Wide left = level(now);
    Wide given = 0;
    if (grant.position == position_) {
      given = std::min(amount, left);
      if (given > 0) restore(grant.before, grant.units - amount);
      return given;
    }
    if (stamp_ <= now) {
      const Wide own = grant.units - (Wide{std::max<Word>(0, tick(now) - grant.from)} +
                                      (interval_ == 1 ? 0 : interval_)) *
                                         quota_.refill();
      given = std::max<Wide>(0, std::min({amount, own, left}));
    }
    position_ -= given;
    return given;
  }
  [[nodiscard]] Wide position() const { return position_; }
  /// The instant at which the last grant is covered.
  [[nodiscard]] Word stamp() const { return stamp_; }

 private:
  /// What lies ahead is written as an instant and what is spent at it, which is nothing at least,
  /// or as much as keeps a whole token from being taken at that instant already.
  void settle_at(Word stamp, Word now) {
    stamp_ = tick(now);
    if (level(now) <= limit()) return;
    stamp_ = stamp;
    const Wide least = interval_ == 1 ? limit() - quota_.period() + 1 : 0;
    position_ = std::max(position_, Wide{stamp} * quota_.refill() + least);
  }

  Quota quota_;
  Word interval_;
  Word longest_;
  Wide position_ = 0;
  Word stamp_ = 0;
};

/// The excess of the worst interval over what the quota allows in it and in one interval of refill
/// (times are whole microseconds: a grant may be up to one late), in units; 0 or less: none.
Wide worst_excess(const std::vector<Grant>& grants, const Quota& quota, Word interval) {
  std::vector<Grant> sorted = grants;
  std::ranges::stable_sort(sorted, {}, &Grant::at);
  const Wide limit = Wide{quota.capacity()} * quota.period();
  Wide worst = -limit;
  for (std::size_t from = 0; from < sorted.size(); ++from) {
    Wide sum = 0;
    for (std::size_t to = from; to < sorted.size(); ++to) {
      sum += sorted[to].units;
      const Wide length = Wide{sorted[to].at} - sorted[from].at + interval;
      worst = std::max(worst, sum - limit - length * quota.refill());
    }
  }
  return worst;
}

/// One bucket, the limiter and the oracle side by side.
class World {
 public:
  World(Random& random, const Quota& quota, Word interval, const BucketOptions& options)
      : random_(random),
        quota_(quota),
        interval_(interval),
        bucket_(*store_, "b", quota, options),
        oracle_(quota, interval, bucket_.longest().count()) {}

  void live(int commands, bool generous) {
    for (int i = 0; i < commands && now() < word_limit / 2; ++i) {
      switch (random_.below(generous ? 12 : 8)) {
        case 0:
        case 1:
          ask(0, true);
          break;
        case 2:
        case 3:
          ask(random_.between(0, bucket_.longest().count()), false);
          break;
        case 4:
          ask_some();
          break;
        case 5:
        case 6:
          refund();
          break;
        case 7:
          peek();
          break;
        default:
          change();
      }
      clock_.advance(Span{draw_gap()});
    }
  }

  [[nodiscard]] std::string excess() const {
    return std::to_string(static_cast<double>(worst()) / static_cast<double>(quota_.period())) +
           " tokens, with capacity " + std::to_string(quota_.capacity()) + ", refill " +
           std::to_string(quota_.refill()) + ", period " + std::to_string(quota_.period()) +
           ", interval " + std::to_string(interval_);
  }
  [[nodiscard]] Wide worst() const { return worst_excess(grants_, quota_, interval_); }

  std::size_t waited = 0;
  std::size_t on_top = 0;
  std::size_t below = 0;
  std::size_t nothing = 0;

 private:
  [[nodiscard]] Word now() { return to_word(clock_.now()); }
  Word draw_cost() {
    if (random_.one_in(4)) return quota_.capacity();
    return std::min(quota_.capacity(), log_uniform(random_, 1 + unsigned(random_.below(52))));
  }
  Word draw_gap() {
    if (random_.one_in(3)) return random_.between(0, 2);
    const Word full = quota_.full_after().count();
    return std::min(Word{1} << 44, random_.between(0, full / 3 + 2));
  }
  void note(const Reservation& granted, const Place& before, Wide position) {
    grants_.push_back({to_word(granted.at()), Wide{granted.granted} * quota_.period(), position,
                       oracle_.stamp(), before, granted});
  }

  void ask(Word max_wait, bool plain) {
    const Word cost = draw_cost();
    const Wide units = Wide{cost} * quota_.period();
    const Word wait = oracle_.wait(units, now());
    Reservation answer;
    if (plain) {
      answer.decision = bucket_.try_acquire(key, cost);
      answer.granted = cost;
    } else {
      answer = bucket_.reserve(key, cost, Span{max_wait});
    }
    const Decision& d = answer.decision;
    if (d.allowed != (wait <= max_wait)) FAIL("allowed " << d.allowed << ", due in " << wait);
    if (d.retry_after.count() != (d.allowed ? wait : wait - max_wait)) FAIL("a wrong time");
    if (!d.allowed) return;
    const Place before = oracle_.place(now());
    const Wide position = oracle_.charge(units, now());
    waited += wait > 0 ? 1 : 0;
    if (d.remaining != oracle_.remaining(now())) FAIL("a wrong remainder");
    note(answer, before, position);
    if (plain) grants_.back().reservation.granted = 0;  // no reservation: not given back
  }

  void ask_some() {
    const Word most = draw_cost();
    const Word least = random_.between(1, most);
    const Word there = oracle_.remaining(now());
    const bool in_debt = oracle_.level(now()) > oracle_.limit();
    const Reservation answer = bucket_.try_acquire_up_to(key, most, least);
    const bool fits = !in_debt && there >= least;
    if (bool(answer) != fits) FAIL("some: allowed " << bool(answer) << ", there are " << there);
    if (!fits) return;
    if (answer.granted != std::min(most, there)) FAIL("granted " << answer.granted);
    const Place before = oracle_.place(now());
    note(answer, before, oracle_.charge(Wide{answer.granted} * quota_.period(), now()));
  }

  void refund() {
    if (grants_.empty()) return;
    Grant& grant = grants_[random_.one_in(2) ? grants_.size() - 1 : random_.below(grants_.size())];
    if (grant.reservation.granted == 0) return;
    const Word amount = random_.one_in(2) ? grant.reservation.granted
                                          : random_.between(0, grant.reservation.granted);
    const bool top = grant.position == oracle_.position();
    const bool ahead = oracle_.stamp() > now();
    const Wide expected = oracle_.refund(grant, Wide{amount} * quota_.period(), now());
    const Word given = bucket_.refund(key, grant.reservation, amount);
    if (given != expected / quota_.period()) FAIL("gave back " << given);
    ++(top ? on_top : expected > 0 ? below : nothing);
    grant.units -= expected;
    grant.position = top ? oracle_.position() : grant.position - expected;
    Oracle alone = oracle_;
    alone.restore(grant.before, grant.units);
    grant.from = alone.stamp();
    if (top && ahead) {
      grant.at = std::min(grant.at, std::max(now(), grant.from));
      if (to_word(grant.reservation.at()) != grant.at) FAIL("the time of what is left is wrong");
    }
    grant.reservation.granted = static_cast<Word>(grant.units / quota_.period());
    if (grant.units % quota_.period() != 0) grant.reservation.granted = 0;
    if (bucket_.peek(key).remaining != oracle_.remaining(now())) FAIL("a wrong remainder");
  }

  void peek() {
    const Word cost = draw_cost();
    const Decision d = bucket_.peek(key, cost);
    const Word wait = oracle_.wait(Wide{cost} * quota_.period(), now());
    if (d.allowed != (wait == 0) || d.retry_after.count() != wait) FAIL("peek: due in " << wait);
    if (d.remaining != oracle_.remaining(now())) FAIL("peek: a wrong remainder");
  }

  void change() {
    const Word amount = draw_cost();
    const Wide units = Wide{amount} * quota_.period();
    Decision d;
    switch (random_.below(4)) {
      case 0:
        d = decide(bucket_.store(), bucket_.reset_step(key));
        oracle_.give(oracle_.level(now()), now());
        break;
      case 1:
        d = bucket_.reward(key, amount);
        oracle_.give(units, now());
        break;
      case 2:
        d = bucket_.penalize(key, amount);
        oracle_.charge_anyway(units, now());
        break;
      default: {
        const Word most = bucket_.longest().count() - interval_ + 1;
        if (most < 0) return;
        const Word span = random_.between(0, most);
        d = bucket_.block(key, Span{span});
        oracle_.block(span, now());
      }
    }
    if (!d.allowed || d.remaining != oracle_.remaining(now())) FAIL("after a change: wrong");
  }

  static constexpr Key key{"k", ""};

  Random& random_;
  Quota quota_;
  Word interval_;
  VirtualClock clock_;
  std::unique_ptr<Store> store_ = make_virtual_store(clock_);
  TokenBucket bucket_;
  Oracle oracle_;
  std::vector<Grant> grants_;
};

/// A quota and options that go together, everyday ones as likely as extreme ones.
World draw_world(Random& random) {
  for (;;) {
    const Quota quota = random_quota(random);
    const Word room = (word_limit - quota.capacity() * quota.period()) / quota.refill();
    if (random.one_in(2)) return {random, quota, 1, BucketOptions{}};
    if (room < 2) continue;
    const Word interval =
        random.one_in(3) ? 1 : random.between(1, std::min(room - 1, Word{1} << 24));
    BucketOptions options{.refill = Refill::per_interval(Span{interval})};
    if (random.one_in(2) && room - interval >= TokenBucketRule::max_ahead) {
      options.longest =
          Span{std::clamp(quota.full_after().count() * 3, TokenBucketRule::max_ahead,
                          std::min(room - interval, TokenBucketReserve::max_longest))};
    }
    return {random, quota, interval, options};
  }
}

}  // namespace

TEST_CASE("every answer is that of one absolute position, and no interval holds too much",
          "[oracle][token_bucket][S1]") {
  Random random("every answer is that of one absolute position, and no interval holds too much");
  CAPTURE(random.repeat());
  const std::size_t histories = scaled(1'500);
  std::size_t waited = 0;
  std::size_t on_top = 0;
  std::size_t below = 0;
  std::size_t nothing = 0;
  for (std::size_t i = 0; i < histories; ++i) {
    World world = draw_world(random);
    world.live(160, false);
    if (world.worst() > 0) FAIL("an interval holds too much, by " << world.excess());
    waited += world.waited;
    on_top += world.on_top;
    below += world.below;
    nothing += world.nothing;
  }
  CHECK(waited > histories);
  CHECK(on_top > histories);
  CHECK(below > 0);
  CHECK(nothing > histories / 10);
}

TEST_CASE("after a reset, a reward, a penalty or a block, answers are those of the position",
          "[oracle][token_bucket]") {
  Random random("after a reset, a reward, a penalty or a block, answers are those of the position");
  CAPTURE(random.repeat());
  for (std::size_t i = scaled(1'000); i > 0; --i) draw_world(random).live(60, true);
}

TEST_CASE("one grant too many is found by the judge of intervals", "[oracle][token_bucket][S1]") {
  const Quota quota = Quota::per_second(10).burst(5);
  std::vector<Grant> grants;
  for (Word i = 0; i < 5; ++i) grants.push_back({0, quota.period(), 0, 0, {}, {}});
  for (Word us = 100'000; us <= 1'000'000; us += 100'000) {
    grants.push_back({us, quota.period(), 0, 0, {}, {}});
  }
  CHECK(worst_excess(grants, quota, 1) == -quota.refill());
  grants.push_back({1'000'000, quota.refill() + 1, 0, 0, {}, {}});
  CHECK(worst_excess(grants, quota, 1) == 1);
}
