// Sliding windows: exact limits over any number of windows, decided together.
//
// A log holds the time of every admitted unit. A window (limit, span) looks back from an instant t
// over the half-open interval (t - span, t], so that what was admitted at t counts until, and not
// at, t + span. A request of `cost` units is admitted at the first instant at which every window
// has room for all of it:
//
//     age i              the i-th newest unit, from 0
//     room(k)            time(age limit_k - cost) + span_k, or 0 if the log is shorter
//                        (a cost of 0 waits where more than the limit is logged, for the excess)
//     grant = max(now, newest, room(1), ... room(n))
//     allowed  iff  grant <= now + max_wait;    then `cost` units of the time `grant` are logged,
//                                               and retry_after = grant - now
//     else                                      retry_after = grant - max_wait - now
//
// Only the newest max(limit) units can matter, so the log is a ring of that many words, one for
// each unit: units at equal instants stay apart. Beside it stands, for each window, how many units
// it held when it last admitted; from there the present number is a step or two away.
//
// The state holds units, not windows: a place is right for any edge, so requests may bring any
// windows in any order. A limiter's spans are part of its keys all the same, since a window that is
// shorter than the one before it does not see all that this one admitted.
//
// While a key is blocked until B, grant is at least B.
#pragma once

#include "sluice/extend/operation.hpp"

namespace sluice {

/// The rule. Pure functions; use the class SlidingWindow (sluice/limiters/sliding_window.hpp) to
/// limit.
///
/// Each answer tells 1 + n words of detail: the part, then what remains of each window. The part is
/// the window that makes the request wait longest, or else the one with the least remaining; n if a
/// block makes it wait longest.
///
/// O(windows) reads and writes: the search for a window's edge is amortised (each unit leaves a
/// window once) and takes at most log2(limit) steps; a cost of c fills c words.
struct SlidingWindowRule {
  /// The words before the log. All zero means a key without units.
  struct State {
    Word stamp = 0;     ///< when it was last written, microseconds since the epoch
    Word newest = 0;    ///< the time of the newest unit: later than `stamp` if that was reserved
    Word capacity = 0;  ///< words of the ring, 0 to max_limit; 0: there is no log
    Word next = 0;      ///< where in the ring the next unit goes
    Word size = 0;      ///< units in the ring
    Word dropped = 0;   ///< units that gave way to newer ones; above zero only in a full ring
    Word span = 0;      ///< any interval of this length holds at most `capacity` units
    Word layout = 0;    ///< what else there is: see Layout
  };
  /// Behind the head follow the places, then the ring. As a word, places + 16 * blocks. If the key
  /// is blocked, nothing is known of the first place: its count says so, and its `before` is the
  /// block's end.
  struct Layout {
    Word places = 0;  ///< 1 to max_windows, as many as the first request had windows
    Word blocks = 0;  ///< 1: the key is blocked, or was when it was last written
  };
  /// What is known of a window's edge: all but the `count` newest units are at `before` or older,
  /// and the oldest of the `count` is at `first`.
  struct Place {
    Word count = 0;
    Word before = 0;
    Word first = 0;
  };
  /// The table holds the windows, two words each.
  struct Window {
    Word limit;  ///< 1 to max_limit
    Word span;   ///< microseconds, 1 to max_span
  };

  struct Args {
    Word limit;     ///< the smallest limit of the windows
    Word cost;      ///< units; 0 is decided as any other, and writes nothing
    Word max_wait;  ///< microseconds that a grant may lie ahead, 0 to max_ahead_of_time
    Word longest;   ///< the longest span
  };
  /// Of refund.
  struct RefundArgs {
    Word limit;
    Word units;  ///< that are not needed, 0 to 2^52; no more come back than there are
    Word time;   ///< when they were granted for
    Word keep;   ///< microseconds after which what is left means nothing
  };
  /// Of block.
  struct BlockArgs {
    Word limit;
    Word span;     ///< microseconds from now, 0 to max_block; 0 changes nothing
    Word longest;  ///< the longest span of the windows
  };
  /// Of reward.
  struct RewardArgs {
    Word limit;
    Word units;    ///< 0 to 2^52
    Word longest;  ///< the longest span of the windows
  };

  /// A window takes two words of a table and three of a state; eight cover a second, a minute, an
  /// hour, a day and more.
  static constexpr std::size_t max_windows = 8;
  /// Half a megabyte a key, which a script copies in well under a millisecond when it has to.
  static constexpr Word max_limit = 65'536;
  /// 366 days: 24 of them stay far below 2^52.
  static constexpr Word max_span = Word{366} * 24 * 3600 * 1'000'000;
  /// How long a key can be blocked.
  static constexpr Word max_block = max_span;
  /// Reservations reach this far at most.
  static constexpr Word max_ahead_of_time = max_span;

  /// A stamp may lie ahead of the clock after the clock was set back. Up to this far, time stands
  /// still for the key until the clock has caught up. Beyond it, the log is given up: one request
  /// is admitted whatever it holds, all units later than the clock count as admitted now, a block
  /// is over, and time restarts. That costs at most the one request for a key and a step.
  static constexpr Word max_ahead = 60'000'000;

  /// Under a larger capacity than the log was kept for, what it has dropped counts again: as if
  /// each interval of State::span before it had been as full as it can have been. So many intervals
  /// are told apart, then all the rest count with the last of them.
  static constexpr Word max_assumed = 24;

  /// Worked example, {2, 5 s} and {3, 60 s}: two units at 0 are allowed, a third is refused with
  /// retry_after 5 s by window 0. Allowed at 5 s, the next is refused for 55 s by window 1.
  static Verdict acquire(const StateView& state, const RuleRequest& request, Word now,
                         Effects& effects) noexcept;
  /// What acquire() would answer, with what remains now; changes nothing.
  static Verdict peek(const StateView& state, const RuleRequest& request, Word now,
                      Effects& effects) noexcept;
  /// Takes back up to `units` of the units granted for `time`, while those are the newest. Tells
  /// how many, then what remains of each window. Units that had given way to them come back as old
  /// as they must at least have been: never older, so no window admits too much.
  static Verdict refund(const StateView& state, const RuleRequest& request, Word now,
                        Effects& effects) noexcept;
  /// Nothing is granted for a time before the end of the span, unless it was before; a later end
  /// that stands already stays. In a log of its own time: from State::stamp on, if that is later
  /// than now.
  static Verdict block(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept;
  /// Forgets the newest units of the log, reserved ones first. Tells as refund(), but of the
  /// units that some window still held.
  static Verdict reward(const StateView& state, const RuleRequest& request, Word now,
                        Effects& effects) noexcept;
  /// Forgets everything, a block as well.
  static Verdict reset(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept;

  /// allowed (1), or the negative code of what can never be admitted.
  [[nodiscard]] static Word check(const Args& args) noexcept;
  [[nodiscard]] static Word check(const RefundArgs& args) noexcept;
  [[nodiscard]] static Word check(const BlockArgs& args) noexcept;
  [[nodiscard]] static Word check(const RewardArgs& args) noexcept;
};

/// Rows of the table of operations.
extern const Operation sliding_window_acquire;
extern const Operation sliding_window_peek;
extern const Operation sliding_window_refund;
extern const Operation sliding_window_reset;
extern const Operation sliding_window_block;
extern const Operation sliding_window_reward;

}  // namespace sluice
