// The model of the sliding windows: the time of every unit, counted anew for every answer, while
// callers with other limits, in another order, share the log. Threading: single-threaded.
#include "sluice/limiters/sliding_window.hpp"

#include <algorithm>

#include "tests/models/driver.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;

namespace {

using Windows = std::vector<WindowLimit>;

Word smallest(const Windows& windows) {
  return std::ranges::min(windows, {}, &WindowLimit::limit).limit;
}
Word largest(const Windows& windows) {
  return std::ranges::max(windows, {}, &WindowLimit::limit).limit;
}

/// The definition.
class Log {
 public:
  std::vector<Word> units;  // the time of each unit that counts, never decreasing
  Word block = 0;           // its end
  bool is_cut = false;      // only what the limiter's log still held is here
  Word stamp = 0;           // when something was last written: time stands still until then
  Word until = 0;           // when all units have left all windows; nothing comes back from then

  [[nodiscard]] Word newest() const { return units.empty() ? 0 : units.back(); }
  [[nodiscard]] Word held(Word after) const {
    return static_cast<Word>(units.end() - std::ranges::upper_bound(units, after));
  }
  [[nodiscard]] bool fits(const Windows& windows, Word at, Word cost) const {
    return std::ranges::all_of(windows, [&](const WindowLimit& window) {
      return held(at - window.span.count()) + cost <= window.limit;
    });
  }
  /// The first instant at which the cost fits behind all that is there and the block: room comes
  /// only as a unit leaves a window.
  [[nodiscard]] Word grant_of(const Windows& windows, Word now, Word cost, Word end) const {
    const Word from = std::max({now, end, newest()});
    Word best = fits(windows, from, cost) ? from : word_limit;
    for (const Word unit : units) {
      for (const WindowLimit& window : windows) {
        const Word at = unit + window.span.count();
        if (at > from && at < best && fits(windows, at, cost)) best = at;
      }
    }
    return best;
  }
  [[nodiscard]] std::vector<Word> left(const Windows& windows, Word at) const {
    std::vector<Word> all;
    for (const WindowLimit& window : windows) {
      all.push_back(std::max<Word>(0, window.limit - held(at - window.span.count())));
    }
    return all;
  }
  void add(Word at, Word cost, Word span) {
    units.insert(units.end(), static_cast<std::size_t>(cost), at);
    if (cost > 0) until = std::max(until, at + span);
  }
  /// Of the newest units, up to `most`, and those of `time` only if one is given.
  Word remove(Word most, std::optional<Word> time = {}) {
    Word count = 0;
    for (; count < most && !units.empty() && units.back() == time.value_or(newest()); ++count) {
      units.pop_back();
    }
    return count;
  }
  /// Beyond max_ahead the log is given up: what lies ahead counts as of now.
  [[nodiscard]] bool is_given_up(Word now) const {
    return stamp > now + SlidingWindowRule::max_ahead;
  }
};

class SlidingWindowModel final : public Model {
 public:
  explicit SlidingWindowModel(Life& life)
      : life_(life),
        all_(draw_windows(life)),
        most_cost_(life.random.one_in(2) ? 1 : life.random.between(1, smallest(all_[0]))) {
    for (const Windows& windows : all_) {
      limiters_.emplace_back(life.store, life.name, windows);
      smallest_ring_ = std::min(smallest_ring_, largest(windows));
    }
  }

  std::vector<Verb> verbs() override {
    return {{"acquire", 12, [this] { ask(draw_cost(), 0, Spends::yes); }},
            {"peek", 3, [this] { ask(draw_cost(), 0, Spends::no); }, true},
            {"reserve", 5, [this] { ask(draw_cost(), life_.random.between(0, 150), Spends::yes); }},
            {"cancel", 1, [this] { cancel(); }},
            {"refund", 2, [this] { refund(); }},
            {"settle", 2, [this] { settle(); }},
            {"reward", 1, [this] { reward(); }},
            {"block", 1, [this] { block(); }},
            {"reset", 1, [this] {
               if (life_.random.one_in(4)) reset();
             }}};
  }
  Moves moves() const override {
    const bool far = all_.size() == 1 && !has_returned_ && !life_.random.one_in(3);
    const Span most{far ? 2 * SlidingWindowRule::max_ahead : 100};
    return {Span{25}, Span{400}, std::min(most, life_.farthest_back()),
            far ? std::uint64_t{10} : 25};
  }
  Callers callers() const override {
    const auto& [limit, span] = all_[0][0];
    return {most_cost_, span * 6 * most_cost_ / limit};
  }
  Decision ask(Word cost) override { return ask(cost, 0, Spends::yes); }

  /// Of what was not given back again, each window holds what the largest of its limits admits.
  void judge(const History& history) override {
    History kept;
    for (std::size_t i = judged_from_; i < log_.units.size(); ++i) {
      const Time at = to_time(log_.units[i]);
      kept.push_back({.at = at, .cost = 1, .allowed = true, .effective = at});
    }
    for (const WindowLimit& window : all_[0]) {
      Word most = 0;
      for (const Windows& one : all_) {
        most = std::max(most, std::ranges::find(one, window.span, &WindowLimit::span)->limit);
      }
      life_.keep(check_window(kept, window.span, most));
    }
    if (!life_.patient) return;
    life_.keep(check_remaining(history, smallest(all_[0])));
    for (const WindowLimit& window : all_[0]) {
      life_.keep(check_window(history, window.span, window.limit));
    }
    const auto& [limit, span] = all_[0][0];
    if (all_[0].size() > 1 || most_cost_ > 1) return;
    life_.keep(check_work_conserving(history, {limit, limit, span}));
  }

 private:
  enum class Spends { yes, no };

  /// Longer windows with larger limits, so that each may bind; then the same spans in another
  /// order and under other limits.
  static std::vector<Windows> draw_windows(Life& life) {
    Random& random = life.random;
    constexpr Word most = 30;
    Windows windows;
    Word span = random.between(1, 40);
    Word limit = random.between(1, 6);
    const Word count = random.between(1, random.one_in(4) ? 8 : 3);
    for (Word k = 0; k < count && limit <= most; ++k) {
      windows.push_back({limit, Span{span}});
      span += random.between(1, 60);
      limit += random.between(1, 6);
    }
    std::vector<Windows> all{windows};
    for (std::size_t more = life.patient || random.one_in(3) ? 0 : 1 + random.below(3); more > 0;
         --more) {
      for (WindowLimit& window : windows) window.limit = random.between(1, most);
      all.push_back(windows);
    }
    for (Windows& one : all) {
      for (std::size_t k = one.size(); k > 1; --k) std::swap(one[k - 1], one[random.below(k)]);
    }
    return all;
  }

  /// Draws who asks.
  Word draw_cost() {
    if (life_.random.one_in(4)) present_ = life_.random.below(all_.size());
    return life_.random.between(0, smallest(windows()));
  }
  [[nodiscard]] const SlidingWindow& limiter() const { return limiters_[present_]; }
  [[nodiscard]] const Windows& windows() const { return all_[present_]; }
  [[nodiscard]] Word longest() const {
    return std::ranges::max(windows(), {}, &WindowLimit::span).span.count();
  }
  [[nodiscard]] Word at() const { return std::max(life_.tick(), log_.stamp); }
  /// Units have left a full log; for what lies ahead of `at` they may count as if they had not.
  [[nodiscard]] bool has_dropped() const {
    return log_.is_cut || std::ssize(log_.units) > smallest_ring_;
  }
  [[nodiscard]] bool is_assumed() const { return lies_ahead() && has_dropped() && all_.size() > 1; }
  [[nodiscard]] bool lies_ahead() const { return log_.newest() > at(); }
  /// What had given way would come back into a log that is given up.
  [[nodiscard]] bool is_unknown() const { return has_dropped() && log_.is_given_up(life_.tick()); }
  /// Units that had left come back with a cancelled reservation, until its time.
  [[nodiscard]] bool is_inexact() const { return at() < inexact_until_; }

  /// An answer, with what remains of each window.
  struct Told : Decision {
    Word first;  // output word
    std::vector<Word> left;
  };
  Told decided(const Step& step) {
    std::array<Word, 1 + SlidingWindowRule::max_windows> output{};
    const auto words = std::span(output).first(1 + windows().size());
    std::error_code error;
    const Decision decision = decide(life_.store, step, error, {}, words);
    REQUIRE_FALSE(error);
    const auto left = SlidingWindow::remaining_of(words);
    return {decision, output[0], {left.begin(), left.end()}};
  }

  Decision ask(Word cost, Word max_wait, Spends spends) {
    life_.tell("limiter", static_cast<Word>(present_));
    life_.tell("cost", cost);
    if (max_wait > 0) life_.tell("max_wait", max_wait);
    const Word now = life_.tick();
    const bool given_up = log_.is_given_up(now);
    const Word key_time = given_up ? now : at();
    const Word grant = given_up ? now : log_.grant_of(windows(), key_time, cost, log_.block);
    const Told d =
        decided(spends == Spends::no ? limiter().peek_step("k", cost)
                                     : limiter().reserve_step("k", cost, Span{max_wait}));
    if (spends == Spends::yes) life_.note(d, cost);
    const Word wait = grant <= key_time ? 0 : grant - now;
    const bool inexact = !given_up && is_inexact();
    if (inexact) {
      REQUIRE(d.retry_after.count() + (d.allowed ? 0 : max_wait) >= wait);
      life_.saw("beside a cancelled one");
    }
    const Word granted = d.retry_after > Span{0} ? to_word(d.at + d.retry_after) : key_time;
    if (d.allowed && spends == Spends::yes && cost > 0) {
      if (given_up) {
        restart(now, cost);
      } else {
        forget();
        log_.add(granted, cost, longest());
        log_.stamp = key_time;
        life_.wrote();
      }
      if (grants_.size() == 4) grants_.erase(grants_.begin());
      grants_.push_back(SlidingWindow::reservation(d, {}, cost));
    }
    if (inexact) return d;
    std::vector<Word> left = log_.left(windows(), key_time);
    if (given_up && spends == Spends::no) {
      for (Word& one : left) one = std::max(one, cost);
    }
    Predicted predicted{.allowed = wait <= max_wait, .retry_after = wait};
    if (!predicted.allowed) predicted.retry_after -= max_wait;
    require(d, predicted, left, given_up);
    if (d.allowed) {
      require_part(d);
      return d;
    }
    const Word latest = latest_room(key_time, cost);
    if (is_assumed()) return d;
    if (log_.block > std::max(latest, key_time)) {
      REQUIRE(d.part == windows().size());
      life_.saw("refused by the block");
    } else if (latest > 0 && !(lies_ahead() && has_dropped())) {
      REQUIRE(room_of(windows()[d.part], key_time, cost) == latest);
      life_.saw("refused by a window");
    }
    return d;
  }

  /// When the cost fits into a window alone; 0: now.
  [[nodiscard]] Word room_of(const WindowLimit& window, Word now, Word cost) const {
    if (log_.fits({window}, now, cost)) return 0;
    Word best = word_limit;
    for (const Word unit : log_.units) {
      const Word at = unit + window.span.count();
      if (at > now && at < best && log_.fits({window}, at, cost)) best = at;
    }
    return best;
  }
  [[nodiscard]] Word latest_room(Word now, Word cost) const {
    Word latest = 0;
    for (const WindowLimit& window : windows()) {
      latest = std::max(latest, room_of(window, now, cost));
    }
    return latest;
  }

  /// Also what remains of each window, and of all; `given_up`: as a request saw the log.
  void require(const Told& d, Predicted predicted, const std::vector<Word>& left,
               bool given_up = false) {
    const Word now = life_.tick();
    const bool blocked = !given_up && log_.block > at();
    const bool ahead = !given_up && lies_ahead();
    predicted.remaining = ahead || blocked ? 0 : std::ranges::min(left);
    Word clear = blocked ? log_.block : 0;
    if (!log_.units.empty()) {
      const Word newest = given_up ? std::min(log_.newest(), now) : log_.newest();
      clear = std::max(clear, newest + longest());
    }
    // How long ago units that had given way had left is not known any more.
    if (!has_returned_ || now == at()) predicted.reset_after = std::max<Word>(0, clear - now);
    life_.require(d, predicted);
    if (is_assumed()) {
      REQUIRE(std::ranges::equal(d.left, left, std::less_equal<>()));
    } else {
      REQUIRE(std::ranges::equal(d.left, left));
    }
  }
  /// What is allowed names a window with the least.
  static void require_part(const Told& d) { REQUIRE(d.left[d.part] == std::ranges::min(d.left)); }
  void require(const Told& d) { require(d, {}, log_.left(windows(), at())); }

  /// What had given way to newer units comes back with them, of a time that is not known.
  Word remove(Word most, std::optional<Word> time = {}) {
    if (is_forgotten()) {
      life_.saw("given back too late");
      return 0;
    }
    const Word newest = log_.newest();
    const bool has = has_dropped();
    const Word count = log_.remove(most, time);
    if (has && count > 0) {
      has_returned_ = true;
      grants_.clear();
      inexact_until_ = std::max(inexact_until_, newest);
    }
    return count;
  }

  [[nodiscard]] bool is_forgotten() const {
    return life_.tick() >= std::max(log_.until, log_.block);
  }
  /// What is written then is the first of a new log.
  void forget() {
    if (life_.patient || log_.until == 0 || !is_forgotten()) return;
    life_.begin_history();
    log_ = {};
    judged_from_ = 0;
    has_returned_ = false;
    inexact_until_ = 0;
  }

  /// One of the last grants, once; none, or one that charged nothing, if there is none to give
  /// back.
  Reservation draw_grant() {
    if (grants_.empty() || is_unknown()) return {};
    const std::size_t which = life_.random.below(grants_.size());
    const Reservation grant = grants_[which];
    grants_.erase(grants_.begin() + static_cast<std::ptrdiff_t>(which));
    life_.tell("of", grant.granted);
    return grant;
  }
  void note_back(Word back, const Reservation& grant) {
    life_.saw(back == 0                          ? "nothing given back"
              : to_word(grant.ready_at()) > at() ? "given back ahead"
                                                 : "given back");
    life_.changed();
  }

  void cancel() {
    Reservation grant = draw_grant();
    if (!grant) return;
    const Word back = remove(grant.granted, to_word(grant.ready_at()));
    REQUIRE(limiter().cancel("k", grant) == back);
    note_back(back, grant);
  }

  void refund() {
    Reservation grant = draw_grant();
    if (!grant) return;
    const Word units = life_.random.between(0, grant.granted);
    life_.tell("units", units);
    const Word back = remove(units, to_word(grant.ready_at()));
    REQUIRE(limiter().refund("k", grant, units) == back);
    note_back(back, grant);
  }

  /// A grant turns out to have cost less, or more.
  void settle() {
    if (is_inexact()) return;
    Reservation grant = draw_grant();
    if (!grant) return;
    const Word actual = life_.random.between(0, 2 * smallest(windows()) + 1);
    const Word more = actual - grant.granted;
    life_.tell("more", more);
    if (more <= 0) {
      const Word back = remove(-more, to_word(grant.ready_at()));
      const Settlement done = limiter().settle("k", grant, actual);
      REQUIRE((done.given_back == back && done.charged == 0));
      return note_back(back, grant);
    }
    std::error_code error;
    const Settlement done = limiter().settle("k", grant, actual, error);
    REQUIRE(done.given_back == 0);
    if (more > smallest(windows())) {
      REQUIRE(error == Errc::cost_exceeds_capacity);
      REQUIRE(done.charged == 0);
      return life_.saw("too much to charge");
    }
    REQUIRE_FALSE(error);
    REQUIRE(done.charged == more);
    const Word now = life_.tick();
    life_.saw("charged");
    if (log_.is_given_up(now)) return restart(now, more);
    forget();
    log_.add(log_.grant_of(windows(), at(), more, log_.block), more, longest());
    log_.stamp = at();
    life_.wrote();
  }

  void reward() {
    if (is_inexact() || (has_dropped() && lies_ahead()) || is_unknown()) return;
    const Word amount = life_.random.between(0, life_.random.one_in(4) ? 100 : 6);
    life_.tell("amount", amount);
    Word held = 0;  // by some window
    for (const WindowLimit& window : windows()) {
      held = std::max(held, log_.held(at() - window.span.count()));
    }
    const Word back = remove(amount);
    const Told d = decided(limiter().reward_step("k", amount));
    require(d);
    REQUIRE(d.first == std::min(back, held));
    grants_.clear();
    life_.changed();
  }

  void block() {
    const Word span = life_.random.between(0, 100);
    life_.tell("span", span);
    if (is_inexact()) return;
    const Word now = life_.tick();
    const bool given_up = log_.is_given_up(now);
    const Word at = given_up ? now : this->at();
    const Told d = decided(limiter().block_step("k", Span{span}));
    if (given_up && span > 0) restart(now, 0);
    if (span > 0) forget();
    if (span > 0 && at + span > log_.block) {
      log_.block = at + span;
      log_.stamp = at;
      life_.wrote();
    }
    require(d, {}, log_.left(windows(), at), given_up && span == 0);
    require_part(d);
  }

  void reset() {
    life_.begin_history();
    limiter().reset("k");
    log_ = {};
    grants_.clear();
    judged_from_ = 0;
    has_returned_ = false;
    inexact_until_ = 0;
  }

  /// Beyond max_ahead: what lies ahead counts as of now, as much as the log holds, with what was
  /// let in; no interval of it is judged.
  void restart(Word now, Word cost) {
    for (Word& unit : log_.units) unit = std::min(unit, now);
    log_.add(now, cost, longest());
    const auto over = std::max<std::ptrdiff_t>(0, std::ssize(log_.units) - largest(windows()));
    log_.units.erase(log_.units.begin(), log_.units.begin() + over);
    log_.is_cut = true;
    log_.block = 0;
    log_.stamp = now;
    judged_from_ = log_.units.size();
    inexact_until_ = 0;
    life_.wrote();
    life_.saw("log given up");
  }

  Life& life_;
  std::vector<Windows> all_;
  std::vector<SlidingWindow> limiters_;
  Word most_cost_;           // of patient callers
  std::size_t present_ = 0;  // who asks
  Word smallest_ring_ = word_limit;
  Log log_;
  std::size_t judged_from_ = 0;      // units before it are not in any interval that is judged
  std::vector<Reservation> grants_;  // the last ones
  bool has_returned_ = false;        // units that had given way to newer ones
  Word inexact_until_ = 0;
};

}  // namespace

TEST_CASE("sliding windows answer what counting all units gives, and no window holds too much",
          "[model][sliding_window][S2][S5][L1][L2][C-001][C-002][C-003][C-004][C-005]") {
  live<SlidingWindowModel>(
      "sliding windows answer what counting all units gives, and no window holds too much",
      {.outcomes = {"admitted", "reserved", "refused", "refused by a window",
                    "refused by the block", "given back ahead", "beside a cancelled one",
                    "given back", "nothing given back", "given back too late", "charged",
                    "too much to charge", "set back", "log given up", "hint proven"},
       .lives = 300});
}
