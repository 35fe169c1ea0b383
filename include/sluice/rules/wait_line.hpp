// Wait line: the queue of the processes whose callers wait for one limit.
//
// Each waiting process has one place in the queue, however many of its callers wait: the arrival of
// its first waiting caller, and until when the process counts as alive. The earliest arrival is
// first; a place that has expired is skipped, so that a dead process delays the others by its TTL
// at most.
//
//     turn  allowed  iff  no other live process has an earlier (arrival, client)
//
// `turn` is a step in one plan with the request that is waited for, so that no unit is taken out of
// turn, and a refusal costs no turn. When it is allowed, the place passes to the next caller of the
// process, or is removed; without a place and a next caller, nothing is written. Callers that need
// not wait leave no state.
#pragma once

#include "sluice/extend/operation.hpp"

namespace sluice {

/// The rules, as pure functions. Limiters use them with WaitQueueOptions::across_processes.
struct WaitLineRule {
  /// Word 0 of the state is the number of places; each place has these words, in no particular
  /// order. Absent: the queue is empty.
  enum Field : Word {
    client,   ///< the process, 1 or more; 0: unused
    arrival,  ///< when its wait began, microseconds since the epoch
    until,    ///< until when it counts as alive, microseconds since the epoch
    place_words
  };
  [[nodiscard]] static constexpr Word place_at(Word place) noexcept {
    return 1 + place * place_words;
  }

  /// Argument 0 of each operation becomes the limit of its decision, and its remaining when it
  /// allows: with 2^52, the other steps of the plan determine the plan's decision.
  struct EnterArgs {
    Word limit;
    Word client;   ///< 1 to 2^52
    Word arrival;  ///< of the first waiting caller, 1 to 2^52
    Word ttl;      ///< us, min_ttl to max_ttl
  };
  struct TurnArgs {
    Word limit;
    Word client;
    Word arrival;  ///< of the caller that requests its turn
    Word ttl;
    Word next;  ///< arrival of the process's next waiting caller; 0: none
  };
  struct LeaveArgs {
    Word limit;
    Word client;
    Word arrival;  ///< the place is removed only if it has this arrival; 0: any
  };

  /// The most processes with a place. A further process replaces the one with the latest arrival if
  /// its own is earlier; otherwise it gets no place, and its callers are behind all others.
  static constexpr Word max_places = 256;
  static constexpr Word min_ttl = 1'000;
  /// A place that expires later than this was written before the clock was set back, and counts as
  /// dead.
  static constexpr Word max_ttl = 600'000'000;

  /// Adds a place, or changes its arrival and expiry. Always allowed. Output, as of all operations:
  /// the number of other processes ahead of this one, afterwards; and the first of the others, 0 if
  /// there is none.
  static Verdict enter(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept;
  /// Allowed if no process is ahead of the caller. `retry_after` is when all those ahead would have
  /// expired.
  static Verdict turn(const StateView& state, const RuleRequest& request, Word now,
                      Effects& effects) noexcept;
  /// Removes the place. Always allowed.
  static Verdict leave(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept;
  /// Reads the queue; changes nothing. Always allowed.
  static Verdict peek(const StateView& state, const RuleRequest& request, Word now,
                      Effects& effects) noexcept;

  static constexpr std::size_t output = 2;
};

/// Rows of the table of operations.
extern const Operation wait_line_enter;
extern const Operation wait_line_turn;
extern const Operation wait_line_leave;
extern const Operation wait_line_peek;

}  // namespace sluice
