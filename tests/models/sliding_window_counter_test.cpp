// The model of the sliding window counter: units by aligned window, and the estimate in wide
// integers; limiters of several limits share the key. Threading: single-threaded.
#include "sluice/limiters/sliding_window_counter.hpp"

#include <algorithm>
#include <map>

#include "sluice/virtual_store.hpp"
#include "tests/models/driver.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;

namespace {

__extension__ typedef __int128 Wide;
using Rule = SlidingWindowCounterRule;

/// The definition: what every window counts, and the last of them that was written. A clock before
/// that stands at its beginning.
struct Counts {
  Word span = 1;
  Word window = 0;  // number
  std::map<Word, Word> units{};

  [[nodiscard]] Word of(Word number) const {
    const auto found = units.find(number);
    return found == units.end() ? 0 : found->second;
  }
  [[nodiscard]] Word at(Word now) const { return std::max(now, window * span); }
  [[nodiscard]] Word estimate(Word at) const {
    const Word number = at / span;
    const Wide weight = Wide{of(number - 1)} * (span - at % span);
    return of(number) + static_cast<Word>((weight + span - 1) / span);
  }
  /// The first instant from `at` on at which no more than `room` counts: by halving, as without
  /// requests the estimate only falls.
  [[nodiscard]] Word fits_at(Word at, Word room) const {
    if (estimate(at) <= room) return at;
    Word low = at;
    Word high = (at / span + 2) * span;
    while (high - low > 1) {
      const Word middle = low + (high - low) / 2;
      (estimate(middle) <= room ? high : low) = middle;
    }
    return high;
  }
  /// When nothing counts any more.
  [[nodiscard]] Word clear_at(Word at) const {
    const Word number = at / span;
    return of(number) > 0 ? (number + 2) * span : of(number - 1) > 0 ? (number + 1) * span : 0;
  }
  /// Adds to a window, or takes off as much as it has; returns how much.
  Word change(Word number, Word amount) {
    const Word before = of(number);
    const Word after = std::clamp(before + amount, Word{0}, Rule::max_limit);
    if (after != before) units[number] = after;
    return std::abs(after - before);
  }
};

class CounterModel final : public Model {
 public:
  explicit CounterModel(Life& life) : life_(life) {
    Random& random = life.random;
    const bool large = !life.patient && random.one_in(3);
    counts_.span = random.between(1, large ? Rule::max_span : random.one_in(2) ? 90 : 1'000'000);
    const Word most = large ? Rule::max_limit : random.one_in(2) ? 10 : 60;
    for (std::size_t count = life.patient ? 1 : 1 + random.below(3); count > 0; --count) {
      const WindowLimit window{random.between(1, most), Span{counts_.span}};
      limiters_.emplace_back(life.store, life.name, window);
      most_limit_ = std::max(most_limit_, window.limit);
    }
    most_cost_ = random.between(1, most_limit_);
    if (random.one_in(2)) life.clock.set(to_time(random.between(0, 3 * counts_.span)));
  }

  std::vector<Verb> verbs() override {
    return {{"acquire", 12, [this] { ask(true); }}, {"peek", 3, [this] { ask(false); }, true},
            {"refund", 3, [this] { refund(); }},    {"settle", 3, [this] { settle(); }},
            {"reward", 1, [this] { reward(); }},    {"penalize", 1, [this] { penalize(); }},
            {"block", 1, [this] { block(); }},      {"reset", 1, [this] { reset(); }}};
  }
  Moves moves() const override {
    const Span span{counts_.span};
    return {span / 3 + Span{1}, 3 * span,
            std::min(life_.draw_back(span), life_.now().time_since_epoch())};
  }
  std::optional<Time> edge() const override {
    const Word edge = counts_.window * counts_.span - Rule::max_ahead;
    return edge > 0 ? std::optional(to_time(edge)) : std::nullopt;
  }
  Callers callers() const override {
    return {most_cost_, Span{counts_.span * 6 * most_cost_ / most_limit_}};
  }
  Decision ask(Word cost) override { return ask(limiters_[0], cost, true); }

  /// Of what was not given back again, any interval holds the worst case of the largest limit, and
  /// what was rewarded.
  void judge(const History& history) override {
    History kept;
    for (const Grant& grant : grants_) {
      kept.push_back(
          {.at = grant.counted, .cost = grant.units, .allowed = true, .effective = grant.counted});
    }
    const Word most = Rule::worst_case(most_limit_, counts_.span);
    life_.keep(check_window(kept, Span{counts_.span}, most + rewarded_));
    if (life_.patient) life_.keep(check_remaining(history, most_limit_));
  }

 private:
  struct Grant {
    Decision decision;
    Word units;
    Time counted;
  };

  [[nodiscard]] bool is_closed() const { return life_.tick() < closed_; }
  /// A window that begins more than max_ahead after a clock that was set back is given up: as much
  /// of it counts as lets this request in.
  [[nodiscard]] bool is_given_up() const {
    return counts_.window * counts_.span > life_.tick() + Rule::max_ahead;
  }
  [[nodiscard]] Counts present(Word limit, Word cost) const {
    const Word now = life_.tick();
    if (!is_given_up()) {
      Counts counts = counts_;
      counts.window = counts.at(now) / counts.span;
      return counts;
    }
    const Word all = counts_.of(counts_.window) + counts_.of(counts_.window - 1);
    const Word window = now / counts_.span;
    return {counts_.span, window, {{window, std::min(all, limit - cost)}}};
  }
  void keep(const Counts& counts) {
    if (is_given_up()) {
      life_.saw("window given up");
      grants_.clear();
    }
    counts_ = counts;
    // What came before the window before counts no more, whatever the clock does.
    std::erase_if(counts_.units, [&](const auto& unit) { return unit.first + 1 < counts.window; });
    life_.wrote();
  }
  [[nodiscard]] Predicted standing(const SlidingWindowCounter& limiter,
                                   const Counts& counts) const {
    const Word now = life_.tick();
    const Word at = counts.at(now);
    const Word left = std::max<Word>(0, limiter.window().limit - counts.estimate(at));
    return {.remaining = is_closed() ? 0 : left,
            .reset_after = std::max({now, counts.clear_at(at), closed_}) - now};
  }

  const SlidingWindowCounter& limiter() { return life_.draw("limiter", limiters_); }

  /// Often for all that is left.
  void ask(bool spends) {
    const SlidingWindowCounter& one = limiter();
    const Word limit = one.window().limit;
    const Counts counts = present(limit, 0);
    const Word left = std::max<Word>(0, limit - counts.estimate(counts.at(life_.tick())));
    const Word most = life_.random.one_in(3) ? limit : std::max<Word>(1, limit / 4);
    ask(one, life_.random.one_in(4) ? left : life_.random.between(0, most), spends);
  }
  Decision ask(const SlidingWindowCounter& one, Word cost, bool spends) {
    life_.tell("cost", cost);
    const Word now = life_.tick();
    const Word room = one.window().limit - cost;
    Counts counts = present(one.window().limit, cost);
    const Word at = counts.at(now);
    const Decision d = spends ? one.try_acquire("k", cost) : one.peek("k", cost);
    if (spends) life_.note(d, cost);
    Predicted predicted = standing(one, counts);
    if (is_closed() || counts.estimate(at) > room) {
      const bool fits = counts.estimate(at) <= room;
      predicted.allowed = false;
      predicted.retry_after = std::max(fits ? now : counts.fits_at(at, room), closed_) - now;
      life_.saw(!is_closed() ? "refused by the estimate" : "refused by a block");
      if (is_closed() && now + predicted.retry_after > closed_) life_.saw("refused beyond a block");
    } else if (spends && cost > 0) {
      counts.change(counts.window, cost);
      keep(counts);
      closed_ = 0;
      predicted = standing(one, counts);
      grants_.push_back({d, cost, to_time(at)});
    }
    life_.require(d, predicted);
    return d;
  }

  /// Changes the window of `taken`, if that is the present one or the one before; returns by how
  /// much.
  Word change(const SlidingWindowCounter& one, Time taken, Word amount) {
    Counts counts = present(one.window().limit, 0);
    Word number = to_word(taken) / counts.span;
    if (amount > 0 && number > counts.window) number = counts.window;
    if (number > counts.window || number + 1 < counts.window) return 0;
    const Word changed = counts.change(number, amount);
    if (changed > 0) {
      life_.saw(number == counts.window ? "changed in the window" : "changed in the one before");
      keep(counts);
    }
    life_.changed();
    return changed;
  }

  void refund() {
    const SlidingWindowCounter& one = limiter();
    Grant* const grant = life_.draw_recent(grants_);
    if (grant == nullptr) return;
    const Word units = life_.random.between(0, grant->units);
    life_.tell("units", units);
    Reservation granted(grant->decision, grant->units);
    const Word back = one.refund("k", granted, units);
    grant->units -= back;
    const Time taken = grant->decision.at;
    REQUIRE(back == change(one, taken, -units));
    life_.saw(back > 0 ? "refunded" : "nothing refunded");
  }

  void settle() {
    const SlidingWindowCounter& one = limiter();
    Grant* const grant = life_.draw_recent(grants_);
    if (grant == nullptr) return;
    const Word units = grant->units;
    const Word actual = life_.random.between(0, 2 * units);
    life_.tell("more", actual - units);
    const Time taken = grant->decision.at;
    Reservation granted(grant->decision, units);
    const Settlement done = one.settle("k", granted, actual);
    grant->units -= done.refunded;
    const Word changed = change(one, taken, actual - units);
    REQUIRE(done.refunded == (actual <= units ? changed : 0));
    REQUIRE(done.charged == (actual > units ? changed : 0));
    if (done.charged > 0) life_.saw("charged");
  }

  Word draw_amount(const SlidingWindowCounter& one) {
    const Word limit = one.window().limit;
    const Word most = life_.random.one_in(4) ? 3 * limit : 1 + limit / 4;
    const Word amount = life_.random.between(0, std::min(most, Rule::max_limit));
    life_.tell("amount", amount);
    return amount;
  }

  /// Off the present window first, then off the one before.
  void reward() {
    const SlidingWindowCounter& one = limiter();
    const Word amount = draw_amount(one);
    Counts counts = present(one.window().limit, 0);
    const Decision d = one.reward("k", amount);
    const Word first = counts.change(counts.window, -amount);
    const Word rest = counts.change(counts.window - 1, first - amount);
    if (first + rest > 0) keep(counts);
    if (rest > 0) life_.saw("rewarded in the window before");
    rewarded_ += first + rest;
    life_.require(d, standing(one, counts));
    life_.changed();
  }
  void penalize() {
    const SlidingWindowCounter& one = limiter();
    const Word amount = draw_amount(one);
    Counts counts = present(one.window().limit, 0);
    const Decision d = one.penalize("k", amount);
    if (counts.change(counts.window, amount) > 0) keep(counts);
    life_.require(d, standing(one, counts));
  }

  void block() {
    const SlidingWindowCounter& one = limiter();
    const Word span = counts_.span;
    const Word length = life_.random.between(0, life_.random.one_in(3) ? 3 * span : 1 + span / 4);
    life_.tell("length", length);
    const Decision d = one.block("k", Span{length});
    if (length > 0 && life_.tick() + length > closed_) {
      closed_ = life_.tick() + length;
      life_.wrote_part();  // it writes no counts
    }
    life_.require(d, standing(one, present(one.window().limit, 0)));
    life_.due(to_time(closed_));
  }

  void reset() {
    if (!life_.random.one_in(3)) return;
    life_.begin_history();
    limiter().reset("k");
    counts_ = {counts_.span, 0, {}};
    closed_ = 0;
    grants_.clear();
    rewarded_ = 0;
  }

  Life& life_;
  std::vector<SlidingWindowCounter> limiters_;
  Word most_limit_ = 0;
  Word most_cost_ = 1;  // of patient callers
  Counts counts_;
  Word closed_ = 0;  // the end of a block
  std::vector<Grant> grants_;
  Word rewarded_ = 0;
};

}  // namespace

TEST_CASE("sliding window counters answer by their estimate, and stay below the worst case",
          "[model][sliding_window_counter][S2][S5][L1]") {
  live<CounterModel>(
      {.outcomes = {"admitted", "refused", "refused by the estimate", "refused by a block",
                    "refused beyond a block", "changed in the window", "changed in the one before",
                    "refunded", "nothing refunded", "charged", "rewarded in the window before",
                    "window given up"}});
}

TEST_CASE("the worst case in any window is reached", "[model][sliding_window_counter]") {
  for (const Word limit : {2, 7, 10, 50}) {
    for (const Word span : {1, 2, 3, 5, 8, 20}) {
      VirtualClock clock(to_time(span - 1));
      const auto store = make_virtual_store(clock);
      const SlidingWindowCounter limiter(*store, "s", {limit, Span{span}});
      Word sum = limiter.try_acquire("k", limit) ? limit : 0;
      clock.set(to_time(2 * span - 2));  // the last instant whose window holds the first one
      const Word rest = limiter.peek("k", 0).remaining;
      if (limiter.try_acquire("k", rest)) sum += rest;
      INFO(limit << " in " << span << " us");
      CHECK(sum == limiter.worst_case());
    }
  }
}
