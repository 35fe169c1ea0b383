// The model of the learned rate: accepted units as a log of events, hints by halving, and growth
// and falls by the words of the rule in wide integers. Limiters of several bounds share the key.
// Threading: single-threaded.
#include "sluice/limiters/learned_rate.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "tests/models/driver.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;

namespace {

__extension__ typedef __int128 Wide;

constexpr Word minute = 60'000'000;
constexpr Word second = 1'000'000;
constexpr Word unit = 1'000'000;  // of rates

struct Bounds {
  Word initial;
  Word least;
  Word most;
};

/// Units that were accepted at a time, or were not after all.
struct Event {
  Word at;
  Word units;
};

/// What is known of a key; all of it stands until something is written.
struct Known {
  bool is_new = true;
  Word stamp = 0;
  Word rate = 0;
  Word peak = 0;
  Word empty = 0;  // when nothing was left
  Word grown = 0;  // time up to here has made it grow
  Word fell = -1;
  Word first = -1;       // the first grant behind the fall
  Word begin = 0;        // of a minute that is counted
  bool follows = false;  // ... and so was the one before
  std::vector<Event> accepted{};
  Word ceiling = 0;
  Word told_until = 0;
  Word left = 0;
  Word left_until = 0;
  Word closed = 0;

  [[nodiscard]] Word sum(Word from, Word to) const {
    Word units = 0;
    for (const Event& each : accepted) units += each.at >= from && each.at < to ? each.units : 0;
    return units;
  }
};

Word need_of(Word cost, Word rate) {
  const Wide span = Wide{cost} * second * unit;
  return static_cast<Word>(span / rate + (span % rate != 0));
}
Word kept_for(Word need) { return std::max<Word>(2 * need, second / 10); }

class RateModel final : public Model {
 public:
  explicit RateModel(Life& life) : life_(life) {
    Random& random = life.random;
    forget_ = random.one_in(2) ? minute : random.between(minute, 10 * minute);
    for (std::size_t count = life.patient ? 1 : 1 + random.below(2); count > 0; --count) {
      std::array<Word, 3> rates{random.between(1, 40), random.between(1, 40),
                                random.between(1, 90)};
      std::sort(rates.begin(), rates.end());
      bounds_.push_back({rates[1] * unit, rates[0] * unit, rates[2] * unit});
      limiters_.emplace_back(life.store, life.name,
                             LearnedRateOptions{.initial = Quota::per_second(rates[1]),
                                                .least = Quota::per_second(rates[0]),
                                                .most = Quota::per_second(rates[2]),
                                                .forget = Span{forget_}});
    }
  }

  std::vector<Verb> verbs() override {
    return {{"acquire", 12, [this] { ask(true); }}, {"peek", 2, [this] { ask(false); }, true},
            {"limited", 5, [this] { limited(); }},  {"told", 2, [this] { told(); }},
            {"refund", 2, [this] { refund(); }},    {"settle", 2, [this] { settle(); }},
            {"block", 1, [this] { block(); }},      {"reset", 1, [this] { reset(); }}};
  }
  Moves moves() const override {
    return {Span{second / 4}, Span{3 * minute / 2}, life_.farthest_back()};
  }
  std::optional<Time> edge() const override {
    return to_time(std::max<Word>(1, known_.stamp - minute));
  }
  Callers callers() const override { return {20, Span{second}}; }
  Decision ask(Word cost) override { return ask(0, cost, true); }

  /// No second holds more than the highest rate brings, what was saved before, and what came back.
  void judge(const History& history) override {
    Word most = 0;
    for (const Bounds& each : bounds_) most = std::max(most, each.most);
    const Word saved = std::max(2 * most_cost_, most / unit / 10 + 1);
    life_.keep(check_window(history, Span{second}, most / unit + saved + most_cost_ + back_));
  }

 private:
  struct Grant {
    Reservation reservation;
    Word units;
  };

  [[nodiscard]] Word end_of(const Known& known) const {
    return std::max({known.stamp + forget_, known.closed, known.left_until});
  }
  [[nodiscard]] static Word top_of(const Known& known, const Bounds& bounds, Word at) {
    return at < known.told_until ? std::min(bounds.most, known.ceiling) : bounds.most;
  }
  /// As a limiter sees it now.
  [[nodiscard]] Known present(std::size_t which, Word& at) const {
    const Word now = life_.tick();
    Known known = known_;
    at = std::max(now, known.stamp);
    const bool is_over = known.is_new || now >= end_of(known);
    const bool set_back = !is_over && known.stamp > now + minute;
    if (is_over || set_back) {
      at = now;
      known = {};
      known.is_new = is_over;
      known.stamp = is_over ? 0 : known_.stamp;
      known.rate = is_over ? bounds_[which].initial : known_.rate;
      known.peak = is_over ? 0 : known_.peak;
      known.grown = known.begin = now;
    }
    known.rate = std::clamp(known.rate, bounds_[which].least,
                            std::max(bounds_[which].least, top_of(known, bounds_[which], at)));
    if (at - known.begin >= 2 * minute) {
      known.begin = at;
      known.follows = false;
      known.accepted.clear();
    } else if (at - known.begin >= minute) {
      known.begin += minute;
      known.follows = true;
    }
    return known;
  }
  void keep(const Known& known, Word at) {
    if (!known_.is_new && known_.stamp > life_.tick() + minute) life_.saw("began anew");
    known_ = known;
    known_.is_new = false;
    known_.stamp = at;
    life_.wrote();
    // Where a second of the minute begins, and where a pause is a microsecond too long.
    if (life_.random.one_in(8)) life_.due(to_time(at + second - (at - known.begin) % second));
    if (life_.random.one_in(8)) life_.due(to_time(known.grown + 101'000));
  }

  [[nodiscard]] static bool fits(const Known& known, Word cost, Word at) {
    const Word need = need_of(cost, known.rate);
    if (at < known.closed || (at < known.left_until && cost > known.left)) return false;
    return at - std::max(known.empty, at - kept_for(need)) >= need;
  }
  [[nodiscard]] Predicted standing(std::size_t which, const Known& known, Word at) const {
    const Word now = life_.tick();
    const Word kept = kept_for(need_of(1, known.rate));
    const Word since = at - std::max(known.empty, at - kept);
    Word left = since > 0 && at >= known.closed
                    ? static_cast<Word>(Wide{since} * known.rate / unit / second)
                    : 0;
    if (at < known.left_until) left = std::min(left, known.left);
    const Word limit = std::max<Word>(2, bounds_[which].most / unit / 10);
    return {.remaining = std::min(left, limit),
            .reset_after = std::max({now, known.empty + kept, known.closed}) - now};
  }

  std::size_t draw_limiter() {
    const std::size_t which = life_.random.below(limiters_.size());
    life_.tell("limiter", static_cast<Word>(which));
    return which;
  }

  void ask(bool spends) {
    const Word cost =
        life_.random.one_in(5) ? life_.random.between(0, 200) : life_.random.between(0, 3);
    ask(draw_limiter(), cost, spends);
  }
  Decision ask(std::size_t which, Word cost, bool spends) {
    life_.tell("cost", cost);
    Word at = 0;
    Known known = present(which, at);
    const LearnedRate& one = limiters_[which];
    Reservation reservation;
    if (spends) reservation = one.reserve("k", cost);
    const Decision d = spends ? reservation : one.peek("k", cost);
    if (spends) life_.note(d, cost);
    Predicted predicted = standing(which, known, at);
    if (!fits(known, cost, at)) {
      predicted.allowed = false;
      predicted.retry_after = hint(known, cost, at) - life_.tick();
      if (at < known.closed) life_.saw("refused by a block");
      if (at < known.left_until && cost > known.left) life_.saw("refused by what was told");
    } else if (spends && cost > 0) {
      most_cost_ = std::max(most_cost_, cost);
      grant(which, known, cost, at);
      predicted = standing(which, known, at);
      keep(known, at);
      grants_.push_back({reservation, cost});
    }
    life_.require(d, predicted);
    check_learned(which);
    return d;
  }
  /// By halving: what fits once fits from then on.
  [[nodiscard]] Word hint(const Known& known, Word cost, Word at) const {
    Word low = at;
    Word high = end_of(known);
    while (high - low > 1) {
      const Word middle = low + (high - low) / 2;
      (fits(known, cost, middle) ? high : low) = middle;
    }
    return high;
  }

  void grant(std::size_t which, Known& known, Word cost, Word at) {
    const Word need = need_of(cost, known.rate);
    known.empty = std::max(known.empty, at - kept_for(need)) + need;
    known.accepted.push_back({at, cost});
    if (at < known.left_until) known.left -= cost;
    if (known.first < 0) {
      known.first = known.grown = at;
      return;
    }
    const Word rest = at - known.empty;
    if (rest >= need) return life_.saw("not explored");
    const Word ms = std::min<Word>((at - known.grown) / 1'000, 100);
    const bool is_paused = (at - known.grown) / 1'000 > 100;
    known.grown = is_paused ? at : known.grown + ms * 1'000;
    const bool is_below = known.rate < known.peak;
    const Wide away = Wide{is_below ? known.peak - known.rate : known.rate - known.peak} * ms;
    const Wide crawl = Wide{known.peak} * ms / 100'000;
    Wide more = std::max(crawl, away / (is_below ? 6'000 : 20'000));
    if (known.peak == 0) more = Wide{known.rate} * ms / 3'000;
    life_.saw(known.peak == 0 ? "grew at first" : is_below ? "grew to the peak" : "grew beyond it");
    const Word top = top_of(known, bounds_[which], at);
    const Word before = known.rate;
    known.rate = std::max(before, static_cast<Word>(std::min<Wide>(before + more, top)));
    known.empty = at - static_cast<Word>(Wide{rest} * before / known.rate);
  }

  /// The rate and its peak, within the bounds.
  void check_learned(std::size_t which) {
    Word at = 0;
    const Known known = present(which, at);
    const LearnedSpeed speed = limiters_[which].learned("k");
    REQUIRE(speed.rate == known.rate);
    REQUIRE(speed.peak == known.peak);
    REQUIRE(speed.rate >= bounds_[which].least);
    REQUIRE(speed.rate <= bounds_[which].most);
  }

  static void uncount(Known& known, Word amount, Word granted) {
    const bool is_present = granted >= known.begin;
    if (!is_present && !known.follows) return;
    const Word from = is_present ? known.begin : known.begin - minute;
    const Word to = from + minute;
    known.accepted.push_back({from, -std::min(amount, known.sum(from, to))});
  }

  void limited() {
    Grant* const grant = life_.draw_recent(grants_);
    if (grant == nullptr) return;
    const std::size_t which = draw_limiter();
    Word at = 0;
    Known known = present(which, at);
    const Word granted = to_word(grant->reservation.at);
    life_.tell("granted", granted);
    grant->reservation.granted = grant->units;
    const Decision d = limiters_[which].limited("k", grant->reservation);
    uncount(known, grant->units, granted);
    if (granted > known.fell && granted <= at) {
      fall(which, known, granted, at);
      life_.saw("fell");
    } else {
      life_.saw("of one episode");
    }
    life_.require(d, standing(which, known, at));
    keep(known, at);
    life_.changed();
    check_learned(which);
  }
  void fall(std::size_t which, Known& known, Word granted, Word at) {
    const Word passed = (at - known.begin) / second + 1;
    const Word now = known.sum(known.begin, known.begin + minute);
    const Word before = known.follows ? known.sum(known.begin - minute, known.begin) : 0;
    const Word accepted =
        (now + before * (60 - passed) / 60) * unit / (known.follows ? 60 : passed);
    const Word peak = known.peak > 0 ? known.peak : known.rate;
    Word rate = known.rate - known.rate / 20;
    if (known.first >= 0 && granted > known.first) {
      known.peak = std::max(known.rate, std::min(peak, accepted));
      life_.saw("fell by a part");
    } else if (accepted * 8 < peak) {
      known.peak = peak;
      rate = known.rate / 2;
      life_.saw("halved, and knew nothing");
    } else {
      known.peak = std::min(peak, accepted);
      rate = std::min(known.rate, std::max(known.rate / 2, known.peak / 16));
      life_.saw("halved, and knew the limit");
    }
    known.rate = std::max(rate, bounds_[which].least);
    known.empty = std::max(known.empty, at);
    known.fell = known.grown = at;
    known.first = -1;
  }

  void told() {
    const std::size_t which = draw_limiter();
    Random& random = life_.random;
    Word at = 0;
    Known known = present(which, at);
    ToldLimit told;
    if (random.one_in(2)) {
      if (!told_.limit || random.one_in(3)) {  // else the same again
        told_.limit = random.between(1, 100);
        told_.span = Span{random.between(1, 4) * second};
      }
      told.limit = told_.limit;
      told.span = told_.span;
    }
    if (random.one_in(2)) {
      told.remaining = random.between(0, told.limit.value_or(9));
      told.reset = Span{random.between(0, random.one_in(6) ? 2 * forget_ : 3 * second)};
    }
    const Decision d = limiters_[which].told("k", told);
    if (told.limit) {
      const Word ceiling = *told.limit * unit * second / told.span.count();
      if (at >= known.told_until || known.ceiling != ceiling) known.peak = ceiling;
      known.ceiling = ceiling;
      known.told_until = at + forget_;
      life_.due(to_time(known.told_until));
      known.rate =
          std::max(bounds_[which].least, std::min({known.rate, bounds_[which].most, ceiling}));
      life_.saw("told a limit");
    }
    if (told.remaining && at < known.left_until) {
      known.left = std::min(known.left, *told.remaining);
    } else if (told.remaining) {
      known.left = *told.remaining;
      known.left_until = at + told.reset.count();
    }
    life_.require(d, standing(which, known, at));
    if (told.limit || told.remaining) keep(known, at);
    life_.changed();
    check_learned(which);
  }

  void refund() {
    Grant* const grant = life_.draw_recent(grants_);
    if (grant == nullptr) return;
    const std::size_t which = draw_limiter();
    Word at = 0;
    Known known = present(which, at);
    const Word units = life_.random.between(0, grant->units);
    life_.tell("units", units);
    Reservation granted(grant->reservation, grant->units);
    REQUIRE(limiters_[which].refund("k", granted, units) == units);
    grant->units -= units;
    if (units == 0) return;
    back_ += units;
    known.empty = std::max<Word>(0, known.empty - need_of(units, known.rate));
    uncount(known, units, at);
    keep(known, at);
    life_.saw("refunded");
    life_.changed();
  }
  void settle() {
    Grant* const grant = life_.draw_recent(grants_);
    if (grant == nullptr) return;
    const std::size_t which = draw_limiter();
    Word at = 0;
    Known known = present(which, at);
    const Word more = life_.random.between(1, life_.random.one_in(3) ? 3'000 : 9);
    life_.tell("more", more);
    Reservation granted(grant->reservation, grant->units);
    REQUIRE(limiters_[which].settle("k", granted, grant->units + more).charged == more);
    const Word need = need_of(more, known.rate);
    const Word debt = std::max(known.empty, at - kept_for(need)) + need;
    if (debt > at + minute) life_.saw("the longest debt");
    known.empty = std::max(known.empty, std::min(debt, at + minute));
    known.accepted.push_back({at, more});
    keep(known, at);
    life_.changed();
  }
  void block() {
    const std::size_t which = draw_limiter();
    Word at = 0;
    Known known = present(which, at);
    const Word length = life_.random.between(0, life_.random.one_in(4) ? 2 * minute : second);
    life_.tell("length", length);
    const Decision d = limiters_[which].block("k", Span{length});
    const bool is_later = length > 0 && life_.tick() + length > known.closed;
    if (is_later) known.closed = life_.tick() + length;
    life_.require(d, standing(which, known, at));
    if (is_later) keep(known, at);
    life_.changed();
  }
  void reset() {
    if (!life_.random.one_in(3)) return;
    life_.begin_history();
    limiters_[draw_limiter()].reset("k");
    known_ = {};
    grants_.clear();
    back_ = 0;
  }

  Life& life_;
  Word forget_;
  std::vector<Bounds> bounds_;
  std::vector<LearnedRate> limiters_;
  Known known_;
  std::vector<Grant> grants_;
  Word most_cost_ = 20;
  Word back_ = 0;
  ToldLimit told_;  // the last limit
};

}  // namespace

TEST_CASE("learned rates grow, fall once an episode and remember, as the rule says",
          "[model][learned_rate][L1]") {
  live<RateModel>(
      {.outcomes = {"admitted", "refused", "refused by a block", "refused by what was told",
                    "grew at first", "grew to the peak", "grew beyond it", "not explored", "fell",
                    "of one episode", "fell by a part", "halved, and knew nothing",
                    "halved, and knew the limit", "told a limit", "refunded", "the longest debt",
                    "began anew"}});
}
