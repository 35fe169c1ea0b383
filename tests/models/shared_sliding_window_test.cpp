// The model of the shared sliding window: the list of all permits under the rate that is set and
// the windows that earlier rates left, while two clients ask and change it.
// Threading: single-threaded.
#include "sluice/limiters/shared_sliding_window.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include "sluice/rules/sliding_window.hpp"
#include "src/testing/grants.hpp"
#include "tests/models/driver.hpp"
#include "tests/models/window_log.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;

namespace {

using Rule = SharedSlidingWindowRule;

/// At most so many permits in any interval of the span: a rate, or a window that an update keeps
/// beside it.
struct Limit {
  Word permits = 0;
  Word span = 0;
  Word until = word_limit;

  /// Whatever keeps to this keeps to the other.
  [[nodiscard]] bool implies(const Limit& other) const {
    return permits <= other.permits && span >= other.span && until >= other.until;
  }
};

/// The definition: the rate, and the windows that are kept beside it.
class Limits {
 public:
  /// False if it is left open which of the windows that end at once had to go.
  bool change(const Limit& next, Word now, bool keeps) {
    std::vector<Limit> old = std::exchange(kept_, {});
    std::erase_if(old, [&](const Limit& window) { return window.until <= now; });
    old.push_back(std::exchange(rate_, next));
    is_full_ = is_full_ && keeps;
    if (!keeps) return true;
    for (const Limit& window : old) keep(window, now);
    drop_needless();
    std::ranges::sort(kept_, std::greater<>(), &Limit::until);
    if (kept_.size() <= Rule::max_kept) return true;
    const bool is_clear = kept_[Rule::max_kept - 1].until != kept_[Rule::max_kept].until;
    kept_.resize(Rule::max_kept);
    is_full_ = true;
    return is_clear;
  }

  [[nodiscard]] const Limit& rate() const { return rate_; }
  /// Updates followed so fast that a window had to go, and with it what it had promised.
  [[nodiscard]] bool is_full() const { return is_full_; }
  /// What is asked under: the rate first.
  [[nodiscard]] std::vector<Limit> at(Word now) const {
    std::vector<Limit> limits{rate_};
    std::ranges::copy_if(kept_, std::back_inserter(limits),
                         [&](const Limit& window) { return window.until > now; });
    return limits;
  }

 private:
  /// The old rate beside the new one, for as long as that is the stricter of the two.
  void keep(Limit window, Word now) {
    if (window.permits <= rate_.permits || window.span <= rate_.span) return;
    Word parts = 1;  // of the new interval, until the new rate admits as much
    while (parts * rate_.permits < window.permits) ++parts;
    window.span = std::min(window.span, parts * rate_.span);
    while (rate_.span * (parts - 1) >= window.span) --parts;
    window.permits = std::max(window.permits, parts * rate_.permits);
    window.until = std::min(window.until, now + window.span + Rule::max_reserved);
    kept_.push_back(window);
  }
  /// Takes out what another one that stays says as well.
  void drop_needless() {
    for (std::size_t i = kept_.size(); i-- > 0;) {
      for (std::size_t j = 0; j < kept_.size(); ++j) {
        if (i == j || !kept_[j].implies(kept_[i])) continue;
        kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
        break;
      }
    }
  }

  Limit rate_;
  std::vector<Limit> kept_;
  bool is_full_ = false;
};

constexpr auto key = "t";

class SharedWindowModel final : public Model {
 public:
  explicit SharedWindowModel(Life& life)
      : life_(life),
        clients_{{{life.store, life.name}, {life.store, life.name}}},
        most_rate_(life.random.between(1, 30)),
        longest_(life.random.one_in(2) ? 80 : life.random.between(10, 100'000)),
        most_cost_(life.random.between(1, std::min(most_rate_, Word{5}))),
        changes_(!life.patient || life.random.one_in(2)),
        charges_(life.random.one_in(2)) {
    std::error_code error;
    REQUIRE_FALSE(clients_[1].try_acquire(key, 1, error).allowed);
    REQUIRE(error == Errc::not_configured);
    configure(SpentUnits::forgotten);
  }

  std::vector<Verb> verbs() override {
    return {{"acquire", 10, [this] { ask(draw_cost(), 0); }},
            {"reserve", 4, [this] { ask(draw_cost(), life_.random.between(0, 2 * longest_)); }},
            {"peek", 3, [this] { peek(); }, true},
            {"configure", 2,
             [this] {
               if (changes_) configure(SpentUnits::kept);
             },
             true},
            {"begin anew", 1, [this] { begin_anew(); }},
            {"cancel", 1, [this] { cancel(); }},
            {"refund", 1, [this] { refund(); }},
            {"settle", 1, [this] { settle(); }},
            {"block", 1, [this] { block(); }},
            {"reward", 1, [this] { reward(); }},
            {"outlast", 1, [this] { outlast(); }}};
  }
  Moves moves() const override { return {Span{longest_ / 15 + 1}, Span{longest_}}; }
  Callers callers() const override {
    const Limit& rate = limits_.rate();
    return {most_cost_, Span{rate.span * 6 * most_cost_ / rate.permits}};
  }
  Decision ask(Word cost) override { return ask(cost, 0); }

  /// Every interval between two permits, but for what was rewarded.
  void judge(const History& history) override {
    std::vector<Permit>& permits = log_.entries;
    std::ranges::stable_sort(permits, {}, &Permit::time);
    for (auto first = permits.begin(); first != permits.end(); ++first) {
      Permit all = *first;  // those of the interval: decided first, under the largest rate
      Word sum = 0;
      for (auto last = first; last != permits.end(); ++last) {
        const Word length = last->time - first->time + 1;
        if (length > longest_) break;
        all = {last->time, std::min(all.decided, last->decided), std::max(all.rate, last->rate)};
        sum += last->own;
        if (sum > rewarded_) judge(sum - rewarded_, length, all);
      }
    }
    if (!life_.patient) return;
    if (!limits_.is_full()) life_.keep(check_changing_window(history, rates_));
    life_.keep(check_remaining(history, most_rate_));
    if (changes_ || most_cost_ > 1) return;
    const Limit& rate = limits_.rate();
    life_.keep(check_work_conserving(history, {rate.permits, rate.permits, Span{rate.span}}));
  }

 private:
  /// Those of one grant.
  struct Permit {
    Word time;
    Word decided;
    Word rate;  // in force then
    Word units = 0;
    Word own = 0;  // without what was charged beyond the rate
    Word number = 0;
  };

  /// An interval as short as any that was in force holds the largest rate at most. One as long as a
  /// rate in force, or when something in it was promised, holds what the largest of them admits.
  /// Over one change, any holds less than a new rate more than that.
  void judge(Word sum, Word length, const Permit& all) const {
    const auto fail = [&](const char* what) {
      FAIL(sum << " permits in " << length << " us until " << all.time << ": " << what);
    };
    const auto admits = [&](const WindowFrom& rate) {
      return rate.limit * ((length + rate.length.count() - 1) / rate.length.count());
    };
    std::vector<WindowFrom> in_force;
    Word shortest = word_limit;
    for (std::size_t i = 0; i < rates_.size(); ++i) {
      const bool is_over = i + 1 < rates_.size() && to_word(rates_[i + 1].from) < all.decided;
      shortest = std::min(shortest, rates_[i].length.count());
      if (!is_over && to_word(rates_[i].from) <= all.time) in_force.push_back(rates_[i]);
    }
    const Word most = admits(std::ranges::max(in_force, {}, admits));
    if (length <= shortest && sum > all.rate) fail("more than the largest rate");
    if (limits_.is_full()) return;
    const auto is_long = [&](const WindowFrom& rate) { return rate.length.count() >= length; };
    if (in_force.size() <= 2) {
      if (std::ranges::any_of(in_force, is_long) && sum >= most + in_force.back().limit) {
        fail("a rate more than the larger admits");
      }
    }
    for (const WindowFrom& rate : in_force) {
      const Word admitted = testing::detail::most_within(rates_, to_time(all.decided),
                                                         to_time(all.time), rate.length);
      if (length <= rate.length.count() && sum > admitted) fail("more than a rate in force admits");
    }
  }

  [[nodiscard]] const SharedSlidingWindow& client() { return clients_[life_.random.below(2)]; }
  [[nodiscard]] Word now() const { return life_.tick(); }
  Word draw_cost() { return life_.random.between(1, std::min(limits_.rate().permits, Word{4})); }

  /// In a longer interval, what the log has lost counts as if the rate had been used up.
  [[nodiscard]] bool is_exact() const {
    return is_exact_ && !(longest() > span_ && log_.has_lost());
  }
  /// The longest interval that is looked at.
  [[nodiscard]] Word longest() const {
    return std::ranges::max(limits_.at(now()), {}, &Limit::span).span;
  }
  [[nodiscard]] Word needed() const {
    return std::ranges::max(limits_.at(now()), {}, &Limit::permits).permits;
  }
  /// As the store counts them, under `longest()`; to be called with each change of the log.
  void wrote() {
    span_ = longest();
    log_.open(needed());
  }
  void add(Word time, Word units) {
    wrote();
    until_ = std::max(until_, time + span_ + SlidingWindowRule::max_ahead);
    log_.add({time, now(), limits_.rate().permits, units, units}, now() - span_, needed());
  }
  /// The grant, if it is in an interval that is looked at.
  [[nodiscard]] Permit* permit_of(const Reservation& grant) {
    Permit* const found = log_.find(grant.state[1], grant.state[2]);
    return found != nullptr && found->time > now() - longest() ? found : nullptr;
  }
  Word take(const Reservation& grant, Word most) {
    Permit* const permit = permit_of(grant);
    if (permit == nullptr) return 0;
    if (permit != &log_.entries.back()) life_.saw("given back behind others");
    const Word units = log_.take(*permit, most);
    if (units > 0) log_.trim();
    return units;
  }
  /// A minute after its permits have left the longest interval, a log is as good as none.
  void forget() {
    if (!log_.is_open() || now() < std::max(until_, block_)) return;
    life_.begin_history();
    begin_log();
    is_exact_ = knows_kept_;
    life_.saw("forgotten");
  }
  void begin_log() {
    log_ = {};
    span_ = until_ = 0;
  }

  /// The first instant, behind all that was granted, at which each of the limits has room.
  [[nodiscard]] Word fits_under(std::span<const Limit> limits, Word cost) const {
    Word at = std::max(now(), log_.newest());
    for (const Limit& limit : limits) {
      const auto lacks = [&] { return log_.held(at - limit.span) + cost > limit.permits; };
      for (auto permit = log_.entries.begin(); permit != log_.entries.end() && lacks(); ++permit) {
        at = std::max(at, permit->time + limit.span);
      }
    }
    return at;
  }
  [[nodiscard]] Word remaining(const std::vector<Limit>& limits) const {
    if (std::max(log_.newest(), block_) > now()) return 0;
    Word least = word_limit;
    for (const Limit& limit : limits) {
      least = std::min(least, std::max<Word>(0, limit.permits - log_.held(now() - limit.span)));
    }
    return least;
  }

  Decision ask(Word cost, Word max_wait) {
    forget();
    life_.tell("permits", cost);
    if (max_wait > 0) life_.tell("max_wait", max_wait);
    const std::vector<Limit> limits = limits_.at(now());
    is_exact_ = is_exact();
    const Word by_rate = fits_under({&limits_.rate(), 1}, cost);
    const Word by_limits = fits_under(limits, cost);
    const Word fits = std::max(by_limits, block_);
    const Reservation d = client().reserve(key, cost, Span{max_wait});
    life_.note(d, cost);
    if (!is_exact_) {  // never sooner
      if (knows_kept_) REQUIRE(d.retry_after.count() + (d.allowed ? 0 : max_wait) >= fits - now());
      life_.saw("asked of a log that has grown");
    }
    if (d.allowed && cost > 0) {
      add(to_word(d.ready_at()), cost);
      if (is_exact_) REQUIRE(d.state[1] == log_.entries.back().number);
      log_.entries.back().number = d.state[1];
      REQUIRE(d.state[2] == log_.entries.back().time);
      if (grants_.size() == 6) grants_.erase(grants_.begin());
      grants_.push_back(d);
    }
    if (!is_exact_) return d;
    const bool allowed = fits <= now() + max_wait;
    life_.require(d, {.allowed = allowed,
                      .remaining = remaining(limits),
                      .retry_after = fits - now() - (allowed ? 0 : max_wait)});
    if (by_limits > by_rate) life_.saw("decided by a kept window");
    if (allowed || log_.newest() > now()) return d;
    REQUIRE((d.part == 0) == (by_rate == fits));
    REQUIRE((d.part == limits.size()) == (by_limits < fits));
    if (by_limits < fits) life_.saw("refused by the block");
    return d;
  }

  void peek() {
    forget();
    const Word cost = draw_cost();
    life_.tell("permits", cost);
    const std::vector<Limit> limits = limits_.at(now());
    const Word fits = std::max(fits_under(limits, cost), block_);
    const Decision d = client().peek(key, cost);
    const Word there = client().peek(key).remaining;
    if (knows_kept_) REQUIRE(d.retry_after.count() >= fits - now());
    if (!is_exact()) return;
    life_.require(
        d, {.allowed = fits <= now(), .remaining = remaining(limits), .retry_after = fits - now()});
    REQUIRE(there == d.remaining);
  }

  /// Often a little smaller and shorter than before, so that windows gather.
  Limit draw_rate() {
    const Word least = life_.patient ? most_cost_ : 1;
    const Limit& rate = limits_.rate();
    if (rate.permits > least && rate.span > 1 && !life_.random.one_in(3)) {
      return {life_.random.between(std::max(least, rate.permits * 2 / 3), rate.permits - 1),
              life_.random.between(std::max(Word{1}, rate.span / 2), rate.span - 1)};
    }
    return {life_.random.one_in(3) ? most_rate_ : life_.random.between(least, most_rate_),
            life_.random.between(1, longest_)};
  }

  void configure(SpentUnits spent) {
    Limit next = rates_.empty() || !life_.random.one_in(5) ? draw_rate() : limits_.rate();
    // What was charged beyond a rate is none of what a longer interval assumes.
    if (charges_ && !rates_.empty()) next.span = std::min(next.span, limits_.rate().span);
    life_.tell("rate", next.permits);
    life_.tell("interval", next.span);
    const bool keeps = spent == SpentUnits::kept;
    REQUIRE(clients_[0].try_configure(key, RateType::overall, 1, Span{1}).changed ==
            rates_.empty());
    const bool is_same = keeps && !rates_.empty() && next.permits == limits_.rate().permits &&
                         next.span == limits_.rate().span;
    const auto done =
        client().configure(key, RateType::overall, next.permits, Span{next.span}, spent);
    REQUIRE(done.changed != is_same);
    if (is_same) return life_.saw("the same again");
    const bool is_clear = limits_.change(next, now(), keeps);
    is_exact_ = is_exact_ && is_clear;
    knows_kept_ = (knows_kept_ || !keeps) && is_clear;
    if (!keeps) rates_.clear();
    rates_.push_back({life_.now(), Span{next.span}, next.permits});
    const auto setting = client().configuration(key);
    REQUIRE((setting && setting->rate == next.permits && setting->interval == Span{next.span}));
    if (knows_kept_) require_kept();
    life_.changed();
  }

  /// The windows that are kept in the store.
  void require_kept() {
    std::array<Word, Rule::read_output> told{};
    std::error_code error;
    const Step read{&shared_sliding_window_config, Key{key, life_.name}, {0, Rule::max_keep_alive}};
    REQUIRE(decide(life_.store, read, error, {}, told).allowed);
    std::vector<std::pair<Word, Word>> stored;
    for (std::size_t i = 5; i + 1 < told.size(); i += 2) {
      if (told[i] > 0) stored.emplace_back(told[i], told[i + 1]);
    }
    std::vector<std::pair<Word, Word>> kept;
    Word first_end = word_limit;
    for (const Limit& limit : limits_.at(now())) {
      kept.emplace_back(limit.permits, limit.span);
      first_end = std::min(first_end, limit.until);
    }
    kept.erase(kept.begin());
    std::ranges::sort(stored);
    std::ranges::sort(kept);
    REQUIRE(stored == kept);
    REQUIRE(told.back() == (kept.empty() ? 0 : first_end));
    if (kept.size() == Rule::max_kept) life_.saw("as many windows as are kept");
  }

  /// Nothing is spent: of a log that nobody asks any more, nothing comes back.
  void begin_anew() {
    if (!life_.random.one_in(3)) return;
    life_.begin_history();
    begin_log();
    configure(SpentUnits::forgotten);
    for (Reservation& grant : grants_) {
      REQUIRE(client().cancel(key, grant) == 0);
      REQUIRE(grant.granted == 0);
    }
    grants_.clear();
    block_ = rewarded_ = 0;
    is_exact_ = true;
    REQUIRE(client().peek(key).remaining == limits_.rate().permits);
  }

  void note_back(Word back, Word predicted) {
    if (is_exact_) REQUIRE(back == predicted);
    life_.saw(back > 0 ? "given back" : "nothing given back");
    life_.changed();
  }
  /// One of the last grants, or none.
  Reservation* draw_grant() {
    forget();
    is_exact_ = is_exact();
    return grants_.empty() ? nullptr : &grants_[life_.random.below(grants_.size())];
  }
  void cancel() {
    Reservation* const grant = draw_grant();
    if (grant == nullptr) return;
    const bool ahead = grant->ready_at() > life_.now();
    const Word predicted = take(*grant, grant->granted);
    note_back(client().cancel(key, *grant), predicted);
    if (predicted > 0 && ahead) life_.saw("cancelled ahead");
  }
  void refund() {
    Reservation* const grant = draw_grant();
    if (grant == nullptr) return;
    const Word amount = life_.random.between(0, grant->granted);
    const Word predicted = take(*grant, amount);
    note_back(client().refund(key, *grant, amount), predicted);
  }

  /// A grant turns out to have cost less, or more.
  void settle() {
    Reservation* const grant = draw_grant();
    if (grant == nullptr) return;
    const Word more = life_.random.between(-grant->granted, charges_ ? limits_.rate().permits : 0);
    life_.tell("more", more);
    const Word due = grant->granted + grant->settled + more;
    if (more <= 0) {
      const Word predicted = take(*grant, -more);
      const Settlement done = client().settle(key, *grant, due);
      REQUIRE(done.charged == 0);
      return note_back(done.refunded, predicted);
    }
    Permit* const permit = permit_of(*grant);
    const Settlement done = client().settle(key, *grant, due);
    REQUIRE(done.refunded == 0);
    if (is_exact_) REQUIRE(done.charged == (permit == nullptr ? 0 : more));
    if (permit != nullptr) permit->units += done.charged;
    life_.saw(done.charged > 0 ? "charged" : "nothing charged");
    life_.changed();
  }

  void block() {
    forget();
    const Word span = life_.random.between(0, longest_);
    life_.tell("span", span);
    is_exact_ = is_exact();
    const Decision d = client().block(key, Span{span});
    REQUIRE(d.allowed);
    if (span > 0) {
      if (now() + span > block_) wrote();
      block_ = std::max(block_, now() + span);
      REQUIRE(d.remaining == 0);
    }
    life_.due(to_time(block_));
  }

  /// Whose permits they were is not known, so what was held cannot be given back any more.
  void reward() {
    forget();
    const Word permits = life_.random.between(0, 6);
    life_.tell("permits", permits);
    is_exact_ = is_exact();
    if (!is_exact_) knows_kept_ = false;  // it takes what stands for units that the log has lost
    rewarded_ += log_.reward(permits, now() - longest());
    const Decision d = client().reward(key, permits);
    REQUIRE(d.allowed);
    if (is_exact_) REQUIRE(d.remaining == remaining(limits_.at(now())));
    grants_.clear();
    life_.changed();
  }

  /// Whatever was granted has left all windows.
  void outlast() {
    if (life_.random.one_in(3)) life_.clock.advance(Span{Rule::max_reserved});
  }

  Life& life_;
  std::array<SharedSlidingWindow, 2> clients_;
  Word most_rate_;
  Word longest_;
  Word most_cost_;  // of patient callers
  bool changes_;
  bool charges_;  // beyond the rate; then no interval becomes longer
  Limits limits_;
  std::vector<WindowFrom> rates_;
  WindowLog<Permit> log_;
  std::vector<Reservation> grants_;  // the last ones
  Word block_ = 0;                   // its end
  Word rewarded_ = 0;
  Word span_ = 0;   // the longest interval that was looked at, when it last wrote
  Word until_ = 0;  // when the log is forgotten
  bool knows_kept_ = true;
  bool is_exact_ = true;
};

}  // namespace

TEST_CASE("shared sliding windows answer by all permits, and keep the larger rate over a change",
          "[model][shared_sliding_window][C-050][C-056][S2][S5][L1][L2]") {
  live<SharedWindowModel>(
      {.outcomes = {"admitted", "reserved", "refused", "refused by the block",
                    "decided by a kept window", "as many windows as are kept",
                    "asked of a log that has grown", "the same again", "given back",
                    "nothing given back", "given back behind others", "cancelled ahead", "charged",
                    "nothing charged", "forgotten"}});
}
