// The model of the fixed windows: what is used of each window of a calendar, whose windows have
// numbers by arithmetic of their own; limiters of several limits share the key.
// Threading: single-threaded.
#include "sluice/limiters/fixed_window.hpp"

#include <algorithm>
#include <map>

#include "tests/models/driver.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;
using namespace std::chrono_literals;

namespace {

__extension__ typedef __int128 Wide;

constexpr Time start = VirtualClock::default_start;  // 2000-01-01 00:00 UTC, a Saturday
constexpr Word day_us = 86'400'000'000;

struct Kind {
  Calendar calendar;
  std::function<Word(Time)> window;  // its number, which rises from one to the next
  Span about;                        // the width, roughly
};

/// The clocks of this place jump from 0:00 to 1:00 on 2000-03-26, and from 1:00 back to 0:00 on
/// 2000-10-29, when they show the old date again for no moment.
Span local_offset(Time t) {
  return t >= start + 85 * 24h && t < start + 302 * 24h ? Span{1h} : Span{0};
}

/// By counting days from the year 2000 on.
Word month_of(Time t) {
  Word day = (to_word(t) - to_word(start)) / day_us;
  Word month = 0;
  for (;; ++month) {
    const Word year = 2000 + month / 12;
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    constexpr std::array<Word, 12> days{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const Word length = days[std::size_t(month % 12)] + (leap && month % 12 == 1);
    if (day < length) return month;
    day -= length;
  }
}

Kind draw_kind(Life& life) {
  Random& random = life.random;
  switch (life.patient ? 0 : random.below(5)) {
    case 0:
    case 1: {
      const Word width = random.between(1, random.one_in(2) ? 20 : 200'000'000);
      const Word origin = random.between(0, 3 * width);
      return {Calendar::every(Span{width}, Time{Span{origin}}),
              [=](Time t) {
                return static_cast<Word>((Wide{to_word(t)} - origin + Wide{4} * width) / width);
              },
              Span{width}};
    }
    case 2: {
      const TimeZone zone("Place", {{Time{}, 0h}, {start + 85 * 24h, 1h}, {start + 302 * 24h, 0h}});
      return {Calendar::daily(zone), [](Time t) { return to_word(t + local_offset(t)) / day_us; },
              24h};
    }
    case 3:
      return {Calendar::weekly(),
              [](Time t) { return (to_word(t) / day_us + 3) / 7; },  // 1970 began on a Thursday
              7 * 24h};
    default:
      return {Calendar::monthly(), month_of, 30 * 24h};
  }
}

class FixedWindowModel final : public Model {
 public:
  explicit FixedWindowModel(Life& life) : life_(life), kind_(draw_kind(life)) {
    life.clock.set(start + Span{life.random.between(0, 330 * day_us)});
    for (std::size_t count = life.patient ? 1 : 1 + life.random.below(3); count > 0; --count) {
      const Word limit = life.random.between(1, life.random.one_in(2) ? 5 : 1000);
      limiters_.emplace_back(life.store, life.name, limit, kind_.calendar);
      most_limit_ = std::max(most_limit_, limit);
    }
    most_cost_ = life.random.one_in(2) ? 1 : life.random.between(1, most_limit_);
  }

  std::vector<Verb> verbs() override {
    return {{"acquire", 12, [this] { ask(draw_cost(), true); }},
            {"peek", 3, [this] { ask(draw_cost(), false); }, true},
            {"refund", 3, [this] { refund(); }},
            {"settle", 3, [this] { settle(); }},
            {"reward", 1, [this] { adjust(-1); }},
            {"penalize", 1, [this] { adjust(1); }},
            {"block", 3, [this] { block(); }},
            {"reset", 1, [this] { reset(); }}};
  }
  Moves moves() const override {
    const bool has_begun = latest_ && begin_of(*latest_) + max_ahead > life_.now();
    return {kind_.about / 3, kind_.about, life_.draw_back(kind_.about * 2),
            has_begun ? std::uint64_t{4} : 25};
  }
  std::optional<Time> edge() const override {
    if (!latest_) return {};
    return begin_of(*latest_) - max_ahead;
  }
  Callers callers() const override {
    return {most_cost_, kind_.about * 6 * most_cost_ / most_limit_};
  }
  Decision ask(Word cost) override { return ask(cost, true); }

  /// Of what was not given back again, a window holds what the largest limit admits, and what was
  /// rewarded.
  void judge(const History& history) override {
    History kept;
    std::vector<Time> edges;
    for (const Grant& grant : grants_) {
      kept.push_back(
          {.at = grant.counted, .cost = grant.units, .allowed = true, .effective = grant.counted});
      edges.push_back(begin_of(grant.counted));
      edges.push_back(end_of(grant.counted));
    }
    std::ranges::sort(edges);
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    life_.keep(check_aligned(kept, edges, most_limit_ + rewarded_));
    if (kind_.about < 24h) life_.keep(check_window(kept, kind_.about, 2 * most_limit_ + rewarded_));
    if (!life_.patient) return;
    life_.keep(check_remaining(history, most_limit_));
    if (most_cost_ > 1) return;  // larger ones leave the rest of a window unused
    life_.keep(check_work_conserving(history, {most_limit_, most_limit_, kind_.about}));
  }

 private:
  static constexpr Span max_ahead{FixedWindowRule::max_ahead};

  struct Grant {
    Decision decision;
    Word units;
    Time counted;  // in the window that it was counted in
  };

  /// The window that a request is decided in.
  struct Present {
    Time at;  // an instant in it
    Word window;
    Word used;
  };

  [[nodiscard]] Word window(Time t) const { return kind_.window(t); }
  [[nodiscard]] Word used(Word window) const {
    const auto found = used_.find(window);
    return found == used_.end() ? 0 : found->second;
  }
  [[nodiscard]] bool is_closed() const { return closed_ > life_.now(); }

  /// The first instant in a later window than `t`: by halving, since numbers rise.
  [[nodiscard]] Time end_of(Time t) const {
    return first(t, t + kind_.about + kind_.about / 2, window(t) + 1);
  }
  [[nodiscard]] Time begin_of(Time t) const {
    return first(t - kind_.about - kind_.about / 2 - 1us, t, window(t));
  }
  /// The first instant in (low, high] whose window has this number, or a higher one.
  [[nodiscard]] Time first(Time low, Time high, Word number) const {
    while (high - low > 1us) {
      const Time middle = low + (high - low) / 2;
      (window(middle) >= number ? high : low) = middle;
    }
    return high;
  }

  /// A window that was spent of stays the present one while a corrected clock lies before it; one
  /// that begins more than max_ahead later is given up.
  [[nodiscard]] bool lies_ahead(Time now) const {
    return latest_ && window(*latest_) > window(now);
  }
  [[nodiscard]] bool is_given_up(Time now) const {
    return latest_ && window(*latest_) > window(now + max_ahead);
  }
  /// Of a given up window as much counts as lets this request in.
  [[nodiscard]] Present present(Word limit, Word cost) const {
    const Time now = life_.now();
    if (is_given_up(now)) {
      return {now, window(now), std::min(used(window(*latest_)), limit - cost)};
    }
    const Time at = lies_ahead(now) ? *latest_ : now;
    return {at, window(at), used(window(at))};
  }
  void keep(const Present& present, Word used) {
    if (is_given_up(life_.now())) {
      grants_.clear();
      used_.clear();
      life_.saw("window given up");
    }
    used_[present.window] = used;
    latest_ = present.at;
    closed_ = {};
    life_.wrote();
  }

  /// Of a block: until the window in which it ends is as good as new.
  [[nodiscard]] Word clear_after_block() const {
    const bool rests = used(window(closed_)) > 0;
    return ((rests ? end_of(closed_) : closed_) - life_.now()).count();
  }
  /// The answer to what is admitted, when so much is used.
  [[nodiscard]] Predicted standing(const FixedWindow& limiter, const Present& at, Word used) const {
    if (is_closed()) return {.remaining = 0, .reset_after = clear_after_block()};
    const Word clear = used > 0 ? (end_of(at.at) - life_.now()).count() : 0;
    return {.remaining = std::max<Word>(0, limiter.limit() - used), .reset_after = clear};
  }

  const FixedWindow& limiter() { return life_.draw("limiter", limiters_); }
  Word draw_cost() {
    const Word most = std::ranges::min(limiters_, {}, &FixedWindow::limit).limit();
    return life_.random.between(0, std::min<Word>(most, life_.random.one_in(3) ? most : 3));
  }

  Decision ask(Word cost, bool spends) {
    const FixedWindow& one = limiter();
    life_.tell("cost", cost);
    const Present at = present(one.limit(), cost);
    life_.tell("used", at.used);
    const Decision d = spends ? one.try_acquire("k", cost) : one.peek("k", cost);
    if (spends) life_.note(d, cost);
    Predicted predicted = standing(one, at, at.used);
    if (is_closed()) {
      const bool fits = used(window(closed_)) + cost <= one.limit();
      predicted.allowed = false;
      predicted.retry_after = fits ? (closed_ - life_.now()).count() : clear_after_block();
      life_.saw(fits ? "refused by a block" : "refused beyond a block");
    } else if (at.used + cost > one.limit()) {
      predicted.allowed = false;
      predicted.retry_after = (end_of(at.at) - life_.now()).count();
      life_.saw(lies_ahead(life_.now()) ? "refused by a window ahead" : "refused by the window");
    } else if (spends && cost > 0) {
      predicted = standing(one, at, at.used + cost);
      keep(at, at.used + cost);
      grants_.push_back({d, cost, at.at});
    }
    life_.require(d, predicted);
    return d;
  }

  /// Takes units off the window that `taken` was granted in, as far as it is used; returns how many
  /// come back: none if that is not the present one, or that in which a block ends.
  Word give_back(Grant& grant, Word units) {
    const Word place = window(latest_.value_or(closed_));
    const bool same = window(grant.decision.at) == place && window(life_.now()) <= place &&
                      place <= window(life_.now() + max_ahead);
    const Word back = same ? std::min(units, used(place)) : 0;
    if (back > 0) {
      used_[place] -= back;
      life_.wrote();
    }
    grant.units -= std::min(back, grant.units);
    life_.saw(back > 0 ? is_closed() ? "refunded while blocked" : "refunded" : "nothing refunded");
    life_.changed();
    return back;
  }

  void refund() {
    const FixedWindow& one = limiter();
    Grant* const grant = life_.draw_recent(grants_);
    if (grant == nullptr) return;
    const Word units = life_.random.between(0, grant->units);
    life_.tell("units", units);
    Reservation taken(grant->decision, grant->units);
    REQUIRE(one.refund("k", taken, units) == give_back(*grant, units));
  }

  void settle() {
    const FixedWindow& one = limiter();
    Grant* const grant = life_.draw_recent(grants_);
    if (grant == nullptr) return;
    const Word actual = life_.random.between(0, 2 * grant->units + 1);
    const Word more = actual - grant->units;
    life_.tell("more", more);
    if (more > 0 && is_given_up(life_.now())) return;
    Reservation taken(grant->decision, grant->units);
    const Settlement done = one.settle("k", taken, actual);
    if (more <= 0) {
      REQUIRE(done.charged == 0);
      REQUIRE(done.refunded == give_back(*grant, -more));
      return;
    }
    const bool present_one = window(grant->decision.at) == window(life_.now());
    REQUIRE(done.refunded == 0);
    const bool counts = present_one && (!is_closed() || window(life_.now()) == window(closed_));
    const Word room = FixedWindowRule::max_used - present(one.limit(), 0).used;
    REQUIRE(done.charged == (counts ? std::min(more, room) : 0));
    life_.saw(!present_one ? "window is over" : counts ? "charged" : "charged before a block");
    if (present_one) charge(more, one.limit());
  }

  /// Adds units to the present window; while blocked, only if the block ends in it. Returns what is
  /// used of it then.
  Word charge(Word units, Word limit) {
    const Present at = present(limit, 0);
    const Word then = std::clamp<Word>(at.used + units, 0, FixedWindowRule::max_used);
    if (!is_closed()) {
      if (then != at.used) keep(at, then);
    } else if (at.window == window(closed_)) {
      used_[at.window] = then;
      life_.wrote();
    }
    return then;
  }

  void adjust(Word sign) {
    const FixedWindow& one = limiter();
    const Word most = life_.random.one_in(4) ? 3 * one.limit() : Word{3};
    const Word amount = life_.random.between(0, life_.random.one_in(30) ? word_limit : most);
    life_.tell("amount", amount);
    const Present at = present(one.limit(), 0);
    const Decision d = sign < 0 ? one.reward("k", amount) : one.penalize("k", amount);
    const Word then = charge(sign * amount, one.limit());
    life_.require(d, standing(one, at, then));
    if (sign < 0) rewarded_ += amount;
    life_.changed();
  }

  void block() {
    const FixedWindow& one = limiter();
    const Word about = kind_.about.count();
    const Span span{life_.random.between(0, life_.random.one_in(3) ? 3 * about : 1 + about / 4)};
    life_.tell("span", span.count());
    const Decision d = one.block("k", span);
    Time until = life_.now() + span;
    if (span > 0us && until > closed_) {
      if (is_given_up(until)) {
        const Word rest = std::min(used(window(*latest_)), one.limit());
        used_ = {{window(until), rest}};
        grants_.clear();
        life_.saw("blocked, window given up");
      } else if (lies_ahead(until)) {  // it was opened already
        until = begin_of(*latest_);
        life_.saw("blocked until a window ahead");
      }
      closed_ = until;
      latest_.reset();
      life_.wrote();
      life_.saw(used(window(closed_)) > 0 ? "blocked within" : "blocked beyond");
    }
    const Present at = present(one.limit(), 0);
    life_.require(d, standing(one, at, at.used));
    life_.due(closed_);
  }

  void reset() {
    if (!life_.random.one_in(3)) return;
    life_.begin_history();
    limiter().reset("k");
    used_.clear();
    latest_.reset();
    closed_ = {};
    grants_.clear();
    rewarded_ = 0;
  }

  Life& life_;
  Kind kind_;
  std::vector<FixedWindow> limiters_;
  Word most_limit_ = 0;
  Word most_cost_ = 1;  // of patient callers
  std::map<Word, Word> used_;
  std::optional<Time> latest_;  // in the last window that was spent of
  Time closed_{};               // until then nothing is admitted
  std::vector<Grant> grants_;
  Word rewarded_ = 0;
};

}  // namespace

TEST_CASE("fixed windows answer by what is used of each window, and none holds too much",
          "[model][fixed_window][S2][S5][L1][L2]") {
  live<FixedWindowModel>(
      {.outcomes = {"admitted", "refused", "refused by the window", "refused by a window ahead",
                    "refused by a block", "refused beyond a block", "refunded",
                    "refunded while blocked", "nothing refunded", "charged",
                    "charged before a block", "window is over", "blocked within", "blocked beyond",
                    "blocked until a window ahead", "blocked, window given up",
                    "window given up"}});
}
