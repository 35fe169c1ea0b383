// Wait line: which process's caller is next, where callers in several processes wait for one limit.
//
// One place for each process that waits, however many of its callers do: since when the first of
// them waits, and until when the process is taken to live. Who came first stands first; a place
// whose life is over counts no more, so that a process that died is passed over after its TTL.
//
//     turn  allowed  iff  no other process that lives has an earlier (arrival, client)
//
// `turn` is asked in one plan with what is waited for, so that nothing is taken out of turn, and no
// turn is lost on a refusal. When it is allowed, the place goes to the process's next caller, or is
// given up; if there is neither a place nor a next caller, nothing is written. So callers that do
// not have to wait leave no trace.
#pragma once

#include "sluice/extend/operation.hpp"

namespace sluice {

/// The rules. Pure functions; limiters use them, see WaitQueueOptions::across_processes.
struct WaitLineRule {
  /// Word 0 of the state is how many places are in use, and behind it each has these words. The
  /// places stand in no order. Absent means that nobody waits.
  enum Field : Word {
    client,   ///< whose it is, 1 or more; 0: nobody's
    arrival,  ///< since when it waits, microseconds since the epoch
    until,    ///< how long it is taken to live, microseconds since the epoch
    place_words
  };
  [[nodiscard]] static constexpr Word place_at(Word place) noexcept {
    return 1 + place * place_words;
  }

  /// Argument 0 of each operation is what its decision reports as limit, and as what remains when
  /// it allows: 2^52 keeps it from deciding over a plan's other steps.
  struct EnterArgs {
    Word limit;
    Word client;   ///< 1 to 2^52
    Word arrival;  ///< of the caller that stands first, 1 to 2^52
    Word ttl;      ///< us, min_ttl to max_ttl
  };
  struct TurnArgs {
    Word limit;
    Word client;
    Word arrival;  ///< of the caller whose turn it may be
    Word ttl;
    Word next;  ///< arrival of the process's next caller; 0: there is none
  };
  struct LeaveArgs {
    Word limit;
    Word client;
    Word arrival;  ///< only if the place has this one; 0: whichever
  };

  /// The most processes that have a place. One more takes the place of the youngest, if it is older
  /// than that; else it has none, and its callers come behind those that have.
  static constexpr Word max_places = 256;
  static constexpr Word min_ttl = 1'000;
  /// A place that claims to live longer is left over from before the clock was set back, and counts
  /// as dead.
  static constexpr Word max_ttl = 600'000'000;

  /// Takes a place, or changes when it began and how long it lives. Always allows. Tells, as all
  /// do: how many other processes stand before this one, as it is afterwards; and which of the
  /// others stands first, 0 if there is none.
  static Verdict enter(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept;
  /// Allows if nobody stands before the caller. `retry_after` is when all that do would have died.
  static Verdict turn(const StateView& state, const RuleRequest& request, Word now,
                      Effects& effects) noexcept;
  /// Gives the place up. Always allows.
  static Verdict leave(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept;
  /// Who is in line. Always allows.
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
