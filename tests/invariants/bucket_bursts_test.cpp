// Histories of one token bucket under limiters of several bursts, side by side or one after
// another: every interval is judged by the largest burst of those in use, hints by the quota of who
// was told, and all stores must answer alike. Threading: single-threaded.
#include <algorithm>
#include <array>
#include <vector>

#include "sluice/limiters/token_bucket.hpp"
#include "tests/catch.hpp"
#include "tests/invariants/fleet.hpp"
#include "tests/invariants/ledger.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;
using namespace std::chrono_literals;

namespace {

enum Verb : std::size_t {
  take,
  reserve,
  borrow,
  up_to,
  cancel,
  refund,
  settle_less,
  settle_more,
  block,
  penalize,
  verbs
};
constexpr const char* names[]{"take",   "reserve",     "borrow",      "up_to", "cancel",
                              "refund", "settle_less", "settle_more", "block", "penalize"};

/// What happened at least once in the lives of a test.
struct Seen {
  std::array<std::size_t, verbs> verb{};
  std::size_t proven = 0;   // hints
  std::size_t foreign = 0;  // grants of another limiter than the one before

  [[nodiscard]] bool all() const {
    return proven > 0 && foreign > 0 &&
           std::ranges::all_of(verb, [](std::size_t n) { return n > 0; });
  }
};

/// One caller's turn; what it draws from depends on the answers so far.
struct Turn {
  std::size_t limiter;
  Verb verb;
  Word cost;     // in thousandths of the burst
  Word wait;     // in thousandths of the longest
  Word gap;      // in thousandths of `gap_of`'s time to fill
  Word gap_of;   // a limiter
  bool patient;  // waits for its hint, if it was refused
};

/// A life, as drawn: it is lived on every store.
struct Script {
  std::vector<Quota> quotas;
  BucketOptions options;
  bool in_turn = false;  // one limiter after another
  std::vector<Turn> turns;
};

Quota draw_rate(Random& random) {
  static constexpr RateBound rates[]{{0, 10, 1s}, {0, 30, 1s}, {0, 50, 60s},       {0, 97, 1s},
                                     {0, 25, 5s}, {0, 7, 13s}, {0, 1'000, 86'400s}};
  if (random.one_in(4)) {
    return Quota::per(random.between(1, 200), Span{random.between(1'000'000, 6'000'000)}).burst(1);
  }
  const RateBound& rate = rates[random.below(std::size(rates))];
  return Quota::per(rate.units, rate.period).burst(1);
}

Script draw_script(Random& random) {
  Script script;
  const Quota rate = draw_rate(random);
  const std::size_t limiters = random.one_in(3) ? 3 : 2;
  const Word most = random.one_in(2) ? 20 : 500;
  for (std::size_t i = 0; i < limiters; ++i) {
    script.quotas.push_back(rate.burst(random.between(1, most)));
  }
  if (random.one_in(4)) {
    script.options.refill = Refill::per_interval(Span{random.between(2, 2'000'000)});
  }
  if (random.one_in(3)) script.options.longest = Span{random.between(60'000'000, 3'600'000'000)};
  script.in_turn = random.one_in(2);
  const bool waits = !random.one_in(3);
  std::size_t limiter = random.below(limiters);
  for (std::size_t i = 0; i < 250; ++i) {
    if (!script.in_turn || random.one_in(25)) limiter = random.below(limiters);
    Turn turn{.limiter = limiter,
              .verb = random.one_in(2) ? take : static_cast<Verb>(random.below(verbs)),
              .cost = random.one_in(3) ? 0 : random.between(0, 1'000),
              .wait = waits ? random.between(0, random.one_in(4) ? 1'000 : 50) : 0,
              .gap = random.one_in(3) ? 0 : random.between(0, random.one_in(3) ? 1'000 : 60),
              .gap_of = static_cast<Word>(random.below(limiters)),
              .patient = random.one_in(4)};
    if (turn.verb >= settle_more && !random.one_in(3)) turn.verb = take;
    script.turns.push_back(turn);
  }
  return script;
}

class MixedLife {
 public:
  MixedLife(Store& store, VirtualClock& clock, const Script& script, const std::string& name,
            Seen& seen)
      : clock_(clock), script_(script), seen_(seen) {
    for (const Quota& quota : script.quotas) {
      limiters_.emplace_back(store, name, quota, script.options);
    }
  }

  /// Answers all that it was answered.
  std::vector<Word> live() {
    for (const Turn& turn : script_.turns) {
      act(turn);
      const Quota& quota = script_.quotas[static_cast<std::size_t>(turn.gap_of)];
      clock_.advance(quota.full_after() / 1'000 * turn.gap);
      // A store may forget what the last who wrote would find full; others would not.
      if (clock_.now() >= kept_until_) begin_anew();
    }
    judge();
    return answers_;
  }

 private:
  struct Held {
    std::size_t limiter;
    Reservation reservation;
    std::size_t entry;
  };
  struct Use {
    Time at;
    std::size_t limiter;
  };

  [[nodiscard]] const TokenBucket& bucket(const Turn& turn) const {
    return limiters_[turn.limiter];
  }
  [[nodiscard]] const Quota& quota(const Turn& turn) const { return script_.quotas[turn.limiter]; }
  [[nodiscard]] Word cost(const Turn& turn) const {
    return std::max(Word{1}, turn.cost * quota(turn).capacity() / 1'000);
  }
  [[nodiscard]] bool in_lumps() const { return script_.options.refill.interval() > 1us; }

  void act(const Turn& turn) {
    switch (turn.verb) {
      case take:
      case reserve:
      case borrow:
      case up_to:
        ask(turn);
        return;
      case penalize:
        charge(turn, [&](Word amount) { bucket(turn).penalize("k", amount); });
        return;
      case block:
        shut(turn);
        return;
      case settle_more:
        if (top_.empty()) return;
        charge(turn, [&](Word amount) {
          Reservation& paid = top_.back().reservation;
          bucket(turn).settle("k", paid, paid.granted + paid.settled + amount);
        });
        return;
      default:
        return_units(turn);
    }
  }

  Reservation asked(const Turn& turn) {
    const Span wait = bucket(turn).longest() / 1'000 * turn.wait;
    if (turn.verb == reserve) return bucket(turn).reserve("k", cost(turn), wait);
    if (turn.verb == borrow) return bucket(turn).borrow("k", cost(turn), wait);
    if (turn.verb == up_to) {
      return bucket(turn).try_acquire_up_to("k", cost(turn), std::min<Word>(2, cost(turn)));
    }
    Reservation r;
    r.decision = bucket(turn).try_acquire("k", cost(turn));
    if (r) r.granted = cost(turn);
    return r;
  }

  void ask(const Turn& turn) {
    Reservation r = asked(turn);
    note(r);
    const bool kept = clock_.now() + r.decision.retry_after < kept_until_;
    if (!r && turn.patient && kept) r = wait_for(turn, r.decision.retry_after);
    if (!r) return;
    CHECK(r.at() >= closed_until_);
    const std::size_t entry = ledger_.charge(clock_.now(), r.at(), r.granted);
    wrote(turn);
    // What was taken plainly has no record.
    if (turn.verb != take) top_.push_back({turn.limiter, r, entry});
    ++seen_.verb[turn.verb];
    if (last_ != turn.limiter) ++seen_.foreign;
    last_ = turn.limiter;
  }

  /// Refused until just before its hint, whatever the others look at meanwhile, and granted at it.
  Reservation wait_for(const Turn& turn, Span hint) {
    const Time due = clock_.now() + hint;
    clock_.advance((hint - 1us) / 2);
    for (const TokenBucket& other : limiters_) {
      note(other.peek("k", 1));
      note(other.peek("k", other.quota().capacity()));
    }
    clock_.set(due - 1us);
    const Reservation early = asked(turn);
    note(early);
    CHECK_FALSE(early);
    CHECK(early.decision.retry_after == 1us);
    clock_.set(due);
    Reservation granted = asked(turn);
    note(granted);
    CHECK(granted);
    ++seen_.proven;
    return granted;
  }

  void note(const Decision& d) {
    answers_.insert(answers_.end(),
                    {d.allowed ? 1 : 0, d.remaining, d.retry_after.count(), d.reset_after.count()});
  }
  void note(const Reservation& r) {
    note(r.decision);
    answers_.push_back(r.granted);
  }

  [[nodiscard]] Span full_after(const Turn& turn) {
    const Decision d = bucket(turn).peek("k", 0);
    note(d);
    return d.reset_after;
  }
  [[nodiscard]] Word millionths_in(const Turn& turn, Span span) const {
    return static_cast<Word>(Ledger::Exact{span.count()} * quota(turn).refill() * Ledger::whole /
                             quota(turn).period());
  }

  /// What is charged whatever is there counts, unit by unit, when it would have been granted: once
  /// no more is spent than the burst.
  template <class Charge>
  void charge(const Turn& turn, Charge make) {
    // In lumps nobody could see whether what is overdrawn was charged.
    if (in_lumps() && !bucket(turn).peek("k", 0)) return;
    const Span before = full_after(turn);
    const Span first = bucket(turn).peek("k", 1).retry_after;
    const Word amount = std::min<Word>(cost(turn), 9);
    make(amount);
    const Span more = full_after(turn) - before;
    CHECK(more >= 0us);
    if (more > 0us || in_lumps()) wrote(turn);
    top_.clear();
    ++seen_.verb[turn.verb];
    if (in_lumps()) return;  // what is left of a lump cannot be seen
    const Word charged = std::min(amount, millionths_in(turn, more + 1us) / Ledger::whole);
    const Word period = quota(turn).period();
    const Word refill = quota(turn).refill();
    for (Word i = 1; i <= charged; ++i) {
      const Span over = before + Span{(i - quota(turn).capacity()) * period / refill};
      ledger_.charge(clock_.now(), clock_.now() + std::max(first, over), 1);
    }
  }

  void wrote(const Turn& turn) {
    used_.push_back({clock_.now(), turn.limiter});
    kept_until_ = clock_.now() + quota(turn).full_after() + bucket(turn).longest();
    top_.clear();
  }

  void begin_anew() {
    limiters_.front().reset("k");
    top_.clear();
    kept_until_ = Time::max();
  }

  void shut(const Turn& turn) {
    // What a larger burst is owed is then kept for as long as this one needs.
    if (!bucket(turn).peek("k", 0)) return;
    const Span span =
        (bucket(turn).longest() - script_.options.refill.interval()) / 20'000 * turn.wait;
    bucket(turn).block("k", span);
    closed_until_ = std::max(closed_until_, clock_.now() + span);
    wrote(turn);
    ++seen_.verb[block];
  }

  void return_units(const Turn& turn) {
    if (top_.empty() || top_.back().reservation.granted == 0) return;
    Held& held = top_.back();
    const TokenBucket& bucket = limiters_[held.limiter];
    Turn own = turn;
    own.limiter = held.limiter;
    Reservation& r = held.reservation;
    const Word granted = r.granted;
    const Word amount = std::min(granted, cost(own));
    const Span before = full_after(own);
    Word back = 0;
    if (turn.verb == cancel) back = bucket.cancel("k", r);
    if (turn.verb == refund) back = bucket.refund("k", r, amount);
    if (turn.verb == settle_less) {
      back = bucket.settle("k", r, granted + r.settled - amount).given_back;
    }
    const Span sooner = before - full_after(own);
    answers_.push_back(back);
    // Not counted is what came back, with the part of a unit that the answer leaves out.
    const Word all = (granted - r.granted) * Ledger::whole;
    Word given = sooner > 0s ? std::min(all, millionths_in(own, sooner + 1us) + 1) : 0;
    if (in_lumps()) given = std::min(all, (back + 1) * Ledger::whole);
    CHECK(back * Ledger::whole <= given);
    ledger_.refund(held.entry, given, r.at());
    if (back > 0) ++seen_.verb[turn.verb];
    if (sooner > 0s) closed_until_ = Time{};
  }

  /// The largest burst of the limiters that were used between the decision of an interval's first
  /// grant and its end, and what the rate brings in it. Times are whole: a grant ahead may be a
  /// microsecond late, and those of charges are reckoned here from spans that are whole as well.
  void judge() const {
    const Span late = script_.options.refill.interval() + 3us;
    check_kept(ledger_.check(Span::max(), [&](const Ledger::Interval& interval) {
      Word burst = 0;
      const Ledger::Exact length = (interval.to - interval.from + late).count();
      for (const Use& use : used_) {
        if (use.at < interval.decided || use.at > interval.to) continue;
        burst = std::max(burst, script_.quotas[use.limiter].capacity());
      }
      const Quota& one = script_.quotas.front();
      return Ledger::Exact{burst} * Ledger::whole +
             (length * one.refill() * Ledger::whole + one.period() - 1) / one.period();
    }));
  }

  VirtualClock& clock_;
  const Script& script_;
  Seen& seen_;
  std::vector<TokenBucket> limiters_;
  std::vector<Use> used_;
  Ledger ledger_;
  std::vector<Held> top_;  // the last grant, if nothing was charged since
  std::vector<Word> answers_;
  std::size_t last_ = 0;
  Time closed_until_{};
  Time kept_until_ = Time::max();
};

std::string described(const Script& script) {
  std::string text;
  for (const Quota& quota : script.quotas) {
    text += std::to_string(quota.refill()) + "/" + std::to_string(quota.period()) + " us burst " +
            std::to_string(quota.capacity()) + ", ";
  }
  return text + "interval " + std::to_string(script.options.refill.interval().count());
}

}  // namespace

TEST_CASE("histories of one bucket under several bursts keep the largest on every store",
          "[invariants][token_bucket][S1][S5][L1]") {
  Random random("histories of one bucket under several bursts keep the largest on every store");
  CAPTURE(random.repeat());
  std::vector<Script> scripts;
  const std::size_t wanted = 4 * lives();
  for (std::size_t i = 0; i < std::max<std::size_t>(50, wanted); ++i) {
    scripts.push_back(draw_script(random));
  }
  std::vector<std::vector<Word>> first;
  for_each_store([&](Store& store, VirtualClock& clock) {
    Seen seen;
    for (std::size_t i = 0; i < wanted || (!seen.all() && i < scripts.size()); ++i) {
      INFO("life " << i << ": " << described(scripts[i]));
      const std::vector<Word> answers =
          MixedLife(store, clock, scripts[i], "q" + std::to_string(i), seen).live();
      if (i == first.size()) first.push_back(answers);
      CHECK(answers == first[i]);
    }
    CHECK(seen.proven > 0);
    CHECK(seen.foreign > 0);
    for (std::size_t verb = 0; verb < verbs; ++verb) {
      INFO(names[verb]);
      CHECK(seen.verb[verb] > 0);
    }
  });
}
