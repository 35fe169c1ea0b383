// Simulated callers of one key on one virtual clock: they ask, wait as they are advised, sometimes
// ask too early, think and ask again. What they saw is a history for the checkers.
// Threading: one thread.
#pragma once

#include <functional>
#include <vector>

#include "sluice/store.hpp"
#include "sluice/testing/invariants.hpp"
#include "sluice/virtual_clock.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

/// How the callers live.
struct Habits {
  std::size_t callers = 6;
  std::size_t requests = 300;  // of all of them together
  Word most_cost = 1;          // each draws from 1 to it
  Span most_thought{0};        // between a grant and the next request, drawn from 0 to it
};

/// What they ask.
struct Asking {
  std::function<Decision(Word cost)> acquire;
  std::function<Decision(Word cost)> peek;
  Word probe = 0;  // what a question beside a refusal asks for
  /// What else happens now and then; true if it changed what refusals were promised.
  std::function<bool()> meanwhile{};
};

/// What a keyed limiter is asked about one key.
template <class Limiter>
Asking asking(const Limiter& limiter, const std::string& key, Word probe = 0) {
  return {[&limiter, key](Word cost) -> Decision { return limiter.try_acquire(key, cost); },
          [&limiter, key](Word cost) -> Decision { return limiter.peek(key, cost); }, probe};
}

/// What they saw.
struct Life {
  testing::History history;
  std::vector<testing::Looked> refusals;
};

/// One life of a fleet, from the clock's present time on; moves the clock.
Life live(VirtualClock& clock, Random& random, const Habits& habits, const Asking& asking);

/// The same random requests twice over, on the keys of two askings, the second time with many
/// questions and requests that are refused in between: the grants must be the same.
/// Returns what the checker says.
testing::Checked poll(VirtualClock& clock, Random& random, const Habits& habits,
                      const Asking& plain, const Asking& polled);

/// An assertion that the invariant was kept.
void check_kept(const testing::Checked& checked);

/// What holds for whatever spends units that come back with time: hints, refusals, what remains.
/// Returns how many hints were proven to the tick, of which a test should see some.
[[nodiscard]] std::size_t check_life(const Life& life, Word limit);

/// How many lives a test lives on each store.
[[nodiscard]] inline std::size_t lives() { return scaled(4, 3); }

}  // namespace sluice::test
