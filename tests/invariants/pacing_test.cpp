// Histories of the slot lock and of gates that open again. Threading: single-threaded.
#include <algorithm>
#include <vector>

#include "sluice/limiters/gates.hpp"
#include "sluice/limiters/slot_lock.hpp"
#include "tests/catch.hpp"
#include "tests/invariants/fleet.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;
using namespace std::chrono_literals;

TEST_CASE("histories of the slot lock keep its gap, its hints and its pace on every store",
          "[invariants][slot_lock][S4][S5][L1][L2]") {
  Random random("histories of the slot lock keep its gap, its hints and its pace on every store");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    std::size_t proven = 0;
    for (std::size_t i = 0; i < lives(); ++i) {
      const Span interval{random.between(1, 1'000'000)};
      const Span max_wait = i % 2 == 0 ? Span{0} : interval * random.between(1, 3);
      const SlotLock lock(store, "lock" + std::to_string(i), interval);
      const auto asking = [&](const std::string& key) {
        return Asking{[&, key](Word) { return decide(store, lock.acquire_step(key, max_wait)); },
                      [&, key](Word) { return lock.peek(key, max_wait); }};
      };
      Habits habits;
      habits.most_thought = interval * static_cast<Word>(habits.callers);
      const Life life = live(clock, random, habits, asking("one"));
      check_kept(check_gaps(life.history, interval));
      check_kept(check_work_conserving(life.history, {.burst = 1, .units = 1, .period = interval}));
      check_kept(poll(clock, random, habits, asking("two"), asking("three")));
      proven += check_life(life, 1);
    }
    CHECK(proven > 0);
  });
}

TEST_CASE(
    "slots that are kept lie a gap apart and behind every block, whatever is given back, on every "
    "store",
    "[invariants][slot_lock][S4][S5][L1]") {
  Random random(
      "slots that are kept lie a gap apart and behind every block, whatever is given back, on "
      "every store");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    std::size_t proven = 0;
    std::size_t blocked = 0;
    std::size_t given_back = 0;
    for (std::size_t i = 0; i < 2 * lives(); ++i) {
      const Span interval{random.between(1, 1'000'000)};
      const Span max_wait = interval * random.between(1, 5);
      const SlotLock lock(store, "blocked" + std::to_string(i), interval);
      std::vector<SlotPermit> kept;
      Time closed_until{};
      const auto judge = [&] {
        History slots;
        for (const SlotPermit& permit : kept) slots.push_back(note(permit.decision));
        check_kept(check_gaps(slots, interval));
      };
      Asking asking{[&](Word) {
                      const SlotPermit permit = lock.reserve("k", max_wait);
                      if (permit) {
                        CHECK(permit.at() >= closed_until);
                        kept.push_back(permit);
                      }
                      return permit.decision;
                    },
                    [&](Word) { return lock.peek("k", max_wait); }};
      asking.meanwhile = [&] {
        if (!random.one_in(4)) return false;
        if (random.one_in(3)) {
          const Span span = random.one_in(4) ? 0us : Span{random.between(1, interval.count() * 3)};
          CHECK(lock.block("k", span).reset_after >= span);
          closed_until = std::max(closed_until, clock.now() + span);
          if (span > 0us) ++blocked;
          return true;
        }
        if (random.one_in(20)) {  // another history: the slots so far may meet new ones
          judge();
          kept.clear();
          closed_until = Time{};
          lock.reset("k");
          CHECK(lock.peek("k").remaining == 1);
          return true;
        }
        if (kept.empty()) return false;
        const std::size_t which = random.one_in(2) ? kept.size() - 1 : random.below(kept.size());
        if (!lock.cancel("k", kept[which])) return false;
        CHECK(lock.peek("k").retry_after >= closed_until - clock.now());
        kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(which));
        ++given_back;
        return true;
      };
      Habits habits;
      habits.most_thought = interval * static_cast<Word>(habits.callers);
      const Life life = live(clock, random, habits, asking);
      judge();
      proven += check_life(life, 1);
    }
    CHECK(proven > 0);
    CHECK(blocked > 0);
    CHECK(given_back > 0);
  });
}

TEST_CASE(
    "histories of a gate pass nothing while it is closed, and one by one after, on every store",
    "[invariants][gate][S4][S5][L1]") {
  Random random(
      "histories of a gate pass nothing while it is closed, and one by one after, on every store");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    std::size_t proven = 0;
    std::size_t paced = 0;
    for (std::size_t i = 0; i < lives() || (proven * paced == 0 && i < 50); ++i) {
      const Span spacing{random.between(1'000, 100'000)};
      const Span ramp = spacing * random.between(2, 30);
      const Gates gates(store, "gates" + std::to_string(i), {"account"},
                        {.ramp = ramp, .spacing = spacing});
      const Scope scope = gates.scope("account", "one");
      const Time until = clock.now() + Span{random.between(1, 1'000'000)};
      gates.close(scope, until - clock.now());
      const auto asking = [&](const Scope& one) {
        return Asking{[&, one](Word) { return decide(store, gates.pass_step(one)); },
                      [&, one](Word) { return decide(store, gates.peek_step(one)); }};
      };
      Habits habits;
      habits.most_thought = spacing * 2;
      const Life life = live(clock, random, habits, asking(scope));
      proven += check_life(life, 1);
      History early;
      std::ranges::copy_if(life.history, std::back_inserter(early),
                           [&](const Event& e) { return e.at < until + ramp; });
      check_kept(check_aligned(early, std::vector<Time>{until, until + ramp}, word_limit));
      check_kept(check_gaps(early, spacing));
      paced += static_cast<std::size_t>(std::ranges::count_if(early, &Event::allowed));
      const Scope two = gates.scope("account", "two");
      const Scope three = gates.scope("account", "three");
      for (const Scope& other : {two, three}) gates.close(other, spacing * 20);
      check_kept(poll(clock, random, habits, asking(two), asking(three)));
    }
    CHECK(proven > 0);
    CHECK(paced > 0);
  });
}
