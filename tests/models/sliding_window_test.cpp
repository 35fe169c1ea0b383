// The model of the sliding windows: the time and the units of every grant, counted anew for every
// answer, while callers with other limits, in another order, share the log.
// Threading: single-threaded.
#include "sluice/limiters/sliding_window.hpp"

#include <algorithm>

#include "tests/models/driver.hpp"
#include "tests/models/window_log.hpp"

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

/// A grant that counts: at least its own units, if they were not given back.
struct Entry {
  Word number;
  Word time;
  Word units;
  Word own;  // without what was charged beyond the limits
};

/// The definition.
class Log : public WindowLog<Entry> {
 public:
  Word block = 0;  // its end
  Word stamp = 0;  // when something was last written: time stands still until then
  Word until = 0;  // when all entries have left all windows; nothing comes back from then

  [[nodiscard]] bool fits(const Windows& windows, Word at, Word cost) const {
    return std::ranges::all_of(windows, [&](const WindowLimit& window) {
      return held(at - window.span.count()) + cost <= window.limit;
    });
  }
  /// The first instant at which the cost fits behind all that is there and the block: room comes
  /// only as an entry leaves a window.
  [[nodiscard]] Word grant_of(const Windows& windows, Word now, Word cost, Word end) const {
    const Word from = std::max({now, end, newest()});
    Word best = fits(windows, from, cost) ? from : word_limit;
    for (const Entry& entry : entries) {
      for (const WindowLimit& window : windows) {
        const Word at = entry.time + window.span.count();
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
  /// `at`: when that was decided. Returns its number.
  Word add(Word at, Word time, Word units, const Windows& windows) {
    const Word span = std::ranges::max(windows, {}, &WindowLimit::span).span.count();
    until = std::max(until, time + span);
    return WindowLog::add({0, time, units, units}, at - span, largest(windows));
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
    }
  }

  std::vector<Verb> verbs() override {
    return {
        {"acquire", 48, [this] { ask(draw_cost(), 0, Spends::yes); }},
        {"peek", 12, [this] { ask(draw_cost(), 0, Spends::no); }, true},
        {"reserve", 20, [this] { ask(draw_cost(), life_.random.between(0, 150), Spends::yes); }},
        {"cancel", 4, [this] { cancel(); }},
        {"refund", 8, [this] { refund(); }},
        {"settle", 8, [this] { settle(); }},
        {"reward", 4, [this] { reward(); }},
        {"block", 4, [this] { block(); }},
        {"reset", 1, [this] { reset(); }}};
  }
  Moves moves() const override {
    const bool far = !life_.random.one_in(3);
    const Span most{far ? 2 * SlidingWindowRule::max_ahead : 100};
    return {Span{25}, Span{400}, std::min(most, life_.farthest_back()),
            far ? std::uint64_t{10} : 25};
  }
  std::optional<Time> edge() const override {
    return to_time(log_.stamp - SlidingWindowRule::max_ahead);
  }
  Callers callers() const override {
    const auto& [limit, span] = all_[0][0];
    return {most_cost_, span * 6 * most_cost_ / limit};
  }
  Decision ask(Word cost) override { return ask(cost, 0, Spends::yes); }

  /// Of what was not given back again, nor charged, each window holds what the largest of its
  /// limits admits.
  void judge(const History& history) override {
    History kept;
    for (const Entry& entry : log_.entries) {
      const Time at = to_time(entry.time);
      if (entry.number < judged_from_) continue;
      kept.push_back({.at = at, .cost = entry.own, .allowed = true, .effective = at});
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
  [[nodiscard]] bool lies_ahead() const { return log_.newest() > at(); }

  /// An answer, with what remains of each window.
  struct Told : Decision {
    std::vector<Word> words;  // before those of the windows
    std::vector<Word> left;
  };
  Told decided(const Step& step) {
    std::array<Word, 3 + SlidingWindowRule::max_windows> output{};
    const std::size_t first = step.operation->output;
    const auto words = std::span(output).first(first + windows().size());
    std::error_code error;
    const Decision decision = decide(life_.store, step, error, {}, words);
    REQUIRE_FALSE(error);
    const auto left = words.subspan(first);
    return {decision,
            {words.begin(), words.begin() + static_cast<std::ptrdiff_t>(first)},
            {left.begin(), left.end()}};
  }

  Decision ask(Word cost, Word max_wait, Spends spends) {
    life_.tell("limiter", static_cast<Word>(present_));
    life_.tell("cost", cost);
    if (max_wait > 0) life_.tell("max_wait", max_wait);
    const Word now = life_.tick();
    const bool given_up = log_.is_given_up(now);
    if (given_up) log_.lose();
    const Word key_time = given_up ? now : at();
    const Word grant = given_up ? now : log_.grant_of(windows(), key_time, cost, log_.block);
    const Told d =
        decided(spends == Spends::no ? limiter().peek_step("k", cost)
                                     : limiter().reserve_step("k", cost, Span{max_wait}));
    if (spends == Spends::yes) life_.note(d, cost);
    const Word wait = grant <= key_time ? 0 : grant - now;
    if (d.allowed && spends == Spends::yes && cost > 0) {
      const Word number = given_up ? restart(now, cost) : log(key_time, grant, cost);
      REQUIRE(d.words[1] == number);
      REQUIRE(d.words[2] == grant);
      if (grants_.size() == 8) grants_.erase(grants_.begin());
      grants_.push_back(SlidingWindow::reservation(d, d.words, cost));
    } else {
      REQUIRE(d.words[1] + d.words[2] == 0);
    }
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
    if (log_.block > std::max(latest, key_time)) {
      REQUIRE(d.part == windows().size());
      life_.saw("refused by the block");
    } else if (latest > 0) {
      REQUIRE(room_of(windows()[d.part], key_time, cost) == latest);
      life_.saw("refused by a window");
    }
    return d;
  }
  Word log(Word key_time, Word grant, Word cost) {
    forget();
    log_.open(largest(windows()));
    const Word number = log_.add(key_time, grant, cost, windows());
    log_.stamp = key_time;
    life_.wrote();
    return number;
  }

  /// When the cost fits into a window alone; 0: now.
  [[nodiscard]] Word room_of(const WindowLimit& window, Word now, Word cost) const {
    if (log_.fits({window}, now, cost)) return 0;
    Word best = word_limit;
    for (const Entry& entry : log_.entries) {
      const Word at = entry.time + window.span.count();
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
    if (!log_.entries.empty()) {
      const Word newest = given_up ? std::min(log_.newest(), now) : log_.newest();
      clear = std::max(clear, newest + longest());
    }
    // A log that has taken out entries may have lost those before.
    if (!has_taken_out_ || now == at()) predicted.reset_after = std::max<Word>(0, clear - now);
    life_.require(d, predicted);
    REQUIRE(std::ranges::equal(d.left, left));
  }
  /// What is allowed names a window with the least.
  static void require_part(const Told& d) { REQUIRE(d.left[d.part] == std::ranges::min(d.left)); }
  void require(const Told& d) { require(d, {}, log_.left(windows(), at())); }

  /// The entry of a grant, if it still counts.
  [[nodiscard]] Entry* entry_of(const Reservation& grant) {
    if (is_forgotten()) {
      life_.saw("given back too late");
      return nullptr;
    }
    Entry* const entry = log_.find(grant.state[0], grant.state[1]);
    return entry != nullptr && entry->time > at() - longest() ? entry : nullptr;
  }
  Word take(const Reservation& grant, Word most) {
    Entry* const entry = entry_of(grant);
    if (entry == nullptr) return 0;
    if (entry != &log_.entries.back()) life_.saw("given back behind others");
    const Word taken = log_.take(*entry, most);
    if (entry == &log_.entries.back() && taken > 0) trim();
    return taken;
  }
  void trim() {
    log_.trim();
    has_taken_out_ = true;
  }

  [[nodiscard]] bool is_forgotten() const {
    return life_.tick() >= std::max(log_.until, log_.block);
  }
  /// What is written then is the first of a new log.
  void forget() {
    if (log_.stamp == 0 || !is_forgotten()) return;
    if (!life_.patient) life_.begin_history();
    log_ = {};
    judged_from_ = 0;
    has_taken_out_ = false;
  }

  /// One of the last grants, or a copy that was changed before; none if there is none.
  Reservation draw_grant() {
    if (grants_.empty()) return {};
    const std::size_t which = life_.random.below(grants_.size());
    const Reservation grant = grants_[which];
    if (!life_.random.one_in(3)) {
      grants_.erase(grants_.begin() + static_cast<std::ptrdiff_t>(which));
    }
    life_.tell("of", grant.state[0]);
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
    const Word back = take(grant, grant.granted);
    REQUIRE(limiter().cancel("k", grant) == back);
    note_back(back, grant);
  }

  void refund() {
    Reservation grant = draw_grant();
    if (!grant) return;
    const Word units = life_.random.between(0, grant.granted);
    life_.tell("units", units);
    const Word back = take(grant, units);
    REQUIRE(limiter().refund("k", grant, units) == back);
    note_back(back, grant);
  }

  /// A grant turns out to have cost less, or more.
  void settle() {
    Reservation grant = draw_grant();
    if (!grant) return;
    const Word actual = life_.random.between(0, 2 * smallest(windows()) + 1);
    const Word more = actual - grant.granted;
    life_.tell("more", more);
    if (more <= 0) {
      const Word back = take(grant, -more);
      const Settlement done = limiter().settle("k", grant, actual);
      REQUIRE((done.refunded == back && done.charged == 0));
      return note_back(back, grant);
    }
    Entry* const entry = entry_of(grant);
    const Settlement done = limiter().settle("k", grant, actual);
    REQUIRE(done.refunded == 0);
    REQUIRE(done.charged == (entry == nullptr ? 0 : more));
    REQUIRE(grant.settled == done.charged);
    if (entry == nullptr) return life_.saw("nothing charged");
    entry->units += more;
    life_.saw("charged");
    life_.changed();
  }

  void reward() {
    const Word amount = life_.random.between(0, life_.random.one_in(4) ? 100 : 6);
    life_.tell("amount", amount);
    const Word back = is_forgotten() ? 0 : log_.reward(amount, at() - longest());
    if (back > 0) has_taken_out_ = true;
    const Told d = decided(limiter().reward_step("k", amount));
    require(d);
    REQUIRE(d.words[0] == back);
    life_.changed();
  }

  void block() {
    const Word span = life_.random.between(0, 100);
    life_.tell("span", span);
    const Word now = life_.tick();
    const bool given_up = log_.is_given_up(now);
    if (given_up) log_.lose();
    const Word at = given_up ? now : this->at();
    const Told d = decided(limiter().block_step("k", Span{span}));
    if (given_up && span > 0) (void)restart(now, 0);
    if (span > 0 && !given_up) forget();
    if (span > 0 && at + span > log_.block) {
      log_.open(largest(windows()));
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
    has_taken_out_ = false;
  }

  /// Beyond max_ahead: what lies ahead becomes one entry of now, with what was let in; no interval
  /// of it is judged. Returns its number.
  Word restart(Word now, Word cost) {
    const Word units = log_.cut(now) + cost;
    const Word number = units > 0 ? log_.add(now, now, units, windows()) : 0;
    log_.block = 0;
    log_.stamp = now;
    judged_from_ = log_.entries.empty() ? 0 : log_.entries.back().number + 1;
    life_.wrote();
    life_.saw("log given up");
    return number;
  }

  Life& life_;
  std::vector<Windows> all_;
  std::vector<SlidingWindow> limiters_;
  Word most_cost_;           // of patient callers
  std::size_t present_ = 0;  // who asks
  Log log_;
  Word judged_from_ = 0;             // entries before it are not in any interval that is judged
  std::vector<Reservation> grants_;  // the last ones, and copies
  bool has_taken_out_ = false;       // newest entries
};

}  // namespace

TEST_CASE("sliding windows answer what counting all grants gives, and no window holds too much",
          "[model][sliding_window][S2][S5][L1][L2][C-001][C-002][C-003][C-004][C-005][C-012]") {
  live<SlidingWindowModel>(
      {.outcomes = {"admitted", "reserved", "refused", "refused by a window",
                    "refused by the block", "given back ahead", "given back behind others",
                    "given back", "nothing given back", "given back too late", "charged",
                    "nothing charged", "log given up"},
       .lives = 300});
}
