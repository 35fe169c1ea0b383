// The callers' agenda is a heap of instants; those at the same instant come in the order in which
// they were put down.
#include "tests/invariants/fleet.hpp"

#include <queue>

#include "tests/catch.hpp"

namespace sluice::test {
namespace {

struct Appointment {
  Time at;
  std::size_t serial;
  std::size_t caller;
  friend bool operator>(const Appointment& a, const Appointment& b) {
    return a.at != b.at ? a.at > b.at : a.serial > b.serial;
  }
};

/// When a refused caller asks again: at its hint, or 1 us before it, or at any time before.
Time next_try(Random& random, const Decision& refusal) {
  const Time due = refusal.at + refusal.retry_after;
  if (random.one_in(4)) return due - Span{1};
  if (random.one_in(8)) return refusal.at + Span{random.between(0, refusal.retry_after.count())};
  return due;
}

/// Short thoughts as often as long ones.
Span think(Random& random, Span most) {
  return most.count() == 0 || random.one_in(3) ? Span{0} : Span{random.between(0, most.count())};
}

}  // namespace

Life live(VirtualClock& clock, Random& random, const Habits& habits, const Asking& asking) {
  Life life;
  std::priority_queue<Appointment, std::vector<Appointment>, std::greater<>> agenda;
  std::vector<Word> costs;
  std::size_t serial = 0;
  for (std::size_t caller = 0; caller < habits.callers; ++caller) {
    agenda.push({clock.now() + think(random, habits.most_thought), serial++, caller});
    costs.push_back(random.between(1, habits.most_cost));
  }
  for (std::size_t i = 0; i < habits.requests; ++i) {
    const Appointment now = agenda.top();
    agenda.pop();
    clock.set(now.at);
    if (asking.meanwhile && asking.meanwhile()) {
      life.history.push_back({.at = clock.now(), .cost = 0, .allowed = true});
    }
    Word& cost = costs[now.caller];
    testing::Looked looked;
    looked.before = asking.peek(asking.probe);
    looked.answer = asking.acquire(cost);
    looked.after = asking.peek(asking.probe);
    life.history.push_back(testing::note(looked.answer, cost, now.caller));
    if (looked.answer.allowed) {
      cost = random.between(1, habits.most_cost);
      agenda.push({now.at + think(random, habits.most_thought), serial++, now.caller});
    } else {
      life.refusals.push_back(looked);
      agenda.push({next_try(random, looked.answer), serial++, now.caller});
    }
  }
  return life;
}

testing::Checked poll(VirtualClock& clock, Random& random, const Habits& habits,
                      const Asking& plain, const Asking& polled) {
  testing::History without;
  testing::History with;
  for (std::size_t i = 0; i < habits.requests; ++i) {
    for (std::int64_t polls = random.between(0, 3); polls > 0; --polls) {
      clock.advance(think(random, habits.most_thought) / 2);
      const Word cost = random.between(1, habits.most_cost);
      if (!polled.peek(cost).allowed) CHECK_FALSE(polled.acquire(cost));
    }
    clock.advance(think(random, habits.most_thought) / 2);
    const Word cost = random.between(1, habits.most_cost);
    without.push_back(testing::note(plain.acquire(cost), cost));
    with.push_back(testing::note(polled.acquire(cost), cost));
  }
  return testing::check_same_grants(without, with);
}

void check_kept(const testing::Checked& checked) {
  INFO((checked ? checked->what : std::string()));
  CHECK_FALSE(checked);
}

std::size_t check_life(const Life& life, Word limit) {
  std::size_t proven = 0;
  check_kept(testing::check_hints(life.history, &proven));
  check_kept(testing::check_refusals(life.refusals));
  check_kept(testing::check_remaining(life.history, limit));
  return proven;
}

}  // namespace sluice::test
