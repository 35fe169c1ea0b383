// Histories of one sliding window counter under limiters of several limits and spans, side by side
// or one after another: every interval is judged by the largest limit and the fastest rate of those
// in use, hints by the quota of who was told, and all stores must answer alike. A life that breaks
// something is told as the fewest turns that still do. Threading: single-threaded.
#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "sluice/limiters/sliding_window_counter.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/invariants/fleet.hpp"
#include "tests/invariants/ledger.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;
using namespace std::chrono_literals;

namespace {

enum Verb : std::size_t { take, refund, settle_less, settle_more, penalize, reward, block, verbs };
constexpr const char* names[]{"take",     "refund", "settle_less", "settle_more",
                              "penalize", "reward", "block"};

/// What happened at least once in the lives of a test.
struct Seen {
  std::array<std::size_t, verbs> verb{};
  std::size_t proven = 0;   // hints
  std::size_t foreign = 0;  // of them those that were told over another span's counts
  std::size_t changes = 0;  // grants of another span than the one before

  [[nodiscard]] bool all() const {
    return foreign > 0 && changes > 0 && std::ranges::all_of(verb, [](auto n) { return n > 0; });
  }
};

/// One caller's turn; what it asks depends on the answers so far.
struct Turn {
  std::size_t limiter;
  Verb verb;
  Word cost;     // in thousandths of the limit; 0: all that remains
  Word gap;      // in thousandths of `gap_of`'s span
  Word gap_of;   // a limiter
  bool patient;  // waits for its hint, if it was refused
};

/// A life, as drawn: it is lived on every store.
struct Script {
  std::vector<WindowLimit> windows;
  std::vector<Turn> turns;
};

std::vector<WindowLimit> draw_windows(Random& random) {
  const std::array<Word, 4> bases{1, 10, 1'000, 10'000'000};
  const Word base = bases[random.below(bases.size())];
  const Word most = random.one_in(2) ? 12 : 500;
  std::vector<WindowLimit> windows;
  for (Word i = random.between(2, 3); i > 0; --i) {
    Word span = base * random.between(1, random.one_in(2) ? 8 : 60);
    if (random.one_in(2)) span += random.between(0, base);
    if (!windows.empty() && random.one_in(6)) span = windows.front().span.count();
    windows.push_back({random.between(1, random.one_in(2) ? 12 : most), Span{span}});
  }
  return windows;
}

Script draw_script(Random& random) {
  Script script{draw_windows(random), {}};
  const std::size_t limiters = script.windows.size();
  const bool in_turn = random.one_in(2);  // one limiter after another
  const bool verbs_too = random.one_in(2);
  const std::uint64_t greed = 1 + random.below(3);
  const Word hurry = random.one_in(3) ? 1'000 : random.between(1, 200);
  std::size_t limiter = random.below(limiters);
  for (std::size_t i = 0; i < 150; ++i) {
    if (!in_turn || random.one_in(15)) limiter = random.below(limiters);
    Turn turn{.limiter = limiter,
              .verb = verbs_too && random.one_in(3) ? static_cast<Verb>(random.below(verbs)) : take,
              .cost = random.one_in(greed) ? 0 : random.between(0, 1'000),
              .gap = random.one_in(3) ? 0 : random.between(0, hurry),
              .gap_of = static_cast<Word>(random.below(limiters)),
              .patient = random.one_in(4)};
    if (turn.verb >= penalize && !random.one_in(3)) turn.verb = take;
    script.turns.push_back(turn);
  }
  return script;
}

class MixedLife {
 public:
  MixedLife(Store& store, VirtualClock& clock, const Script& script, const std::string& name,
            Seen& seen)
      : clock_(clock), script_(script), seen_(seen) {
    for (const WindowLimit& window : script.windows) limiters_.emplace_back(store, name, window);
  }

  /// Answers all that it was answered.
  std::vector<Word> live() {
    for (const Turn& turn : script_.turns) {
      act(turn);
      clock_.advance(window(static_cast<std::size_t>(turn.gap_of)).span * turn.gap / 1'000);
      // A store may forget what the last who wrote would count no more; others would not.
      if (clock_.now() >= kept_until_) begin_anew();
    }
    judge();
    return answers_;
  }
  /// The first thing that was not as it must be.
  [[nodiscard]] const std::optional<std::string>& flaw() const { return flaw_; }

 private:
  struct Held {
    std::size_t limiter;
    Decision decision;
    Word units;
    std::size_t entry;
  };
  struct Use {
    Time at;
    std::size_t limiter;
  };

  [[nodiscard]] const WindowLimit& window(std::size_t i) const { return script_.windows[i]; }
  [[nodiscard]] const SlidingWindowCounter& counter(const Turn& turn) const {
    return limiters_[turn.limiter];
  }
  [[nodiscard]] Word remaining(const Turn& turn) const {
    return counter(turn).peek("k", 0).remaining;
  }
  void expect(bool fine, const char* text) {
    if (!fine && !flaw_) flaw_ = text;
  }

  void act(const Turn& turn) {
    const Word left = remaining(turn);
    answers_.push_back(left);
    const Word limit = window(turn.limiter).limit;
    const Word amount = std::max<Word>(1, turn.cost == 0 ? left : turn.cost * limit / 1'000);
    switch (turn.verb) {
      case take:
        ask(turn, amount);
        return;
      case penalize:
        wrote(turn);  // it may change the span of what is kept
        note(counter(turn).penalize("k", amount));
        charged(turn, amount, left);
        return;
      case reward:
        wrote(turn);
        note(counter(turn).reward("k", amount));
        ledger_.allow(clock_.now(), clock_.now(), amount * Ledger::whole);
        held_.clear();
        ++seen_.verb[reward];
        return;
      case block:
        shut(turn);
        return;
      default:
        settle(turn, amount, left);
    }
  }

  void ask(const Turn& turn, Word cost) {
    Decision d = counter(turn).try_acquire("k", cost);
    note(d);
    if (!d && turn.patient && clock_.now() + d.retry_after < kept_until_) {
      d = wait_for(turn, cost, d.retry_after);
    }
    if (!d) return;
    expect(d.at >= closed_until_, "granted while blocked");
    held_.push_back({turn.limiter, d, cost, ledger_.charge(d.at, d.at, cost)});
    wrote(turn);
    if (window(turn.limiter).span != window(last_).span) ++seen_.changes;
    last_ = turn.limiter;
    ++seen_.verb[take];
  }

  /// Refused until just before its hint, whatever the others look at meanwhile, and granted at it.
  Decision wait_for(const Turn& turn, Word cost, Span hint) {
    expect(hint > 0us, "refused with no hint");
    const Time due = clock_.now() + hint;
    clock_.advance((hint - 1us) / 2);
    for (const SlidingWindowCounter& other : limiters_) {
      note(other.peek("k", 1));
      note(other.try_acquire("k", 0));
    }
    clock_.set(due - 1us);
    const Decision early = counter(turn).try_acquire("k", cost);
    note(early);
    expect(!early && early.retry_after == 1us, "not refused a tick before the hint");
    clock_.set(due);
    const Decision granted = counter(turn).try_acquire("k", cost);
    note(granted);
    expect(granted.allowed, "refused at the hint");
    ++seen_.proven;
    if (window(turn.limiter).span != window(last_).span) ++seen_.foreign;
    return granted;
  }

  void note(const Decision& d) {
    answers_.insert(answers_.end(),
                    {d.allowed ? 1 : 0, d.remaining, d.retry_after.count(), d.reset_after.count()});
  }

  /// What is charged beyond what remains only makes others wait.
  void charged(const Turn& turn, Word amount, Word left) {
    ledger_.charge(clock_.now(), clock_.now(), std::min(amount, left));
    ++seen_.verb[turn.verb];
  }

  void shut(const Turn& turn) {
    const Span span = window(turn.limiter).span * turn.cost / 500;
    note(counter(turn).block("k", span));
    if (span > 0us) closed_until_ = std::max(closed_until_, clock_.now() + span);
    kept_until_ = std::max(kept_until_, closed_until_);
    ++seen_.verb[block];
  }

  void settle(const Turn& turn, Word amount, Word left) {
    if (held_.empty()) return;
    const auto newest = std::min<std::size_t>(held_.size(), 6);
    Held& held = held_[held_.size() - 1 - static_cast<std::size_t>(turn.gap) % newest];
    const SlidingWindowCounter& counter = limiters_[held.limiter];
    if (turn.verb == settle_more) {
      wrote(turn);
      used_.back().limiter = held.limiter;
      const Word before = counter.peek("k", 0).remaining;
      const Settlement done = counter.settle(
          "k", held.decision, {.estimated = held.units, .actual = held.units + amount});
      answers_.push_back(done.charged);
      const Word width = window(held.limiter).span.count();
      const bool present = to_word(held.decision.at) / width == to_word(clock_.now()) / width;
      if (done.charged > 0 && present) charged(turn, amount, before);
      return;
    }
    const Word less = std::min(amount, held.units);
    Word back = 0;
    if (turn.verb == refund) {
      back = counter.refund("k", held.decision, less);
    } else {
      back =
          counter.settle("k", held.decision, {.estimated = held.units, .actual = held.units - less})
              .given_back;
    }
    answers_.push_back(back);
    expect(back <= less, "more came back than was given");
    expect(remaining(turn) >= left, "less remains after units came back");
    held.units -= less;
    ledger_.give_back(held.entry, back * Ledger::whole, held.decision.at);
    if (back > 0) ++seen_.verb[turn.verb];
  }

  void wrote(const Turn& turn) {
    used_.push_back({clock_.now(), turn.limiter});
    const Span kept = 2 * window(turn.limiter).span + Span{SlidingWindowCounterRule::max_ahead};
    const Time until = clock_.now() + kept;
    kept_until_ = kept_until_ == Time::max() ? until : std::max(kept_until_, until);
  }

  void begin_anew() {
    limiters_.front().reset("k");
    held_.clear();
    kept_until_ = Time::max();
    closed_until_ = Time{};
  }

  /// The largest limit and the fastest rate of the limiters that were used in an interval.
  void judge() {
    const Checked checked = ledger_.check(Span::max(), [&](const Ledger::Interval& interval) {
      Word limit = 0;
      Ledger::Exact flow = 0;
      const Ledger::Exact length = (interval.to - interval.from).count();
      for (const Use& use : used_) {
        if (use.at < interval.from || use.at > interval.to) continue;
        const WindowLimit& one = window(use.limiter);
        limit = std::max(limit, one.limit);
        flow = std::max(flow, length * one.limit * Ledger::whole / one.span.count());
      }
      return Ledger::Exact{limit} * Ledger::whole + flow;
    });
    if (checked && !flaw_) flaw_ = checked->what;
  }

  VirtualClock& clock_;
  const Script& script_;
  Seen& seen_;
  std::vector<SlidingWindowCounter> limiters_;
  std::vector<Use> used_;
  Ledger ledger_;
  std::vector<Held> held_;
  std::vector<Word> answers_;
  std::optional<std::string> flaw_;
  std::size_t last_ = 0;
  Time closed_until_{};
  Time kept_until_ = Time::max();
};

std::optional<std::string> flaw_of(const Script& script) {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  Seen seen;
  MixedLife life(*store, clock, script, "q", seen);
  life.live();
  return life.flaw();
}

/// The fewest turns in which something still breaks. REQUIRES: it breaks in virtual time.
Script shrunk(Script script) {
  for (std::size_t size = script.turns.size() / 2; size > 0; size /= 2) {
    for (std::size_t from = 0; from + size <= script.turns.size();) {
      Script fewer = script;
      const auto first = fewer.turns.begin() + static_cast<std::ptrdiff_t>(from);
      fewer.turns.erase(first, first + static_cast<std::ptrdiff_t>(size));
      if (flaw_of(fewer)) {
        script = fewer;
      } else {
        from += size;
      }
    }
  }
  return script;
}

std::string described(const Script& script) {
  std::string text;
  for (const WindowLimit& window : script.windows) {
    text += std::to_string(window.limit) + " in " + std::to_string(window.span.count()) + " us, ";
  }
  if (!flaw_of(script)) return text;
  const Script least = shrunk(script);
  text += "broken by:";
  for (const Turn& turn : least.turns) {
    text += "\n  limiter " + std::to_string(turn.limiter) + ": " + names[turn.verb] + " " +
            std::to_string(turn.cost) + (turn.patient ? " patiently" : "") + ", then " +
            std::to_string(turn.gap) + "/1000 of the span of " + std::to_string(turn.gap_of);
  }
  return text + "\n" + *flaw_of(least);
}

}  // namespace

TEST_CASE(
    "histories of one sliding window counter under several quotas keep the largest limit and the "
    "fastest "
    "rate on every store",
    "[invariants][sliding_window_counter][S2][S5][L1]") {
  Random random(
      "histories of one sliding window counter under several quotas keep the largest limit and the "
      "fastest rate on every store");
  CAPTURE(random.repeat());
  std::vector<Script> scripts;
  const std::size_t wanted = 10 * lives();
  for (std::size_t i = 0; i < std::max<std::size_t>(60, wanted); ++i) {
    scripts.push_back(draw_script(random));
  }
  std::vector<std::vector<Word>> first;
  for_each_store([&](Store& store, VirtualClock& clock) {
    Seen seen;
    for (std::size_t i = 0; i < wanted || (!seen.all() && i < scripts.size()); ++i) {
      MixedLife life(store, clock, scripts[i], "q" + std::to_string(i), seen);
      const std::vector<Word> answers = life.live();
      INFO("life " << i << ": " << (life.flaw() ? described(scripts[i]) : ""));
      CHECK(life.flaw().value_or("") == "");
      if (i == first.size()) first.push_back(answers);
      CHECK(answers == first[i]);
    }
    CHECK(seen.foreign > 0);
    CHECK(seen.changes > 0);
    for (std::size_t verb = 0; verb < verbs; ++verb) {
      INFO(names[verb]);
      CHECK(seen.verb[verb] > 0);
    }
  });
}

TEST_CASE("many lives of one sliding window counter under several quotas keep the largest",
          "[invariants][sliding_window_counter][S2][L1][property]") {
  Random random("many lives of one sliding window counter under several quotas keep the largest");
  CAPTURE(random.repeat());
  for (std::size_t i = scaled(3000); i > 0; --i) {
    const Script script = draw_script(random);
    if (!flaw_of(script)) continue;
    FAIL_CHECK(described(script));
    break;
  }
}
