// The model of the shared token bucket: level and truly spent tokens by their formulas in 128-bit
// numbers, while the quota changes; and a list of what was granted and when, over which every
// interval is judged by the quotas that were in force.
// Threading: one thread.
#include "sluice/limiters/shared_token_bucket.hpp"

#include <algorithm>

#include "sluice/rules/shared_token_bucket_reserve.hpp"
#include "src/testing/generators.hpp"
#include "tests/models/bucket_model.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;
using sluice::testing::detail::Wide;

namespace {

constexpr Word longest = SharedTokenBucketReserve::longest;

/// Units spent at an instant, by the level and truly.
struct Spent {
  Wide level = 0;
  Wide truly = 0;
  Word stamp = 0;
};

class SharedTokenBucketModel final : public BucketModel<SharedTokenBucket, Spent> {
 public:
  explicit SharedTokenBucketModel(Life& life)
      : BucketModel(life),
        most_cost_(random_.between(1, 10)),
        patience_(random_.one_in(2) ? 0 : random_.between(0, 5'000'000)),
        changes_(random_.one_in(2)),
        keep_alive_(life.patient || !random_.one_in(3)
                        ? SharedTokenBucket::default_keep_alive
                        : Span{random_.between(60'000'000, 600'000'000)}),
        bucket_(life.store, life.name, keep_alive_) {
    if (life.patient || !random_.one_in(4)) configure();
  }

  std::vector<Verb> verbs() override {
    return {{"configure", 8, [this] { configure_sometimes(); }, true},
            {"config", 4, [this] { config(); }, true},
            {"acquire", 32, [this] { request(draw_cost(), 0); }},
            {"peek", 12, [this] { peek(draw_cost()); }, true},
            {"reserve", 24, [this] { request(draw_cost(), draw_span()); }},
            {"refund", 20, [this] { refund(); }},
            {"settle", 12, [this] { settle(); }},
            {"penalize", 4, [this] { penalize(); }},
            {"block", 4, [this] { block(); }},
            {"reward", 4, [this] { reward(); }},
            {"reset", 1, [this] { reset(); }}};
  }
  Moves moves() const override {
    const Span full{static_cast<Word>(limit() / refill()) + 2};
    const bool is_kept = keep_alive_ == SharedTokenBucket::default_keep_alive;
    return {full / 20, is_kept ? full : keep_alive_ * 3 / 2, life_.farthest_back()};
  }
  std::optional<Time> edge() const override {
    if (!is_set()) return {};
    return to_time(stands_from());
  }
  Callers callers() const override {
    return {most_cost_, Span{period() * 3 * most_cost_ / refill()}};
  }
  Decision ask(Word cost) override { return request(cost, patience_); }

  /// The largest burst and the largest rate that were in force since the first grant in an interval
  /// was decided. A grant ahead may be 1 us late.
  void judge(const History& history) override {
    grants_.judge([this](const Outstanding::Interval& in) { return most_in(in); });
    if (!life_.patient) return;
    life_.keep(check_remaining(history, most_burst));
    if (patience_ > 0) return;
    std::vector<RateFrom> rates;
    for (const Rate& rate : rates_) {
      rates.push_back({to_time(rate.from),
                       {rate.quota.capacity(), rate.quota.refill(), Span{rate.quota.period()}}});
    }
    life_.keep(check_changing_rate(history, rates));
    if (changes_) return;
    life_.keep(check_work_conserving(history, {most_cost_, refill(), Span{period()}}));
  }

 private:
  static constexpr Word most_burst = 20;
  static constexpr Word millionth = 1'000'000;

  struct Rate {
    Word from;
    Quota quota;
  };
  /// The bucket as a request sees it: time stands still at a stamp that lies ahead.
  struct View {
    Spent spent;
    bool given_up = false;
    bool closed = false;  // nothing whole is left at a stamp ahead
  };

  [[nodiscard]] Word capacity() const {
    return rates_.empty() ? 0 : rates_.back().quota.capacity();
  }
  [[nodiscard]] Word refill() const { return rates_.empty() ? 1 : rates_.back().quota.refill(); }
  [[nodiscard]] Word period() const { return rates_.empty() ? 1 : rates_.back().quota.period(); }
  [[nodiscard]] Wide limit() const { return Wide{capacity()} * period(); }
  [[nodiscard]] static Wide ceil(Wide a, Wide b) { return (a + b - 1) / b; }
  [[nodiscard]] Word drain_time(Wide units) const {
    return static_cast<Word>(ceil(std::max<Wide>(0, units), refill()));
  }
  [[nodiscard]] Wide most_in(const Outstanding::Interval& in) const {
    Wide burst = 0;
    Wide flow = 0;
    for (std::size_t i = in.since; i < rates_.size(); ++i) {
      if (i > in.since && rates_[i].from > in.to) break;
      const Quota& one = rates_[i].quota;
      burst = std::max(burst, Wide{one.capacity()} * millionth);
      const Wide length = Wide{in.to} - in.from + 1;
      flow = std::max(flow, ceil(length * one.refill() * millionth, one.period()));
    }
    return burst + flow + in.grants;  // millionths are rounded
  }

  /// A quota that takes less than keep_alive to fill; in patient lives at most one token comes in
  /// a microsecond, so that none is lost.
  Quota draw_quota() {
    // One token that comes back in nearly all of that time: what is owed of it would outlast it.
    const bool is_brief = keep_alive_ != SharedTokenBucket::default_keep_alive;
    if (is_brief && random_.one_in(6)) return Quota::per(1, keep_alive_ - Span{1});
    const Word units = random_.between(1, life_.patient ? 1000 : 200);
    const Word slowest = life_.patient ? 100'000 : random_.one_in(2) ? 100'000 : 2'000'000;
    const Word burst = random_.between(life_.patient ? most_cost_ + 1 : 1, most_burst);
    return Quota::per(units, Span{random_.between(units, slowest)}).burst(burst);
  }
  Word draw_cost() {
    const Word most = std::max<Word>(1, capacity());
    return random_.between(0, random_.one_in(3) ? most : std::min<Word>(2, most));
  }
  Word draw_span() { return random_.between(0, random_.one_in(4) ? longest : 500'000); }

  [[nodiscard]] bool is_set() const {
    return version_ > 0 && life_.tick() < spent_.stamp + keep_alive_.count();
  }
  /// Nothing can be asked of a key without a quota, or whose quota was forgotten.
  bool is_unset(const std::error_code& error) {
    if (is_set()) {
      REQUIRE_FALSE(error);
      return false;
    }
    REQUIRE(error == Errc::not_configured);
    life_.saw(version_ > 0 ? "forgotten" : "not configured");
    return true;
  }

  [[nodiscard]] Spent drained(const Spent& spent, Word until) const {
    const Wide drain = (Wide{until} - spent.stamp) * refill();
    return {std::max<Wide>(0, spent.level - drain), std::max<Wide>(0, spent.truly - drain), until};
  }
  /// What is promised is at most a minute ahead, and the clock goes back by at most as much.
  [[nodiscard]] Word stands_from() const {
    const bool is_full = spent_.level > limit() - period();
    return spent_.stamp - (is_full ? 2 : 1) * longest;
  }
  [[nodiscard]] View view() const {
    const Word now = life_.tick();
    if (now < stands_from()) {
      return {{spent_.level, spent_.truly, now}, true};
    }
    const Spent spent = drained(spent_, std::max(now, spent_.stamp));
    return {spent, false, spent.stamp > now && spent.level > limit() - period()};
  }
  [[nodiscard]] View view(Wide most) const {
    View seen = view();
    if (seen.given_up) seen.spent.level = std::min(seen.spent.level, most);
    return seen;
  }
  /// More than the limit is an instant ahead at which it is covered, and no whole token at it.
  [[nodiscard]] Spent place(Wide level, Word at) const {
    if (level <= limit()) return {level, 0, at};
    const Word stamp = at + drain_time(level - limit());
    return {std::max(limit() - period() + 1, level - (Wide{stamp} - at) * refill()), 0, stamp};
  }
  [[nodiscard]] Word wait(const View& seen, Wide want) const {
    if (want <= limit() && !seen.closed) return 0;
    return seen.spent.stamp - life_.tick() + drain_time(want - limit());
  }
  [[nodiscard]] Predicted predict(const Spent& spent, bool allowed = true,
                                  Word retry_after = 0) const {
    return {.allowed = allowed,
            .remaining = static_cast<Word>(std::max<Wide>(0, limit() - spent.level) / period()),
            .retry_after = retry_after,
            .reset_after = spent.stamp - life_.tick() + drain_time(spent.level)};
  }
  void require(const Decision& decision, const Predicted& predicted) {
    life_.require(decision, predicted);
    REQUIRE(decision.limit == capacity());
  }
  void write(const View& seen, const Spent& next) {
    if (seen.given_up) {
      life_.saw("given up");
      forget();
    }
    spent_ = next;
    life_.wrote();
  }

  void configure_sometimes() {
    if (life_.patient && (!changes_ || !random_.one_in(4))) return;
    configure();
    life_.changed();
  }
  void configure() {
    const Quota quota = rates_.empty() || !random_.one_in(4) ? draw_quota() : rates_.back().quota;
    const auto how = static_cast<Inheritance>(random_.between(0, 3));
    const bool if_absent = random_.one_in(4);
    life_.tell("burst", quota.capacity());
    life_.tell("refill", quota.refill());
    life_.tell("period", quota.period());
    life_.tell("inheritance", static_cast<Word>(how));
    const Word now = life_.tick();
    const auto done =
        if_absent ? bucket_.try_configure("k", quota) : bucket_.configure("k", quota, how);
    const bool is_new = !is_set();
    const bool is_same = !is_new && how != Inheritance::reset && quota == rates_.back().quota;
    REQUIRE(done.changed == (is_new || (!if_absent && !is_same)));
    if (!done.changed) {
      REQUIRE(done.version == version_);
      if (!if_absent && !view().given_up) write(view(), view().spent);
      return life_.saw(if_absent ? "left alone" : "the same again");
    }
    if (is_new) {
      held_.clear();  // versions begin anew
      forget();
    }
    if (now < moved_until_) forget();
    const View seen = view();
    const Spent next = is_new ? Spent{0, 0, now} : inherited(seen, quota, how);
    version_ = is_new ? 1 : version_ + 1;
    REQUIRE(done.version == version_);
    rates_.push_back({now, quota});
    is_new ? write({}, next) : write(seen, next);
  }
  /// Fractions of a token carry over, rounded against the caller.
  Spent inherited(const View& seen, const Quota& quota, Inheritance how) {
    const auto converted = [&](Wide units) { return ceil(units * quota.period(), period()); };
    const Wide after = Wide{quota.capacity()} * quota.period();
    const Wide free = limit() - seen.spent.level;
    const Wide kept = free < 0 ? -converted(-free) : free * quota.period() / period();
    Wide next = after;
    if (how == Inheritance::as_is) next = kept;
    if (how == Inheritance::proportional) next = free < 0 ? kept : free * after / limit();
    if (how == Inheritance::additive) next = after - converted(seen.spent.level);
    const Wide most =
        Wide{std::max(capacity(), quota.capacity())} * quota.period() - converted(seen.spent.truly);
    if (seen.spent.stamp > life_.tick() && free < period()) {
      next = std::min<Wide>(next, 0);
      life_.saw("behind what lies ahead");
    }
    if (next > most && most < after) life_.saw("as the bound permits");
    const Wide level = after - std::min({next, after, most});
    if (level > after) life_.saw("a debt");
    const Wide lasting = (Wide{keep_alive_.count()} - 1) * quota.refill();
    return {std::min(level, lasting), converted(seen.spent.truly), seen.spent.stamp};
  }
  void config() {
    std::error_code error;
    const auto setting = bucket_.configuration("k", error);
    REQUIRE_FALSE(error);
    REQUIRE(setting.has_value() == is_set());
    if (!setting) return;
    REQUIRE(setting->version == version_);
    REQUIRE(setting->quota == rates_.back().quota);
  }

  Decision request(Word cost, Word max_wait) {
    life_.tell("cost", cost);
    life_.tell("max_wait", max_wait);
    std::error_code error;
    Reservation r;
    if (max_wait == 0) {
      r = Reservation(bucket_.try_acquire("k", cost, error), 0);
    } else if (random_.one_in(4)) {
      r = bucket_.borrow("k", cost, Span{max_wait}, error);
    } else {
      r = bucket_.reserve("k", cost, Span{max_wait}, error);
    }
    if (is_unset(error)) return r;
    life_.note(r, cost);
    const Wide units = Wide{cost} * period();
    const View seen = view(limit() - units);
    const Word at = seen.spent.stamp;
    const Word due = wait(seen, seen.spent.level + units);
    if (due > max_wait) {
      require(r, predict(seen.spent, false, due - max_wait));
      return r;
    }
    Spent next = place(seen.spent.level + units, at);
    next.truly = drained(seen.spent, next.stamp).truly + units;
    require(r, predict(next, true, due));
    if (cost == 0) return r;
    write(seen, next);
    const std::size_t id =
        grants_.add(std::max(at, life_.tick() + due), Wide{cost} * millionth, 0, rates_.size() - 1);
    if (max_wait > 0) {
      REQUIRE(r.granted == cost);
      held_.push_back({id, version_, seen.spent, r});
    }
    return r;
  }
  void peek(Word cost) {
    life_.tell("cost", cost);
    std::error_code error;
    const Decision d = bucket_.peek("k", cost, error);
    if (is_unset(error)) return;
    const Wide units = Wide{cost} * period();
    const View seen = view(limit() - units);
    const Word due = wait(seen, seen.spent.level + units);
    require(d, predict(seen.spent, due == 0, due));
  }

  /// Of a grant ahead that is the last, all: what it found is put back, and charged with the rest.
  /// Else what had not drained of the grant when something was charged last, had it begun to at its
  /// own time; nothing, if something was promised behind it, or the quota was set since. Answers
  /// whole tokens.
  Word give_back(Held& held, Word tokens) override {
    const View seen = view();
    const Word now = life_.tick();
    const Wide amount = Wide{tokens} * period();
    const Wide cost = Wide{held.reservation.granted} * period();
    expected_at_ = to_word(held.reservation.ready_at());
    if (held.of != version_ || seen.given_up) {
      life_.saw("of another quota");
      return 0;
    }
    const auto after = [&](Wide units) {
      return units == 0 ? held.before : place(held.before.level + units, held.before.stamp);
    };
    const Spent whole = after(cost);
    const Spent rest = after(cost - amount);
    const bool is_last = seen.closed && spent_.level == whole.level && spent_.stamp == whole.stamp;
    Wide given = 0;
    if (is_last) {
      given = amount;
      const Word due = std::max({now, rest.stamp, to_word(held.reservation.at)});
      expected_at_ = std::min(expected_at_, due);
      // The rest is truly spent when its caller hears of it.
      Spent next = drained(rest, std::max(now, rest.stamp));
      next.truly = drained(held.before, next.stamp).truly + cost - amount;
      if (given > 0) write(seen, next);
      if (given > 0) life_.saw("given back ahead");
    } else if (!seen.closed && spent_.stamp >= whole.stamp) {
      const Wide age = Wide{spent_.stamp} - whole.stamp;
      given = std::max<Wide>(0, std::min({amount, cost - age * refill(), seen.spent.level}));
      const Wide truly = std::max<Wide>(0, spent_.truly - given);
      if (given > 0) write(seen, {spent_.level - given, truly, spent_.stamp});
      if (given > 0) life_.saw(age == 0 ? "given back at once" : "given back below others");
    } else if (seen.closed) {
      life_.saw("nothing back before others who wait");
    }
    if (given == 0) return 0;
    // A reward had given it already.
    if (!grants_.give_back(held.id, given * millionth / period())) forget();
    if (is_last) grants_.bring_nearer(held.id, std::max(now, rest.stamp));
    return static_cast<Word>(given / period());
  }
  const SharedTokenBucket* bucket_of(const Held&) override { return is_set() ? &bucket_ : nullptr; }
  void charge_more(Word amount) override { charge(amount); }
  /// Whatever is there, up to the longest debt; of what is at once and as it drains, each unit is
  /// truly spent when it would have been granted.
  Spent charge(Word amount) {
    const View seen = view(limit());
    const Spent& spent = seen.spent;
    const Wide units = Wide{amount} * period();
    const Word end = life_.tick() + longest;
    Spent next = place(spent.level + units, spent.stamp);
    if (next.stamp > end) {
      life_.saw("the longest debt");
      const bool stays = place(spent.level, spent.stamp).stamp >= end;
      next = stays ? spent : Spent{limit(), 0, end};
    }
    const Wide over = std::max<Wide>(0, spent.level - limit()) / refill();
    const Wide fits = std::min(units, std::max<Wide>(0, limit() - spent.level));
    const Word until =
        spent.stamp + static_cast<Word>(std::min<Wide>(over, next.stamp - spent.stamp));
    next.truly = std::max(drained(spent, until).truly + fits,
                          std::min(limit(), drained(spent, next.stamp).truly + units));
    const Wide more = next.level - spent.level + Wide{next.stamp - spent.stamp} * refill();
    charged_ = static_cast<Word>(std::min<Wide>(amount, more / period()));
    write(seen, next);
    return next;
  }
  /// Up to twice the longest.
  Word draw_debt() override { return random_.between(0, 2 * longest * refill() / period()); }
  void penalize() {
    if (!is_set()) return;
    const Word amount = random_.one_in(3) ? draw_debt() : random_.between(0, 10);
    life_.tell("amount", amount);
    const Decision d = bucket_.penalize("k", amount);
    require(d, predict(charge(amount)));
  }

  /// Nothing whole until the last microsecond of the block; what lies ahead for longer becomes a
  /// unit more.
  void block() {
    const Word span = random_.one_in(8) ? 0 : draw_span();
    life_.tell("span", span);
    std::error_code error;
    const Decision d = bucket_.block("k", Span{span}, error);
    if (is_unset(error)) return;
    const View seen = view(limit());
    if (span == 0) {
      require(d, predict(seen.spent));
      return write(seen, seen.spent);
    }
    const Word now = life_.tick();
    const Word last = now + span - 1;
    Spent next = drained(seen.spent, std::max(seen.spent.stamp, last));
    Wide least = limit() - period() + 1;
    if (last >= seen.spent.stamp) least = std::min(limit(), least - 1 + refill());
    const Wide truly = next.truly;
    if (next.level < least) {
      next.level = least;
    } else if (next.level == limit() && next.stamp < now + longest) {
      next = place(limit() + 1, next.stamp);
    } else {
      next.level += 1;
    }
    next.truly =
        std::max<Wide>(0, truly - (Wide{next.stamp} - std::max(seen.spent.stamp, last)) * refill());
    require(d, predict(next));
    write(seen, next);
  }

  /// What is given brings the grants ahead nearer. A debt beyond the limit becomes less, where it
  /// is.
  void reward() {
    const Word amount = draw_cost();
    life_.tell("amount", amount);
    std::error_code error;
    const Decision d = bucket_.reward("k", amount, error);
    if (is_unset(error)) return;
    const View seen = view(limit());
    const Word now = life_.tick();
    const Spent& spent = seen.spent;
    const Word from = seen.closed ? now : spent.stamp;
    const Wide left = spent.level + (Wide{spent.stamp} - from) * refill();
    const Wide given = std::min(Wide{amount} * period(), left);
    Spent next = spent;
    if (given > 0) {
      next.level -= given;
      if (next.level < limit()) next = place(left - given, from);
      next.truly =
          std::max<Wide>(0, spent.truly - given) + (Wide{spent.stamp} - next.stamp) * refill();
    }
    require(d, predict(next));
    write(seen, next);
    forget();
    for (const Held& held : held_) {
      moved_until_ = std::max(moved_until_, to_word(held.reservation.ready_at()));
    }
    moved_until_ = std::max(moved_until_, next.stamp);
  }
  void reset() {
    life_.begin_history();
    std::error_code error;
    bucket_.reset("k", error);
    if (is_unset(error)) return;
    write({}, {0, 0, life_.tick()});
    held_.clear();
    forget();
  }
  Word most_cost_;  // of patient callers
  Word patience_;
  bool changes_;
  Span keep_alive_;
  SharedTokenBucket bucket_;
  Word version_ = 0;
  std::vector<Rate> rates_;
  Spent spent_;
  Word moved_until_ = 0;  // what was promised before a reward lies ahead until then
};

}  // namespace

TEST_CASE("a shared token bucket answers by its formulas, and no interval exceeds its quotas",
          "[model][shared_token_bucket][S1][S5][L1][L2]") {
  live<SharedTokenBucketModel>(
      {.outcomes = {"admitted", "reserved", "refused", "not configured", "forgotten", "left alone",
                    "the same again", "behind what lies ahead", "as the bound permits", "a debt",
                    "given back at once", "given back ahead", "given back below others",
                    "nothing back before others who wait", "of another quota", "the longest debt",
                    "charged in part", "given up"},
       .redis_lives = 8});
}
