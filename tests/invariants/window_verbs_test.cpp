// Histories of fixed windows and of the sliding window counter in which units are given back,
// settled, rewarded and charged by hand: of what was not given back, every interval holds what the
// limit says. What is charged beyond the limit counts as far as it would have been granted; what is
// rewarded allows as much more to the intervals around it; a reset begins another history.
// Threading: single-threaded.
#include <algorithm>
#include <array>

#include "sluice/limiters/fixed_window.hpp"
#include "sluice/limiters/sliding_window_counter.hpp"
#include "tests/catch.hpp"
#include "tests/invariants/fleet.hpp"
#include "tests/invariants/ledger.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;
using namespace std::chrono_literals;

namespace {

enum Verb : std::size_t { refund, settle_less, settle_more, reward, penalize, block, reset, verbs };
constexpr const char* names[]{"refund",   "settle_less", "settle_more", "reward",
                              "penalize", "block",       "reset"};
using Seen = std::array<std::size_t, verbs>;

/// One key of a limiter by windows.
template <class Limiter>
class WindowLife {
 public:
  WindowLife(VirtualClock& clock, Random& random, const Limiter& limiter, const WindowLimit& window,
             Seen& seen)
      : clock_(clock), random_(random), limiter_(limiter), window_(window), seen_(seen) {}

  /// Answers how many hints were proven.
  std::size_t live() {
    Habits habits;
    habits.most_cost = random_.between(1, window_.limit);
    habits.most_thought = window_.span * static_cast<Word>(habits.callers) * habits.most_cost /
                          window_.limit / random_.between(1, 3);
    Asking asking{[&](Word cost) { return acquire(cost); },
                  [&](Word cost) { return limiter_.peek("k", cost); }};
    asking.meanwhile = [&] { return meddle(); };
    const Life life = test::live(clock_, random_, habits, asking);
    judge();
    return check_life(life, window_.limit);
  }

 private:
  struct Held {
    Decision decision;
    Word units;
    std::size_t entry;
  };

  static constexpr bool is_counter = std::is_same_v<Limiter, SlidingWindowCounter>;

  [[nodiscard]] Word remaining() const { return limiter_.peek("k", 0).remaining; }
  /// The windows that the limiter counts by are aligned.
  [[nodiscard]] Word window_of(Time time) const { return to_word(time) / window_.span.count(); }

  Decision acquire(Word cost) {
    const Decision d = limiter_.try_acquire("k", cost);
    CHECK((!d || d.at >= blocked_until_));
    if (d) held_.push_back({d, cost, ledger_.charge(d.at, d.at, cost)});
    return d;
  }

  bool meddle() {
    if (!random_.one_in(4)) return false;
    const std::size_t verb = random_.below(verbs);
    if (verb <= settle_more && held_.empty()) return false;
    if (verb == reset && !random_.one_in(8)) return false;
    const Word amount = random_.between(0, window_.limit);
    const Word before = remaining();
    const bool blocked = clock_.now() < blocked_until_;
    if (blocked) CHECK(before == 0);
    if (verb == block) {
      const Span span{random_.between(0, 2 * window_.span.count())};
      if (span > 0us) blocked_until_ = std::max(blocked_until_, clock_.now() + span);
      limiter_.block("k", span);
      CHECK(remaining() == (clock_.now() < blocked_until_ ? 0 : before));
    } else if (verb == reward) {
      limiter_.reward("k", amount);
      // Of a counter the units of the window before weigh less than one each.
      const Word given = is_counter || blocked ? amount : remaining() - before;
      ledger_.allow(clock_.now(), clock_.now(), given * Ledger::whole);
      rewarded_ = clock_.now();
      CHECK(remaining() >= before);
    } else if (verb == penalize) {
      limiter_.penalize("k", amount);
      charged(amount, before);
    } else if (verb == reset) {
      judge();
      limiter_.reset("k");
      ledger_ = {};
      held_.clear();
      blocked_until_ = {};
      CHECK(remaining() == window_.limit);
    } else {
      settle(verb, amount, before);
    }
    if (verb >= reward) ++seen_[verb];
    return true;
  }

  void settle(std::size_t verb, Word amount, Word before) {
    const std::size_t most = std::min<std::size_t>(held_.size(), 8);  // mostly those that count
    const std::size_t index =
        held_.size() - 1 - random_.below(random_.one_in(4) ? held_.size() : most);
    Held& held = held_[index];
    if (verb == settle_more) {
      const Settlement done = limiter_.settle(
          "k", held.decision, {.estimated = held.units, .actual = held.units + amount});
      // In a window that is not the present one they only make what follows wait.
      const bool present = window_of(held.decision.at) == window_of(clock_.now());
      CHECK((done.charged == amount || (done.charged == 0 && !present)));
      if (present) charged(amount, before);
      if (done.charged > 0) ++seen_[verb];
      return;
    }
    const Word less = std::min(amount, held.units);
    const Word back = verb == refund ? refunded(held, less, before) : settled(held, less, before);
    CHECK(back <= less);
    if (back > 0) {
      // A reward does not know whose units it gives: those from before it come back once more.
      if (held.decision.at <= rewarded_) {
        ledger_.allow(clock_.now(), clock_.now(), back * Ledger::whole);
      }
      ledger_.refund(held.entry, back * Ledger::whole, held.decision.at);
      ++seen_[verb];
    }
    held.units -= less;
  }

  /// How much came back; of a fixed window as far as it is used.
  Word refunded(const Held& held, Word amount, Word before) const {
    const Word back = limiter_.refund("k", held.decision, amount);
    if constexpr (is_counter) {
      return back;
    } else {
      CHECK((back == 0 || window_of(held.decision.at) == window_of(clock_.now())));
      return std::min(back, window_.limit - before);
    }
  }
  Word settled(const Held& held, Word amount, Word before) const {
    const Settlement done = limiter_.settle(
        "k", held.decision, {.estimated = held.units, .actual = held.units - amount});
    CHECK(done.charged == 0);
    return is_counter ? done.given_back : std::min(done.given_back, window_.limit - before);
  }

  void charged(Word amount, Word before) {
    ledger_.charge(clock_.now(), clock_.now(), std::min(amount, before));
  }

  void judge() const {
    if constexpr (is_counter) {
      check_kept(ledger_.check(window_.span, [&](const Ledger::Interval&) {
        return Ledger::Exact{limiter_.worst_case()} * Ledger::whole;
      }));
    } else {  // in each of the windows that an interval reaches into
      check_kept(ledger_.check(Span::max(), [&](const Ledger::Interval& interval) {
        const Word windows = window_of(interval.to) - window_of(interval.from) + 1;
        return Ledger::Exact{windows} * window_.limit * Ledger::whole;
      }));
    }
  }

  VirtualClock& clock_;
  Random& random_;
  const Limiter& limiter_;
  WindowLimit window_;
  Seen& seen_;
  Ledger ledger_;
  std::vector<Held> held_;
  Time rewarded_{};
  Time blocked_until_{};
};

/// Lives until every verb was seen; `live(name, window, seen)` is one.
template <class Live>
void check_verbs(Random& random, const Live& live) {
  std::size_t proven = 0;
  Seen seen{};
  const auto all_seen = [&] {
    return proven > 0 && std::ranges::all_of(seen, [](std::size_t n) { return n > 0; });
  };
  for (std::size_t i = 0; i < 2 * lives() || (!all_seen() && i < 50); ++i) {
    const WindowLimit window{random.between(1, 12), Span{random.between(1'000, 1'000'000)}};
    proven += live("w" + std::to_string(i), window, seen);
  }
  CHECK(proven > 0);
  for (std::size_t verb = 0; verb < verbs; ++verb) {
    INFO(names[verb]);
    CHECK(seen[verb] > 0);
  }
}

}  // namespace

TEST_CASE("histories of fixed windows in all their verbs keep each window's limit on every store",
          "[invariants][fixed_window][S2][S5][L1]") {
  Random random(
      "histories of fixed windows in all their verbs keep each window's limit on every store");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    check_verbs(random, [&](const std::string& name, const WindowLimit& window, Seen& seen) {
      const FixedWindow windows(store, name, window.limit, Calendar::every(window.span));
      return WindowLife(clock, random, windows, window, seen).live();
    });
  });
}

TEST_CASE(
    "histories of the sliding window counter in all its verbs stay below its worst case on every "
    "store",
    "[invariants][sliding_window_counter][S2][S5][L1]") {
  Random random(
      "histories of the sliding window counter in all its verbs stay below its worst case on every "
      "store");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    check_verbs(random, [&](const std::string& name, const WindowLimit& window, Seen& seen) {
      const SlidingWindowCounter counter(store, name, window);
      return WindowLife(clock, random, counter, window, seen).live();
    });
  });
}
