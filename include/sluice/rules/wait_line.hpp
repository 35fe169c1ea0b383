// Wait line: the queue of the processes whose callers wait for one limit.
//
// Each waiting process has one place in the queue, however many of its callers wait: the arrival of
// its first waiting caller, and until when the process counts as alive. The earliest arrival is
// first; a place that has expired is skipped, so that a dead process delays the others by its TTL
// at most.
//
//     ahead   the units of the other live processes with an earlier (arrival, client)
//     turn    allowed  iff  ahead = 0  or  granted + ahead <= enough
//
// `granted` counts the units that were granted while processes wait. A process that learns that the
// limit has units for all ahead of it and for itself need not wait until they have come one by one:
// it asks with `enough`, the count up to which the limit has units for others.
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
  /// Word 0 of the state is the number of places, and word 1 is `granted`, which is 0 while nobody
  /// has a live place, and begins again at 0 after 2^52; each place has the words of Field, in no
  /// particular order. Absent: the queue is empty.
  static constexpr Word first_place = 2;
  enum Field : Word {
    client,   ///< the process, 1 or more; 0: unused
    arrival,  ///< when its wait began, microseconds since the epoch
    until,    ///< until when it counts as alive, microseconds since the epoch
    units,    ///< of its first waiting caller
    place_words
  };
  [[nodiscard]] static constexpr Word place_at(Word place) noexcept {
    return first_place + place * place_words;
  }

  /// Argument 0 of each operation becomes the limit of its decision, and its remaining when it
  /// allows: with 2^52, the other steps of the plan determine the plan's decision.
  struct EnterArgs {
    Word limit;
    Word client;   ///< 1 to 2^52
    Word arrival;  ///< of the first waiting caller, 1 to 2^52
    Word ttl;      ///< us, min_ttl to max_ttl
    Word units;    ///< of that caller, 1 to max_units
  };
  struct TurnArgs {
    Word limit;
    Word client;
    Word arrival;  ///< of the caller that requests its turn
    Word ttl;
    Word units;       ///< of that caller
    Word next;        ///< arrival of the process's next waiting caller; 0: none
    Word next_units;  ///< of the next one, 1 to max_units
    Word enough;      ///< 0 to 2^52
  };
  struct LeaveArgs {
    Word limit;
    Word client;
    Word arrival;  ///< the place is removed only if it has this arrival; 0: any
  };

  /// The most processes with a place. A further process replaces the one with the latest arrival if
  /// its own is earlier; otherwise it gets no place, and its callers are behind all others.
  static constexpr Word max_places = 256;
  static constexpr Word max_units = Word{1} << 32;
  static constexpr Word min_ttl = 1'000;
  /// A place that expires later than this was written before the clock was set back, and counts as
  /// dead.
  static constexpr Word max_ttl = 600'000'000;

  /// Adds a place, or changes it. Always allowed. Output, as of all operations: the units of other
  /// processes ahead of this one, afterwards; the first of the others, 0 if there is none;
  /// `granted`; and the time until all those ahead have expired, unless they are renewed.
  static Verdict enter(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept;
  /// Allowed if the caller is first, or the limit has enough for all ahead of it. `retry_after` is
  /// when so many of those ahead would have expired that it is allowed.
  static Verdict turn(const StateView& state, const RuleRequest& request, Word now,
                      Effects& effects) noexcept;
  /// Removes the place. Always allowed.
  static Verdict leave(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept;
  /// Reads the queue; changes nothing. Always allowed.
  static Verdict peek(const StateView& state, const RuleRequest& request, Word now,
                      Effects& effects) noexcept;

  static constexpr std::size_t output = 4;
};

/// Rows of the table of operations.
extern const Operation wait_line_enter;
extern const Operation wait_line_turn;
extern const Operation wait_line_leave;
extern const Operation wait_line_peek;

}  // namespace sluice
