// Histories of shared sliding windows in which permits are promised, given back and settled while
// another client changes the rate, blocks it and rewards: every interval is judged by the times
// that were promised. What is charged after an estimate counts when it would have been granted;
// what is rewarded allows as much more to the intervals around it, and what was promised before.
// Threading: single-threaded.
#include <algorithm>
#include <array>
#include <map>

#include "sluice/limiters/shared_sliding_window.hpp"
#include "tests/catch.hpp"
#include "tests/invariants/fleet.hpp"
#include "tests/invariants/ledger.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;
using namespace std::chrono_literals;

namespace {

enum RateVerb : std::size_t {
  update,
  begin,
  promise,
  cancel,
  refund,
  settle_less,
  settle_more,
  block,
  reward,
  rate_verbs
};
constexpr const char* rate_names[]{"update",      "begin",       "promise", "cancel", "refund",
                                   "settle_less", "settle_more", "block",   "reward"};
using RateSeen = std::array<std::size_t, rate_verbs>;

/// One shared sliding window, of which one client asks and another changes it.
class RateLife {
 public:
  RateLife(Store& store, VirtualClock& clock, Random& random, const std::string& name,
           RateSeen& seen)
      : clock_(clock),
        random_(random),
        here_(store, "verbs", name),
        there_(store, "verbs", name),
        seen_(seen) {}

  /// Answers how many hints were proven.
  std::size_t live() {
    Habits habits;
    habits.most_cost = random_.between(1, 5);
    least_ = habits.most_cost;
    change(false);
    const WindowFrom first = quotas_.front();
    habits.most_thought =
        first.length * static_cast<Word>(habits.callers) * habits.most_cost / first.limit;
    max_wait_ = random_.one_in(3) ? 0s : first.length * random_.between(0, 4);
    changes_ = random_.one_in(2);
    Asking asking{[&](Word cost) -> Decision { return acquire(cost); },
                  [&](Word cost) { return here_.peek(cost); }};
    asking.meanwhile = [&] { return meddle(); };
    const Life life = test::live(clock_, random_, habits, asking);
    judge();
    return check_life(life, most_rate);
  }

 private:
  static constexpr Word most_rate = 20;
  struct Held {
    RateReservation reservation;
    std::size_t entry;
  };

  Decision acquire(Word cost) {
    const RateReservation r = here_.reserve(cost, max_wait_);
    if (r) {
      CHECK(r.at() >= closed_until_);
      held_.push_back({r, ledger_.charge(r.Decision::at, r.at(), cost)});
      if (r.retry_after > 0s) ++seen_[promise];
    }
    return r;
  }

  bool meddle() {
    if (!random_.one_in(4)) return false;
    if (random_.one_in(5)) return changes_ && change(!random_.one_in(4));
    if (random_.one_in(10)) return close();
    if (random_.one_in(20)) return give();
    if (held_.empty()) return false;
    const std::size_t most = std::min<std::size_t>(held_.size(), 4);
    Held& held = held_[held_.size() - 1 - random_.below(random_.one_in(4) ? held_.size() : most)];
    const Word permits = held.reservation.granted;
    const Word amount = random_.between(0, permits);
    Word back = 0;
    const std::size_t verb = cancel + random_.below(4);
    if (verb == settle_more) {
      const Word more = random_.between(0, least_);
      const Span wait = here_.peek(more).retry_after;
      const Word due = permits + charged_[held.entry] + more;
      CHECK(here_.settle(held.reservation, due).charged == more);
      charged_[held.entry] += more;
      ledger_.charge(clock_.now(), clock_.now() + wait, more);
      ++seen_[verb];
      return true;
    }
    if (verb == cancel) {
      back = here_.cancel(held.reservation);
    } else if (verb == refund) {
      back = here_.refund(held.reservation, amount);
    } else {
      back = here_.settle(held.reservation, permits + charged_[held.entry] - amount).given_back;
    }
    CHECK(back <= (verb == cancel ? permits : amount));
    ledger_.refund(held.entry, back * Ledger::whole, held.reservation.at());
    if (back > 0) ++seen_[verb];
    return true;
  }

  bool close() {
    const Span span{random_.between(0, quotas_.back().length.count())};
    CHECK(there_.block(span).allowed);
    if (span > 0s) closed_until_ = std::max(closed_until_, clock_.now() + span);
    if (closed_until_ > clock_.now()) CHECK(here_.available_permits() == 0);
    ++seen_[block];
    return true;
  }

  /// Whose permits they were is not known, so what was held cannot be given back any more.
  bool give() {
    const Word permits = random_.between(1, most_rate);
    const Time latest = ledger_.latest(clock_.now());
    there_.reward(permits);
    ledger_.allow(clock_.now(), latest, permits * Ledger::whole);
    held_.clear();
    charged_.clear();
    ++seen_[reward];
    return true;
  }

  bool change(bool keeps) {
    const WindowFrom next{clock_.now(), Span{random_.between(10, 100'000)},
                          random_.between(least_, most_rate)};
    if (keeps) {
      there_.configure(RateType::overall, next.limit, next.length);
      ++seen_[update];
    } else {  // another history: of the one before nothing is known any more
      judge();
      there_.configure(RateType::overall, next.limit, next.length, SpentPermits::forgotten);
      ledger_ = {};
      quotas_.clear();
      // What comes back now is of a log that nobody asks any more.
      for (Held& held : held_) here_.cancel(held.reservation);
      CHECK(here_.available_permits() == next.limit);
      held_.clear();
      charged_.clear();
      closed_until_ = {};
      ++seen_[begin];
    }
    quotas_.push_back(next);
    return true;
  }

  /// In every interval as long as one of the quotas that were in force in it, or when what is in it
  /// was promised, at most what the largest of them admits.
  void judge() const {
    for (std::size_t i = 0; i < quotas_.size(); ++i) {
      const Span length = quotas_[i].length;
      const Time over = i + 1 < quotas_.size() ? quotas_[i + 1].from : Time::max();
      check_kept(ledger_.check(length, [&](const Ledger::Interval& interval) {
        const bool in_force = quotas_[i].from <= interval.to && over >= interval.decided;
        const Word most = in_force ? testing::detail::most_within<WindowFrom>(
                                         quotas_, interval.decided, interval.to, length)
                                   : word_limit;
        return Ledger::Exact{most} * Ledger::whole;
      }));
    }
  }

  VirtualClock& clock_;
  Random& random_;
  SharedSlidingWindow here_;
  SharedSlidingWindow there_;
  RateSeen& seen_;
  Word least_ = 1;
  Span max_wait_{0};
  bool changes_ = false;
  std::vector<WindowFrom> quotas_;
  Ledger ledger_;
  std::vector<Held> held_;
  Time closed_until_{};
  std::map<std::size_t, Word> charged_;  // by settling, beyond an entry
};

}  // namespace

TEST_CASE(
    "histories of shared sliding windows in all their verbs keep the larger quota on every store",
    "[invariants][shared_sliding_window][S2][S5][L1]") {
  Random random(
      "histories of shared sliding windows in all their verbs keep the larger quota on every "
      "store");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    std::size_t proven = 0;
    RateSeen seen{};
    const auto all_seen = [&] {
      return proven > 0 && std::ranges::all_of(seen, [](std::size_t n) { return n > 0; });
    };
    for (std::size_t i = 0; i < 2 * lives() || (!all_seen() && i < 50); ++i) {
      proven += RateLife(store, clock, random, std::to_string(i), seen).live();
    }
    CHECK(proven > 0);
    for (std::size_t verb = 0; verb < rate_verbs; ++verb) {
      INFO(rate_names[verb]);
      CHECK(seen[verb] > 0);
    }
  });
}
