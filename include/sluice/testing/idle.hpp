// advance_until_idle(): moves a virtual clock from timer to timer until no timer is set.
#pragma once

#include <stdexcept>
#include <string>

#include "sluice/testing/text.hpp"
#include "sluice/virtual_store.hpp"

namespace sluice::testing {

/// Moves the clock to the next timer, runs it, and repeats until none is set: all waits have then
/// ended, each at its own time, and so have the waits that followed. Returns how far the clock has
/// moved. Throws std::runtime_error after `most` moves: a timer is set again and again (a renewer,
/// a sampler, a loop), and its owner must be stopped first.
inline Span advance_until_idle(VirtualClock& clock, std::size_t most = 100'000) {
  const Time start = clock.now();
  std::size_t moves = 0;
  while (clock.timers() > 0) {
    if (moves++ == most) {
      throw std::runtime_error("advance_until_idle: after " + std::to_string(most) +
                               " moves, the clock " + to_text(clock.now() - start) + " on, " +
                               std::to_string(clock.timers()) +
                               " timers are still set: something waits again and again");
    }
    clock.advance_to_next();
  }
  return clock.now() - start;
}

}  // namespace sluice::testing
