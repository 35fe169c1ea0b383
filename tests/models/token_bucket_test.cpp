// The model of the token bucket, in its plain and its full form: one absolute position in 128-bit
// units, which draining leaves alone, under limiters of several bursts; and a list of what was
// granted and when, over which every interval is judged.
// Threading: one thread.
#include "sluice/limiters/token_bucket.hpp"

#include <algorithm>

#include "sluice/rules/token_bucket_reserve.hpp"
#include "src/rules/token_bucket_ahead.hpp"
#include "src/testing/generators.hpp"
#include "tests/models/bucket_model.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;
using namespace std::chrono_literals;
using sluice::testing::detail::log_uniform;
using sluice::testing::detail::random_quota;
using sluice::testing::detail::Wide;

namespace {

/// A quota of no more than 50 days, so that no life comes near the end of time.
Quota draw_quota(Random& random) {
  if (random.one_in(2)) {
    return Quota::per(random.between(1, 200), Span{random.between(1'000, 10'000'000)})
        .burst(random.between(1, 20));
  }
  for (;;) {
    const Quota quota = random_quota(random);
    if (quota.full_after().count() < Word{1} << 42) return quota;
  }
}

/// All that was ever charged less all that can have drained until now, `level + refill * stamp`:
/// draining leaves it alone.
struct Bucket {
  Wide position = 0;
  Word stamp = 0;
  bool closed = false;  // nothing is granted before the stamp
  bool known = false;
};
/// A bucket as a request sees it: time stands still at a stamp that lies ahead.
struct View {
  Word at;
  Wide level;
  bool closed = false;
};

class TokenBucketModel final : public BucketModel<TokenBucket, Bucket> {
 public:
  explicit TokenBucketModel(Life& life) : BucketModel(life) {
    life.patient ? draw_patient() : draw();
  }

  std::vector<Verb> verbs() override {
    return {{"acquire", 40, [this] { ask_any(false); }},
            {"peek", 12, [this] { peek(draw_cost()); }, true},
            {"reserve", 24, [this] { ask_any(true); }},
            {"acquire up to", 12, [this] { ask_up_to(); }},
            {"refund", 16, [this] { refund(); }},
            {"settle", 12, [this] { settle(); }},
            {"penalize", 4, [this] { penalize(); }},
            {"block", 4, [this] { block(); }},
            {"reward", 4, [this] { reward(); }},
            {"reset", 1, [this] { reset(); }}};
  }
  Moves moves() const override {
    const Word full = bucket().quota().full_after().count();
    return {Span{full / 20 + 2}, Span{full + 2}, life_.farthest_back()};
  }
  std::optional<Time> edge() const override {
    if (!state_.known) return {};
    return to_time(stands_from(ahead(random_.one_in(2))));
  }
  Callers callers() const override {
    const Quota& quota = bucket().quota();
    return {most_cost_, Span{quota.period() * 6 * most_cost_ / quota.refill()}};
  }
  Decision ask(Word cost) override { return request(cost, patience_); }

  /// A grant ahead may be 1 us or an interval late.
  void judge(const History& history) override {
    grants_.judge([this](const Outstanding::Interval& in) {
      return in.burst + (Wide{in.to} - in.from + interval_) * refill_ + in.late;
    });
    if (!life_.patient) return;
    life_.keep(check_remaining(history, bucket().quota().capacity()));
    const Word burst = bucket().quota().capacity();
    if (interval_ > 1 || patience_ > 0) return;
    life_.keep(check_rate(history, {burst, refill_, Span{period_}}));
    life_.keep(check_work_conserving(history, {most_cost_, refill_, Span{period_}}));
  }

 private:
  struct Wanted {
    Wide level;  // if it is granted
    Word wait;
  };

  /// Limiters of one rate and several bursts.
  void draw() {
    const Quota quota = draw_quota(random_);
    BucketOptions options;
    const Word room = (word_limit - quota.capacity() * quota.period()) / quota.refill();
    if (room > 2 && random_.one_in(3)) {
      const Word most = std::min(room - 1, Word{1} << (random_.one_in(2) ? 12 : 24));
      options.refill = Refill::per_interval(Span{random_.between(1, most)});
    }
    const Word longest =
        std::min(room - options.refill.interval().count(), TokenBucketReserve::max_longest);
    if (random_.one_in(3) && longest >= TokenBucketRule::max_ahead) {
      options.longest = Span{random_.between(TokenBucketRule::max_ahead, longest)};
    }
    if (random_.one_in(3)) options.refund = Refund::in_full;
    std::vector<Quota> quotas{quota};
    for (std::size_t more = random_.below(3); more > 0; --more) {
      quotas.push_back(quota.burst(random_.between(1, quota.capacity())));
    }
    const auto least = std::ranges::min(quotas, {}, &Quota::capacity).capacity();
    const bool is_everyday = room > 4 * TokenBucketReserve::max_longest;
    if (is_everyday && random_.one_in(3)) options.initial = random_.between(0, least);
    for (const Quota& one : quotas) make(one, options);
  }
  /// At most one token comes in a microsecond, so that none is lost.
  void draw_patient() {
    const Word units = random_.between(1, 1000);
    const Quota quota =
        Quota::per(units, Span{random_.between(units, 1'000'000)}).burst(random_.between(2, 20));
    most_cost_ = random_.between(1, quota.capacity() - 1);
    BucketOptions options;
    if (random_.one_in(4)) options.refill = Refill::per_interval(Span{random_.between(2, 50'000)});
    make(quota, options);
    patience_ = random_.one_in(2) ? 0 : random_.between(0, 5'000'000);
  }
  void make(const Quota& quota, const BucketOptions& options) {
    limiters_.emplace_back(life_.store, life_.name, quota, options);
    refill_ = quota.refill();
    period_ = quota.period();
    interval_ = options.refill.interval().count();
    in_full_ = options.refund == Refund::in_full;
    plain_ = interval_ == 1 && !options.initial && !options.longest;
    Word full_at = 0;
    if (options.initial) {  // of the last refill, to the microsecond
      const Wide missing = (Wide{quota.capacity()} - *options.initial) * period_;
      full_at = floor_to_interval(life_.tick()) + static_cast<Word>(missing / refill_);
    }
    full_at_.push_back(full_at);
  }

  [[nodiscard]] const TokenBucket& bucket() const { return limiters_[present_]; }
  [[nodiscard]] Word longest() const { return bucket().longest().count(); }
  [[nodiscard]] Wide limit() const { return Wide{bucket().quota().capacity()} * period_; }
  [[nodiscard]] Word latest() const { return floor_to_interval(life_.tick() + longest()); }
  /// How long so many units drain.
  [[nodiscard]] Word ceil(Wide units) const {
    return static_cast<Word>((units + refill_ - 1) / refill_);
  }
  [[nodiscard]] Word floor_to_interval(Word time) const { return time - time % interval_; }
  [[nodiscard]] Word ceil_to_interval(Word time) const {
    return floor_to_interval(time + interval_ - 1);
  }

  /// Draws who asks.
  Word draw_cost() {
    if (random_.one_in(4)) present_ = random_.below(limiters_.size());
    const Word most = bucket().quota().capacity();
    if (random_.one_in(4)) return random_.one_in(2) ? most : 0;
    return std::min(most, log_uniform(random_, 1 + static_cast<unsigned>(random_.below(52))));
  }
  Word draw_wait() {
    const Word full = bucket().quota().full_after().count();
    return std::min(longest(), random_.between(0, random_.one_in(3) ? longest() : full));
  }

  /// `ahead`: beyond it a stamp is given up, and `units` fit, whatever the level.
  [[nodiscard]] View view(Word ahead, Wide units = 0) const {
    const Word now = life_.tick();
    const Word at = floor_to_interval(now);
    const Wide level = state_.position - Wide{state_.stamp} * refill_;
    const auto first = [&]() -> Wide {
      const Word missing = std::max<Word>(0, full_at_[present_] - at);
      const bool set_back = missing > ceil(limit()) + longest();
      return set_back ? limit() - units : Wide{missing} * refill_;
    };
    if (!state_.known) return {at, first()};
    if (is_given_up(ahead)) return {at, std::min(level, limit() - units)};
    if (state_.stamp > at) return {state_.stamp, level, state_.closed};
    const Wide left = std::max<Wide>(0, state_.position - Wide{at} * refill_);
    const bool forgotten = left == 0 && at - state_.stamp > ceil(limit());
    return {at, forgotten && !plain_ ? first() : left};
  }
  /// More than the limit is an instant ahead at which it is covered, and what is spent at it: as
  /// much as keeps a whole token from being taken at that instant already.
  [[nodiscard]] Bucket place(const View& seen, Wide level) const {
    const Wide position = Wide{seen.at} * refill_ + level;
    if (level <= limit()) return {position, seen.at, seen.closed, true};
    const Word stamp = ceil_to_interval(seen.at + ceil(level - limit()));
    const Wide least = interval_ == 1 ? limit() - period_ + 1 : 0;
    return {std::max(position, Wide{stamp} * refill_ + least), stamp, true, true};
  }
  [[nodiscard]] Wanted want(const View& seen, Wide units) const {
    const Wide level = seen.level + units;
    if (level <= limit()) return {level, seen.closed ? seen.at - life_.tick() : 0};
    return {level, ceil_to_interval(seen.at + ceil(level - limit())) - life_.tick()};
  }
  /// With so much spent of what was seen.
  [[nodiscard]] Predicted predict(const View& seen, Wide level, bool allowed = true,
                                  Word retry_after = 0) const {
    const Word now = life_.tick();
    const Wide left = seen.closed ? 0 : std::max<Wide>(0, limit() - level);
    const bool empty = level == 0 && seen.at <= now;
    return {.allowed = allowed,
            .remaining = static_cast<Word>(left / period_),
            .retry_after = retry_after,
            .reset_after = empty ? 0 : ceil_to_interval(seen.at + ceil(level)) - now};
  }

  [[nodiscard]] Word ahead(bool full_form) const {
    return plain_ && !full_form ? TokenBucketRule::max_ahead : longest();
  }
  /// What is promised is at most `ahead`, and the clock goes back by at most as much.
  [[nodiscard]] Word stands_from(Word ahead) const {
    return state_.stamp - (state_.closed ? 2 : 1) * ahead;
  }
  [[nodiscard]] bool is_given_up(Word ahead) const {
    return state_.known && stands_from(ahead) > life_.tick();
  }
  void note_given_up(Word ahead) {
    if (!is_given_up(ahead)) return;
    life_.saw("given up");
    forget();
  }
  /// Nothing was spent, promised or blocked when it was written.
  [[nodiscard]] bool is_blank() const {
    return state_.position == Wide{state_.stamp} * refill_ && !state_.closed;
  }
  void write(const Bucket& bucket) {
    state_ = bucket;
    life_.wrote();
  }

  /// What more than this burst may owe does not expire with it, if nothing changes.
  void write_change(const View& seen, const View& next) {
    const bool same = seen.at == next.at && seen.level == next.level && seen.closed == next.closed;
    if (same && seen.level > limit() && !is_blank()) return;
    write({Wide{next.at} * refill_ + next.level, next.at, next.closed, true});
  }

  void ask_any(bool reserves) {
    const Word cost = draw_cost();
    (void)request(cost, reserves ? draw_wait() : 0);
  }

  Decision request(Word cost, Word max_wait) {
    const bool reserves = max_wait > 0;
    life_.tell("limiter", static_cast<Word>(present_));
    life_.tell("cost", cost);
    life_.tell("max_wait", max_wait);
    const View seen = view(ahead(reserves), Wide{cost} * period_);
    const Wanted wanted = want(seen, Wide{cost} * period_);
    const bool fits = wanted.wait <= max_wait;
    Reservation r;
    if (!reserves) {
      r = Reservation(
          random_.one_in(8) ? bucket().at("k").try_acquire(cost) : bucket().try_acquire("k", cost),
          0);
    } else if (random_.one_in(4)) {
      r = bucket().borrow("k", cost, Span{max_wait});
    } else {
      r = bucket().reserve("k", cost, Span{max_wait});
    }
    life_.note(r, cost);
    life_.require(r, fits ? predict(seen, wanted.level, true, wanted.wait)
                          : predict(seen, seen.level, false, wanted.wait - max_wait));
    if (reserves) REQUIRE(r.granted == (fits ? cost : 0));
    if (fits) granted(seen, cost, wanted.wait, ahead(reserves), reserves ? &r : nullptr);
    return r;
  }

  void ask_up_to() {
    const Word most = draw_cost();
    const Word least = random_.between(0, most);
    life_.tell("limiter", static_cast<Word>(present_));
    life_.tell("least", least);
    life_.tell("most", most);
    const View seen = view(longest(), Wide{most} * period_);
    const Wanted wanted = want(seen, Wide{least} * period_);
    const Reservation r = bucket().try_acquire_up_to("k", most, least);
    life_.note(r, r.granted);
    if (wanted.wait > 0) {
      REQUIRE(r.granted == 0);
      return life_.require(r, predict(seen, seen.level, false, wanted.wait));
    }
    const Word units = std::min(most, static_cast<Word>((limit() - seen.level) / period_));
    REQUIRE(r.granted == units);
    life_.require(r, predict(seen, seen.level + Wide{units} * period_));
    if (units < most) life_.saw("a part");
    granted(seen, units, 0, longest(), &r);
  }

  void granted(const View& seen, Word cost, Word wait, Word ahead, const Reservation* r) {
    if (cost == 0) return;
    note_given_up(ahead);
    const Wide units = Wide{cost} * period_;
    const Word at = std::max(seen.at, life_.tick() + wait);
    const std::size_t id = grants_.add(at, units, limit());
    const Bucket before{Wide{seen.at} * refill_ + seen.level, seen.at, seen.closed, true};
    if (r != nullptr) held_.push_back({id, static_cast<Word>(present_), before, *r});
    if (last_spender_ != present_) life_.saw("another burst spends");
    last_spender_ = present_;
    write(place(seen, seen.level + units));
  }

  void peek(Word cost) {
    life_.tell("limiter", static_cast<Word>(present_));
    life_.tell("cost", cost);
    const View seen = view(ahead(false), Wide{cost} * period_);
    const Word wait = want(seen, Wide{cost} * period_).wait;
    life_.require(bucket().peek("k", cost), predict(seen, seen.level, wait == 0, wait));
  }

  /// Of a grant ahead that is the last, all: what it found is put back, and charged with the rest.
  /// Else what had not drained of the grant when something was charged last, had it begun to at its
  /// own time, with no more than what was spent then; nothing, if something was promised behind it.
  /// Answers whole tokens.
  Word give_back(Held& held, Word tokens) override {
    const Word now = life_.tick();
    const Word at = floor_to_interval(now);
    const Wide amount = Wide{tokens} * period_;
    const Wide cost = Wide{held.reservation.granted} * period_;
    const View before{held.before.stamp, held.before.position - Wide{held.before.stamp} * refill_,
                      held.before.closed};
    const Bucket whole = cost == 0 ? held.before : place(before, before.level + cost);
    const Bucket rest = cost == amount ? held.before : place(before, before.level + cost - amount);
    const bool waits = state_.stamp > at && state_.closed;
    const bool is_last = waits && state_.position == whole.position && state_.stamp == whole.stamp;
    expected_at_ = to_word(held.reservation.ready_at());
    Wide given = 0;
    if (is_last) {
      given = amount;
      const Word due = std::max({now, rest.stamp, to_word(held.reservation.at)});
      expected_at_ = std::min(expected_at_, due);
      if (given > 0) write(rest);
      if (given > 0) life_.saw("given back ahead");
      // The rest is spent when its caller hears of it.
      if (given > 0 && amount < cost && rest.stamp < at) {
        write({std::max(rest.position, Wide{at} * refill_), at, false, true});
        life_.saw("a rest that is due");
      }
    } else if (!waits && state_.stamp >= whole.stamp) {
      const Wide left =
          std::max<Wide>(0, state_.position - Wide{std::max(at, state_.stamp)} * refill_);
      const Wide age = Wide{state_.stamp} - whole.stamp;
      const Wide spent = std::min(cost, whole.position - Wide{whole.stamp} * refill_);
      const Wide most = in_full_ ? amount : spent - age * refill_;
      given = std::max<Wide>(0, std::min({amount, most, left}));
      if (given > 0) {
        Bucket next = state_;
        next.position -= given;
        next.closed = false;  // its instant has come
        write(next);
        life_.saw(in_full_ && given > spent - age * refill_ ? "given back in full"
                  : age == 0                                ? "given back at once"
                                                            : "given back below others");
      }
    } else if (waits) {
      life_.saw("nothing back before others who wait");
    }
    if (given == 0) return 0;
    const bool known = in_full_ && !is_last ? grants_.give_back_late(held.id, given)
                                            : grants_.give_back(held.id, given);
    if (!known) forget();  // a reward had given it already
    if (is_last) grants_.bring_nearer(held.id, std::max(now, rest.stamp));
    return static_cast<Word>(given / period_);
  }
  const TokenBucket* bucket_of(const Held& held) override {
    present_ = static_cast<std::size_t>(held.of);
    return &bucket();
  }
  void charge_more(Word amount) override { charge(amount); }
  /// Whatever is there, up to the longest debt.
  Predicted charge(Word amount) {
    const View seen = view(longest());
    note_given_up(longest());
    const Wide most = limit() + (Wide{latest()} - seen.at) * refill_;
    const Wide level = std::max(seen.level, std::min(most, seen.level + Wide{amount} * period_));
    if (level == most) life_.saw("the longest debt");
    charged_ = static_cast<Word>((level - seen.level) / period_);
    // A debt is no promise: a larger burst has the difference. But for more than can be written.
    if (level > seen.level && level > token_bucket::most_level) {
      write(place(seen, level));
      return predict({state_.stamp, 0, true}, state_.position - Wide{state_.stamp} * refill_);
    }
    write_change(seen, {seen.at, level, seen.closed});
    return predict(seen, level);
  }
  /// Up to twice the longest.
  Word draw_debt() override {
    const Wide most = Wide{2} * longest() * refill_ / period_;
    return random_.between(0, static_cast<Word>(std::min<Wide>(word_limit / 4, most)));
  }
  void penalize() {
    const Word amount = draw_cost() + (random_.one_in(3) ? draw_debt() : 0);
    life_.tell("amount", amount);
    const Predicted predicted = charge(amount);
    life_.require(bucket().penalize("k", amount), predicted);
  }

  void block() {
    draw_cost();
    const View seen = view(longest());
    if (longest() < interval_) return;
    const Word now = life_.tick();
    const Word most = longest() - interval_ + 1;
    const Word span =
        random_.one_in(8)
            ? 0
            : random_.between(0, random_.one_in(3) ? most : std::min(draw_wait(), most));
    life_.tell("span", span);
    note_given_up(longest());
    if (span == 0) {
      life_.require(bucket().block("k", Span{0}), predict(seen, seen.level));
      return write_change(seen, seen);
    }
    const Word until = ceil_to_interval(now + span);
    // One token is there at the end, if no more is spent by then, or promised.
    const Word at = std::max(until, seen.at);
    const Wide least = limit() - period_ - (Wide{at} - until) * refill_;
    const Wide level =
        std::max(seen.level - (Wide{at} - seen.at) * refill_, std::max<Wide>(0, least));
    const View shut{at, level, seen.closed || at > now};
    const Decision answer = bucket().block("k", Span{span});
    life_.require(answer, predict(shut, level));
    if (seen.level > limit()) life_.saw("a block of what is owed");
    write_change(seen, shut);
  }

  /// What is promised comes nearer, by whole intervals, for as long as the tokens last.
  void reward() {
    const Word amount = draw_cost();
    life_.tell("amount", amount);
    const View seen = view(longest());
    const Wide units = Wide{amount} * period_;
    const Word ahead = seen.closed ? seen.at - floor_to_interval(life_.tick()) : 0;
    const auto lasts = static_cast<Word>(std::min<Wide>(ahead, units / refill_));
    const Word nearer = lasts == ahead ? ahead : floor_to_interval(lasts);
    const Wide level = std::max<Wide>(0, seen.level - (units - Wide{nearer} * refill_));
    const View next{seen.at - nearer, level, nearer < ahead};
    life_.require(bucket().reward("k", amount), predict(next, level));
    write_change(seen, next);
    forget();
  }
  void reset() {
    draw_cost();
    life_.begin_history();
    const Word at = floor_to_interval(life_.tick());
    bucket().reset("k");
    write({Wide{at} * refill_, at, false, true});
    held_.clear();
    forget();
  }
  std::vector<TokenBucket> limiters_;
  std::vector<Word> full_at_;  // of each, with a first level
  Word refill_ = 1;
  Word period_ = 1;
  Word interval_ = 1;
  bool plain_ = true;
  bool in_full_ = false;
  Word most_cost_ = 1;  // of patient callers
  Word patience_ = 0;
  std::size_t present_ = 0;  // who asks
  std::size_t last_spender_ = 0;
  Bucket state_;
};

}  // namespace

TEST_CASE("a token bucket answers as one absolute position does, and no interval holds too much",
          "[model][token_bucket][S1][S5][L1][L2][C-022][C-023]") {
  live<TokenBucketModel>(
      {.outcomes = {"admitted", "reserved", "refused", "a part", "another burst spends",
                    "given back at once", "given back ahead", "given back below others",
                    "given back in full", "nothing back before others who wait",
                    "a rest that is due", "the longest debt", "charged in part",
                    "a block of what is owed", "given up"}});
}

TEST_CASE("another rate is another count, and the bound of both is their sum",
          "[model][token_bucket]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const TokenBucket slow(store, "b", Quota::per_second(10).burst(5));
    const TokenBucket fast(store, "b", Quota::per_second(20).burst(8));
    CHECK(slow.try_acquire("k", 5));
    CHECK(fast.peek("k").remaining == 8);
    CHECK(fast.try_acquire("k", 8));
    CHECK_FALSE(slow.try_acquire("k"));
    CHECK_FALSE(fast.try_acquire("k"));
    Word granted = 13;
    for (int i = 0; i < 100; ++i) {
      clock.advance(100ms);
      for (int ask = 0; ask < 2; ++ask) granted += slow.try_acquire("k") ? 1 : 0;
      for (int ask = 0; ask < 3; ++ask) granted += fast.try_acquire("k") ? 1 : 0;
    }
    CHECK(granted == 5 + 100 + 8 + 200);
    // An id that one has used is not another's.
    const RequestId id{1, 2};
    CHECK(slow.try_acquire("i", 1, id));
    std::error_code error;
    CHECK_FALSE(fast.try_acquire("i", 1, id, error));
    CHECK(error == Errc::id_reused);
    // A bound bucket is that of its rate.
    CHECK(fast.at("bound").try_acquire(8));
    CHECK(slow.at("bound").try_acquire(5));
    CHECK_FALSE(fast.at("bound").try_acquire());
    // The same rate in other words is the same count.
    const TokenBucket same(store, "b", Quota::per_minute(600).burst(5));
    CHECK_FALSE(same.try_acquire("k", 5));
    clock.advance(500ms);
    CHECK(same.try_acquire("k", 5));
    CHECK_FALSE(slow.try_acquire("k"));
  });
}
