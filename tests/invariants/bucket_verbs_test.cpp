// Histories of shared token buckets in which everything is done that can be done to them, under
// quotas that change: every interval is judged by the times that were promised. What is meant to
// break the bound is accounted for: a reward allows as much more to the intervals that it reaches
// into, a reset begins another history. Threading: single-threaded.
#include <algorithm>
#include <array>

#include "sluice/limiters/shared_token_bucket.hpp"
#include "tests/catch.hpp"
#include "tests/invariants/fleet.hpp"
#include "tests/invariants/ledger.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;
using namespace std::chrono_literals;

namespace {

constexpr Word most_burst = 20;

enum Verb : std::size_t {
  set,
  reserve,
  borrow,
  cancel,
  refund,
  settle_less,
  settle_more,
  block,
  reward,
  penalize,
  reset,
  verbs
};
constexpr const char* names[]{"set",    "reserve",     "borrow",      "cancel",
                              "refund", "settle_less", "settle_more", "block",
                              "reward", "penalize",    "reset"};

/// One key: what is asked of it, and what that must keep.
class BucketLife {
 public:
  BucketLife(Store& store, VirtualClock& clock, Random& random, const std::string& name,
             std::array<std::size_t, verbs>& seen)
      : clock_(clock), random_(random), bucket_(store, name), seen_(seen) {
    change();
  }

  /// Answers how many hints were proven.
  std::size_t live() {
    const RateBound first = quotas_.front().bound;
    Habits habits;
    habits.most_cost = random_.between(1, 10);
    least_ = habits.most_cost;
    change();
    habits.most_thought =
        first.period * static_cast<Word>(habits.callers) * habits.most_cost / first.units / 2;
    max_wait_ = random_.one_in(3) ? 0s : Span{random_.between(0, 5'000'000)};
    Asking asking{[&](Word cost) { return acquire(cost); },
                  [&](Word cost) { return bucket_.peek("k", cost); }};
    asking.meanwhile = [&] { return meddle(); };
    const Life life = test::live(clock_, random_, habits, asking);
    judge();
    return check_life(life, most_burst);
  }

 private:
  struct Held {
    Reservation reservation;
    std::size_t entry;
  };

  void change() {
    const RateBound bound{.burst = random_.between(least_ + 1, most_burst),
                          .units = random_.between(1, 50),
                          .period = Span{random_.between(100'000, 1'000'000)}};
    if (!quotas_.empty()) ++seen_[set];
    const bool anew = clock_.now() < moved_until_;
    if (anew) judge();
    quotas_.push_back({clock_.now(), bound});
    bucket_.configure("k", Quota::per(bound.units, bound.period).burst(bound.burst),
                      static_cast<Inheritance>(random_.below(4)));
    if (anew) forget();
  }

  [[nodiscard]] const RateBound& bound() const { return quotas_.back().bound; }
  /// Until the bucket is full: what differs before and after a change by hand, at the rate, is how
  /// much it was changed.
  [[nodiscard]] Span full_after() const { return bucket_.peek("k", 0).reset_after; }
  [[nodiscard]] Word millionths_in(Span span) const {
    return span.count() * bound().units * Ledger::whole / bound().period.count();
  }

  Decision acquire(Word cost) {
    const bool borrows = random_.one_in(4);
    const Reservation r =
        borrows ? bucket_.borrow("k", cost, max_wait_) : bucket_.reserve("k", cost, max_wait_);
    if (r) {
      // Borrowed units go now and count when they are there: that is what is lent.
      CHECK(r.at() >= closed_until_);
      held_.push_back({r, ledger_.charge(clock_.now(), r.at(), cost)});
      ++seen_[borrows ? borrow : reserve];
    }
    return r.decision;
  }

  /// True if the key was changed.
  bool meddle() {
    if (!random_.one_in(4)) return false;
    // In its last microsecond a block is a spent bucket like any other.
    if (closed_until_ == clock_.now() + 1us) closed_until_ = clock_.now();
    switch (random_.below(10)) {
      case 0:
        change();
        return true;
      case 1:
        shut();
        return true;
      case 2:
        give();
        return true;
      case 3:
        charge([&](Word amount) { bucket_.penalize("k", amount); });
        ++seen_[penalize];
        return true;
      case 4:
        if (!random_.one_in(3)) return false;
        begin_anew();
        return true;
      default:
        return settle();
    }
  }

  void shut() {
    const Span span{random_.between(0, 500'000)};
    bucket_.block("k", span);
    closed_until_ = std::max(closed_until_, clock_.now() + span);
    ++seen_[block];
  }

  void give() {
    // What lies ahead is moved by a reward as far as its units last at the rate of now. Promised at
    // another rate, before or after, that may be many more: it breaks the bound as a reset does.
    const bool anew = ledger_.promised(quotas_.back().from, clock_.now());
    if (anew) judge();
    const Word amount = random_.between(0, 10);
    const Span before = full_after();
    bucket_.reward("k", amount);
    const Span sooner = before - full_after();
    CHECK(sooner >= 0s);
    const Word millionths = std::min(amount * Ledger::whole, millionths_in(sooner + 1us) + 1);
    ledger_.allow(clock_.now(), std::max(ledger_.latest(clock_.now()), closed_until_), millionths);
    if (sooner > 0s) closed_until_ = Time{};  // it opens a block as well
    rewarded_ = clock_.now();
    if (anew) forget();
    moved_until_ = ledger_.latest(clock_.now());
    ++seen_[reward];
  }

  /// What is charged whatever is there counts, unit by unit, when it would have been granted: once
  /// no more is spent than the burst.
  template <class Charge>
  void charge(Charge make) {
    const Word amount = random_.between(0, 5);
    const Span before = full_after();
    make(amount);
    const Span more = full_after() - before;
    const Word charged = (millionths_in(more + 2us) + 1) / Ledger::whole;  // a debt has an end
    CHECK(more >= 0us);
    CHECK(charged <= amount);
    const Span full{bound().burst * bound().period.count() / bound().units};
    for (Word i = 1; i <= charged; ++i) {
      const Span spent = before + Span{i * bound().period.count() / bound().units};
      ledger_.charge(clock_.now(), clock_.now() + std::max(0us, spent - full), 1);
    }
  }

  void begin_anew() {
    judge();
    bucket_.reset("k");
    forget();
    CHECK(bucket_.peek("k", bound().burst).allowed);
    ++seen_[reset];
  }

  void forget() {
    ledger_ = {};
    held_.clear();
    closed_until_ = Time{};
    moved_until_ = Time{};
    quotas_ = {{clock_.now(), bound()}};
  }

  bool settle() {
    if (held_.empty()) return false;
    const std::size_t index = random_.one_in(2) ? held_.size() - 1 : random_.below(held_.size());
    Reservation& reservation = held_[index].reservation;
    const std::size_t entry = held_[index].entry;
    const Word granted = reservation.granted;
    if (random_.one_in(5)) {
      charge([&](Word amount) {
        const Word due = reservation.granted + reservation.settled + amount;
        CHECK(bucket_.settle("k", reservation, due).charged == amount);
      });
      ++seen_[settle_more];
      return true;
    }
    const Span before = full_after();
    Word back = 0;
    const std::size_t verb = random_.below(3);
    if (verb == 0) {
      back = bucket_.cancel("k", reservation);
    } else {
      const Word amount = random_.between(0, granted);
      back =
          verb == 1
              ? bucket_.refund("k", reservation, amount)
              : bucket_.settle("k", reservation, granted + reservation.settled - amount).given_back;
    }
    // Not counted is what came back, with the part of a unit that the answer leaves out.
    const Span sooner = before - full_after();
    const Word amount = (granted - reservation.granted) * Ledger::whole;
    const Word given = sooner > 0s ? std::min(amount, millionths_in(sooner + 1us) + 1) : 0;
    CHECK(back * Ledger::whole <= given);
    // A reward gives units, and does not know whose: those from before it come back once more.
    if (given > 0 && reservation.decision.at <= rewarded_) {
      ledger_.allow(clock_.now(), ledger_.latest(clock_.now()), given);
    }
    ledger_.refund(entry, given, reservation.at());
    if (back > 0) ++seen_[verb == 0 ? cancel : verb == 1 ? refund : settle_less];
    if (reservation.granted == 0) held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
    return true;
  }

  /// The largest burst and the largest rate count that were in force from when the first grant of
  /// an interval was decided. Times are whole: a grant ahead may be a microsecond late, and those
  /// of charges are reckoned here from spans that are whole as well.
  void judge() const {
    check_kept(ledger_.check(Span::max(), [&](const Ledger::Interval& interval) {
      Word burst = 0;
      Ledger::Exact flow = 0;
      for (std::size_t i = 0; i < quotas_.size(); ++i) {
        const bool over = i + 1 < quotas_.size() && quotas_[i + 1].from < interval.decided;
        if (over || quotas_[i].from > interval.to) continue;
        const RateBound& one = quotas_[i].bound;
        burst = std::max(burst, one.burst);
        const Ledger::Exact length = (interval.to - interval.from).count() + 4;
        flow = std::max(flow, (length * one.units * Ledger::whole + one.period.count() - 1) /
                                  one.period.count());
      }
      return Ledger::Exact{burst} * Ledger::whole + flow;
    }));
  }

  VirtualClock& clock_;
  Random& random_;
  SharedTokenBucket bucket_;
  std::array<std::size_t, verbs>& seen_;
  Word least_ = 1;
  Span max_wait_{0};
  std::vector<RateFrom> quotas_;
  Ledger ledger_;
  std::vector<Held> held_;
  Time closed_until_{};
  Time rewarded_{};
  Time moved_until_{};
};

}  // namespace

TEST_CASE(
    "histories of shared token buckets in all their verbs keep the larger quota on every store",
    "[invariants][shared_token_bucket][S1][S5][L1]") {
  Random random(
      "histories of shared token buckets in all their verbs keep the larger quota on every store");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    std::size_t proven = 0;
    std::array<std::size_t, verbs> seen{};
    const auto all_seen = [&] {
      return proven > 0 && std::ranges::all_of(seen, [](std::size_t n) { return n > 0; });
    };
    for (std::size_t i = 0; i < 2 * lives() || (!all_seen() && i < 50); ++i) {
      proven += BucketLife(store, clock, random, "b" + std::to_string(i), seen).live();
    }
    CHECK(proven > 0);
    for (std::size_t verb = 0; verb < verbs; ++verb) {
      INFO(names[verb]);
      CHECK(seen[verb] > 0);
    }
  });
}
