// Gate: a scope that is closed until a time, and reopens one call after the other.
//
// An upstream that says "retry after 30 s" closes the gate of its scope for everybody. The later
// time wins, and none lies further ahead than the cap. Reopening is paced: for `ramp` after the
// gate opened, calls pass `spacing` apart; then it is free, and passing writes nothing.
//
//     close:   until = max(until, now + min(span, cap))
//     pass:    due = min(max(until, next), until + ramp)
//              allowed  iff  now >= due;   then, within the ramp, next = now + spacing
#pragma once

#include "sluice/extend/operation.hpp"

namespace sluice {

/// The rule's shapes and bounds. Use the class Gates (sluice/limiters/gates.hpp) to limit.
struct GateRule {
  /// Absent means open.
  struct State {
    Word until = 0;  ///< microseconds since the epoch: closed before it
    /// Up to `until`: when the gate was closed. Beyond it: when the next call may pass, which is
    /// known once the first has passed.
    Word mark = 0;
  };

  /// Of gate.pass, which lets one call through, and gate.peek, which answers the same and changes
  /// nothing. Worked example, ramp 1 s, spacing 100 ms, closed at 0 for 30 s: refused at 0 with
  /// retry_after 30 s, allowed at 30 s, then refused with retry_after 100 ms; free from 31 s.
  struct Args {
    Word limit;    ///< always 1
    Word cap;      ///< microseconds, 1 to max_cap: the longest that a gate stays closed
    Word ramp;     ///< microseconds, 0 to max_ramp: how long reopening takes
    Word spacing;  ///< microseconds, 0 to ramp: between two calls of the ramp
    Word span;     ///< of gate.close: microseconds, 0 or more; 0 closes nothing
  };

  static constexpr Word max_cap = 365 * Word{86'400'000'000};
  static constexpr Word max_ramp = 86'400'000'000;

  /// How far the time of the last write may lie ahead of the clock. Up to this far the clock was
  /// corrected, and the gate opens that much later. Beyond it the clock was set back: one call
  /// passes, and what was left of the closure when it was written, capped, counts from now. A rule
  /// that only refused could not note the new time, and would stay closed for the whole step.
  static constexpr Word max_ahead = 60'000'000;
};

/// Rows of the table of operations.
extern const Operation gate_close;
extern const Operation gate_pass;
extern const Operation gate_peek;
extern const Operation gate_open;

}  // namespace sluice
