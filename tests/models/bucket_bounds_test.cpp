// The bound of both kinds of token bucket, judged over every interval after every grant of random
// histories with refunds and settlements. From answers alone: no model of the rule. Times are those
// of a key, which stands still while a clock that was set back catches up.
// Threading: one thread.
#include <type_traits>

#include "sluice/limiters/shared_token_bucket.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "tests/models/driver.hpp"
#include "tests/models/outstanding.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;
using namespace std::chrono_literals;
using sluice::testing::detail::Wide;

namespace {

constexpr Word token = 1'000'000;  // what is counted: a microsecond of a token a second

/// Quotas in force, one after the other; those of one TokenBucket's limiters differ in their burst.
struct Setting {
  Word from;  // by the key's time
  Word rate;  // a second
  Word burst;
};
/// Makes the bound that no interval may exceed, of the settings and the longest interval between
/// two refills.
using MakeBound =
    std::function<Outstanding::Bound(const std::vector<Setting>& settings, Word interval)>;

/// The largest burst, and what the largest rate brings. A grant ahead may be 1 us or an interval
/// late.
Outstanding::Bound burst_and_rate(const std::vector<Setting>& settings, Word interval) {
  return [&settings, interval](const Outstanding::Interval& in) {
    Wide burst = in.burst;
    Wide rate = 0;
    for (std::size_t i = in.since; i < settings.size(); ++i) {
      if (i > in.since && settings[i].from > in.to) break;
      burst = std::max(burst, Wide{settings[i].burst} * token);
      rate = std::max(rate, Wide{settings[i].rate});
    }
    return burst + (Wide{in.to} - in.from + interval) * rate;
  };
}

template <class Bucket>
class BucketBounds final : public Model {
 public:
  static constexpr bool is_shared = std::is_same_v<Bucket, SharedTokenBucket>;

  BucketBounds(Life& life, const MakeBound& make_bound) : life_(life), random_(life.random) {
    // Each life has a time of its own, so that the store can drop the keys of those before.
    life_.clock.set(VirtualClock::default_start + std::stoi(life_.name.substr(4)) * longest_life);
    has_rewards_ = random_.one_in(4);
    draw_limiters();
    bound_ = make_bound(settings_, interval_);
  }

  std::vector<Verb> verbs() override {
    std::vector<Verb> all{{"acquire", 3, [this] { acquire(); }},
                          {"reserve now", 6, [this] { reserve(Span{0}); }},
                          {"reserve", 5, [this] { reserve(random_.between(1, 20) * 100ms); }},
                          {"cancel", 6, [this] { cancel(); }},
                          {"refund", 3, [this] { refund(); }},
                          {"settle", 4, [this] { settle(); }},
                          {"penalize", 1, [this] { penalize(); }},
                          {"block", 1, [this] { block(); }},
                          {"reward", 2, [this] { reward(); }},
                          {"reset", 1, [this] { reset(); }},
                          {"time passes", 18, [this] { pass_time(); }}};
    if constexpr (is_shared) {
      all.push_back({"configure", 2, [this] { configure(); }});
    } else {
      all.push_back({"acquire up to", 2, [this] { acquire_up_to(); }});
    }
    return all;
  }
  Moves moves() const override { return {}; }
  void judge(const History&) override {}

 private:
  /// More than 36 steps of two minutes each, so that a shared limit never expires within a life.
  static constexpr Span longest_life = 2h;

  struct Held {
    std::size_t id;
    std::size_t limiter;
    std::size_t rewards;  // before it
    Word rate;
    Reservation reservation;
  };

  /// Mostly by tenths of a second, so that instants coincide. A key whose clock is set back stands
  /// still at what was written last, which is to be the present time: nothing lies ahead.
  void pass_time() {
    const Word tenth = 100'000;
    Word span = random_.between(0, (random_.one_in(6) ? 20 : 6) * tenth);
    if (!random_.one_in(8)) span -= span % tenth;
    if (random_.one_in(10) && life_.tick() > last_at_ && bucket().peek("k", 0)) {
      life_.saw("set back");
      (void)limiters_[present_].penalize("k", 0);
      key_time();
      span = -span;
    }
    life_.clock.advance(Span{span});
  }
  /// At 10 a second a microsecond is a unit, so that `reset_after` tells the level.
  void draw_limiters() {
    if constexpr (is_shared) {
      limiters_.emplace_back(life_.store, life_.name, longest_life);
      configure_to(10, 10, Inheritance::as_is);
    } else {
      BucketOptions options;
      if (random_.one_in(4)) options.refill = Refill::per_interval(random_.between(1, 4) * 250ms);
      interval_ = options.refill.interval().count();
      settings_.push_back({0, 10, 0});
      limiters_.emplace_back(life_.store, life_.name, Quota::per_second(10).burst(10), options);
      if (!random_.one_in(3)) return;
      const Word burst = random_.between(2, 6);
      limiters_.emplace_back(life_.store, life_.name, Quota::per_second(10).burst(burst), options);
    }
  }

  /// Draws who asks.
  const Bucket& bucket() {
    present_ = random_.below(limiters_.size());
    life_.tell("limiter", static_cast<Word>(present_));
    return limiters_[present_];
  }
  [[nodiscard]] Word burst() const {
    if constexpr (is_shared)
      return settings_.back().burst;
    else
      return limiters_[present_].quota().capacity();
  }
  Word draw_cost() {
    const Word cost = random_.one_in(3) ? 5 : random_.between(1, 10);
    return std::min(cost, burst());
  }
  /// The key's time after a change now: it stands still while the clock lies behind.
  Word key_time() { return latest_ = std::max(latest_, life_.tick()); }

  std::size_t granted(const Decision& decision, Word units) {
    life_.saw("granted");
    const Word decided = key_time();
    const Word at = std::max(decided, to_word(decision.at + decision.retry_after));
    last_at_ = std::max(last_at_, at);
    const Word most = is_shared ? 0 : burst();
    const std::size_t id =
        grants_.add(at, Wide{units} * token, Wide{most} * token, settings_.size() - 1);
    judge_all();
    return id;
  }
  void judge_all() {
    grants_.judge([this](const Outstanding::Interval& in) { return bound_(in) + rewarded_; });
  }
  void hold(const Reservation& r) {
    life_.tell("granted", r.granted);
    if (r.granted == 0) return;
    if (r.wait() > Span{0}) life_.saw("reserved");
    const std::size_t id = granted(r, r.granted);
    held_.push_back({id, present_, rewards_, settings_.back().rate, r});
  }

  void acquire() {
    const Bucket& asked = bucket();
    const Word cost = draw_cost();
    life_.tell("cost", cost);
    if (const Decision d = asked.try_acquire("k", cost)) granted(d, cost);
  }
  void reserve(Span wait) {
    const Bucket& asked = bucket();
    const Word cost = draw_cost();
    life_.tell("cost", cost);
    hold(asked.reserve("k", cost, wait));
  }
  void acquire_up_to() {
    if constexpr (!is_shared) {
      const Bucket& asked = bucket();
      hold(asked.try_acquire_up_to("k", draw_cost()));
    }
  }

  void cancel() {
    change([](const Bucket& bucket, Reservation& r) { return bucket.cancel("k", r); });
  }
  void refund() {
    change([this](const Bucket& bucket, Reservation& r) {
      return bucket.refund("k", r, random_.between(0, r.granted));
    });
  }
  /// More than the estimate is charged whatever the level, and therefore not judged.
  void settle() {
    change([this](const Bucket& bucket, Reservation& r) {
      return bucket.settle("k", r, random_.between(0, r.granted + r.settled + 2)).refunded;
    });
  }
  /// The units that come back are also seen in `reset_after`, which tells their fractions, but not
  /// with lumps: there, nearly a token more may have come back.
  template <class Call>
  void change(Call call) {
    if (held_.empty()) return;
    const std::size_t drawn = random_.one_in(2) ? held_.size() - 1 : random_.below(held_.size());
    Held& held = held_[drawn];
    Reservation& r = held.reservation;
    const Bucket& asked = limiters_[held.limiter];
    life_.tell("grant", static_cast<Word>(held.id));
    const bool is_ahead = r.ready_at() > life_.now();
    const Span before = asked.peek("k", 0).reset_after;
    const Reservation then = r;
    const Word back = call(asked, r);
    if (r.settled > then.settled || (is_shared && is_ahead && back > 0)) key_time();
    const Wide seen = Wide{(before - asked.peek("k", 0).reset_after).count()} * held.rate;
    const Wide least = Wide{back} * token;
    const Wide most = std::min(least + token - 1, Wide{then.granted - r.granted} * token);
    const Wide given = interval_ > 1 ? most : std::clamp(seen, least, std::max(least, most));
    life_.tell("given back", back);
    if (given > 0) {
      life_.saw(is_ahead ? "given back ahead" : "given back");
      grants_.give_back(held.id, given);
      // Documented: a reward may have given the same.
      if (held.rewards < rewards_) rewarded_ += std::min(given, rewarded_);
    }
    grants_.bring_nearer(held.id, std::max(latest_, to_word(r.ready_at())));
    judge_all();
    if (r.granted == 0) held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(drawn));
  }

  void penalize() {
    const Word amount = random_.between(0, 12);
    (void)bucket().penalize("k", amount);
    life_.tell("amount", amount);
    key_time();
  }
  void block() {
    const Word tenths = random_.between(0, 12);
    (void)bucket().block("k", tenths * 100ms);
    life_.tell("tenths of a second", tenths);
    key_time();
  }
  /// Documented: an interval may hold as much more. Not with other quotas, which may multiply it.
  void reward() {
    if (!has_rewards_) return;
    const Word amount = random_.between(1, 6);
    (void)bucket().reward("k", amount);
    life_.tell("amount", amount);
    key_time();
    rewarded_ += Wide{amount} * token;
    ++rewards_;
  }
  /// REQUIRES that no earlier grant is given back.
  void reset() {
    if (!random_.one_in(4)) return;
    bucket().reset("k");
    grants_.clear();
    held_.clear();
    latest_ = 0;
  }
  void configure() {
    if (has_rewards_) return;
    constexpr Word rates[] = {5, 10, 20};
    configure_to(rates[random_.below(3)], random_.between(2, 20),
                 static_cast<Inheritance>(random_.between(0, 3)));
  }
  void configure_to(Word rate, Word burst, Inheritance how) {
    life_.tell("rate", rate);
    life_.tell("burst", burst);
    life_.tell("inheritance", static_cast<Word>(how));
    if constexpr (is_shared) {
      limiters_[0].configure("k", Quota::per_second(rate).burst(burst), how);
      settings_.push_back({key_time(), rate, burst});
    }
  }

  Life& life_;
  Random& random_;
  std::vector<Bucket> limiters_;
  std::vector<Setting> settings_;
  Word interval_ = 1;
  Outstanding::Bound bound_;
  bool has_rewards_ = false;
  std::size_t present_ = 0;  // who asks
  Word latest_ = 0;
  Word last_at_ = 0;  // of all grants
  Outstanding grants_;
  std::vector<Held> held_;
  std::size_t rewards_ = 0;
  Wide rewarded_ = 0;
};

template <class Bucket>
void live_within(const MakeBound& bound) {
  live({.outcomes = {"granted", "reserved", "given back", "given back ahead", "set back"},
        .lives = 2'000,
        .redis_lives = 200,
        .steps = 36,
        .patient_in = 0},
       [&](Life& life) { return std::make_unique<BucketBounds<Bucket>>(life, bound); });
}

}  // namespace

TEST_CASE("no interval of a token bucket holds more than its burst and what its rate brings",
          "[bounds][token_bucket]") {
  live_within<TokenBucket>(burst_and_rate);
}

TEST_CASE("no interval of a shared token bucket holds more than its quotas allow",
          "[bounds][shared_token_bucket]") {
  live_within<SharedTokenBucket>(burst_and_rate);
}
