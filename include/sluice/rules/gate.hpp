// Gate: a scope that is closed until a time, and then reopens one call at a time.
//
// An API's "retry after 30 s" closes the gate of its scope for all clients. The latest end
// counts, and none is further ahead than the cap. Reopening is paced: for `ramp` after the gate has
// opened, calls pass `spacing` apart; then it is free, and passing writes nothing.
//
//     close:   until = max(until, now + min(span, cap))
//     pass:    due = min(max(until, next), until + ramp)
//              allowed  iff  now >= due;   then, within the ramp, next = now + spacing
#pragma once

#include "sluice/extend/operation.hpp"

namespace sluice {

/// The shapes and bounds of the rule. Users call the class Gates (sluice/limiters/gates.hpp).
struct GateRule {
  /// Absent: open.
  struct State {
    Word until = 0;  ///< microseconds since the epoch: closed before it
    /// At most `until`: when the gate was closed. Later: when the next call may pass, once the
    /// first call has passed.
    Word mark = 0;
  };

  /// Arguments of gate.pass, which passes one call, and of gate.peek, which decides the same and
  /// changes nothing. Worked example, ramp 1 s, spacing 100 ms, closed at 0 for 30 s: refused at 0
  /// with retry_after 30 s, allowed at 30 s, then refused with retry_after 100 ms; free from 31 s.
  struct Args {
    Word limit;    ///< always 1
    Word cap;      ///< microseconds, 1 to max_cap: the longest time that a gate stays closed
    Word ramp;     ///< microseconds, 0 to max_ramp: how long reopening takes
    Word spacing;  ///< microseconds, 0 to ramp: between two calls in the ramp
    Word span;     ///< of gate.close: microseconds, 0 or more; 0 closes nothing
  };

  static constexpr Word max_cap = 365 * Word{86'400'000'000};
  static constexpr Word max_ramp = 86'400'000'000;

  /// How far the time of the last write may be ahead of the clock. Up to this, the clock was
  /// corrected, and the gate opens that much later. Beyond it, the clock was set back: one call
  /// passes, and the rest of the closure at the last write, capped, counts from now. A refusal
  /// could not record the new time, and the gate would stay closed for the whole step.
  static constexpr Word max_ahead = 60'000'000;
};

/// Rows of the table of operations.
extern const Operation gate_close;
extern const Operation gate_pass;
extern const Operation gate_peek;
extern const Operation gate_open;

}  // namespace sluice
