// Sliding windows: exact limits over several windows, decided together.
//
// A log contains the time of every admitted unit. A window (limit, span) covers, at an instant t,
// the half-open interval (t - span, t], so that a unit of time t counts until, but not at, t +
// span. A request of `cost` units is admitted at the first instant at which every window has room
// for all of it:
//
//     age i              the i-th newest unit, from 0
//     room(k)            time(age limit_k - cost) + span_k, or 0 if the log is shorter
//                        (a cost of 0 waits where more than the limit is logged, for the excess)
//     grant = max(now, newest, room(1), ... room(n))
//     allowed  iff  grant <= now + max_wait;    then `cost` units of the time `grant` are logged,
//                                               and retry_after = grant - now
//     else                                      retry_after = grant - max_wait - now
//
// Only the newest max(limit) units can matter, so that the log is a ring of that many words, one
// for each unit. For each window the state also stores a place, the number of units that it held
// when it last admitted, from which the current number is a few steps away.
//
// The state contains units, not windows: a place is valid for any edge, and requests may list their
// windows in any order. The spans of a limiter are part of its keys nevertheless, because a shorter
// window does not see everything that a longer one admitted.
//
// While a key is blocked until B, `grant` is at least B.
//
// A log is forgotten `longest` after its newest unit, and not before the end of a block: what it
// held is neither counted nor given back, whether or not a store has dropped the key.
#pragma once

#include "sluice/extend/operation.hpp"

namespace sluice {

/// The rule, as pure functions. Users call the class SlidingWindow
/// (sluice/limiters/sliding_window.hpp).
///
/// Each answer has 1 + n output words: the part, then what remains of each of the n windows. The
/// part is the window with the longest wait, or else the one with the least remaining; n if a block
/// makes the request wait longest.
///
/// O(windows) reads and writes: the search for the edge of a window is amortised (each unit leaves
/// a window once) and takes at most log2(limit) steps; a cost of c writes c words.
struct SlidingWindowRule {
  /// The words before the log. All zero: the key has no units.
  struct State {
    Word stamp = 0;     ///< when it was last written, microseconds since the epoch
    Word newest = 0;    ///< the time of the newest unit: later than `stamp` if it is reserved
    Word capacity = 0;  ///< words of the ring, 0 to max_limit; 0: there is no log
    Word next = 0;      ///< the index in the ring of the next unit
    Word size = 0;      ///< units in the ring
    Word dropped = 0;   ///< units overwritten by newer ones; above zero only in a full ring
    Word span = 0;      ///< the longest window of the last request that wrote
    Word layout = 0;    ///< see Layout
    Word since = 0;     ///< all units later than this were admitted under windows of `span`
    Word older = 0;     ///< and all others under windows of this span at least
    Word until = 0;     ///< when the log is forgotten
  };
  /// The places follow the head, then the ring. As a word: places + 16 * blocks. If the key is
  /// blocked, the first place is invalid, which its count says, and its `before` is the end of the
  /// block.
  struct Layout {
    Word places = 0;  ///< 1 to max_windows: the number of windows of the first request
    Word blocks = 0;  ///< 1: the key is blocked, or was when it was last written
  };
  /// A known edge of a window: all but the `count` newest units are at `before` or older, and the
  /// oldest of the `count` is at `first`.
  struct Place {
    Word count = 0;
    Word before = 0;
    Word first = 0;
  };
  /// The table contains the windows, two words each.
  struct Window {
    Word limit;  ///< 1 to max_limit
    Word span;   ///< microseconds, 1 to max_span
  };

  struct Args {
    Word limit;     ///< the smallest limit of the windows
    Word cost;      ///< units; 0 is decided like any other cost, and writes nothing
    Word max_wait;  ///< how far ahead a grant may be: microseconds, 0 to max_ahead_of_time
    Word longest;   ///< how long a unit is kept: at least the longest span
  };
  /// Arguments of refund.
  struct RefundArgs {
    Word limit;
    Word units;  ///< to refund, 0 to 2^52; all, if there are fewer
    Word time;   ///< the reserved time of the units
    Word keep;   ///< the TTL of the rest of the log, microseconds
  };
  /// Arguments of block.
  struct BlockArgs {
    Word limit;
    Word span;     ///< microseconds from now, 0 to max_block; 0 changes nothing
    Word longest;  ///< the longest span of the windows
  };
  /// Arguments of reward.
  struct RewardArgs {
    Word limit;
    Word units;    ///< 0 to 2^52
    Word longest;  ///< the longest span of the windows
  };

  /// A window needs two words of a table and three of a state; eight cover a second, a minute, an
  /// hour, a day and more.
  static constexpr std::size_t max_windows = 8;
  /// Half a megabyte a key, which a script copies in well under a millisecond when it must.
  static constexpr Word max_limit = 65'536;
  /// 366 days; 24 times that is far below 2^52.
  static constexpr Word max_span = Word{366} * 24 * 3600 * 1'000'000;
  /// The longest block.
  static constexpr Word max_block = max_span;
  /// The furthest reservation.
  static constexpr Word max_ahead_of_time = max_span;

  /// How far a stamp may be ahead of the clock after the clock was set back. Up to this, time
  /// stands still for the key until the clock has caught up. Beyond it, time restarts: one request
  /// is admitted whatever the log contains, all units later than the clock count as admitted now,
  /// and a block ends. That costs at most the one request a key and step.
  static constexpr Word max_ahead = 60'000'000;

  /// Under a larger capacity than that of the log, the units that the log has dropped count again,
  /// as if each interval before it had been full: of State::span back to State::since, of
  /// State::older before. This many intervals are distinguished; older units count with the last of
  /// them.
  static constexpr Word max_assumed = 24;

  /// Worked example, {2, 5 s} and {3, 60 s}: two units at 0 are allowed, a third is refused with
  /// retry_after 5 s by window 0. Allowed at 5 s, the next is refused for 55 s by window 1.
  static Verdict acquire(const StateView& state, const RuleRequest& request, Word now,
                         Effects& effects) noexcept;
  /// The verdict of acquire(), with what remains now; changes nothing.
  static Verdict peek(const StateView& state, const RuleRequest& request, Word now,
                      Effects& effects) noexcept;
  /// Refunds up to `units` of the units granted for `time`, while they are the newest. Output: the
  /// number of units refunded, then what remains of each window. Units that they had overwritten
  /// are restored with the latest time that they can have had, so that no window admits too much.
  /// Nothing of a log that is forgotten.
  static Verdict refund(const StateView& state, const RuleRequest& request, Word now,
                        Effects& effects) noexcept;
  /// Schedules no new grant before the end of the span; existing grants stay, and so does a later
  /// end of an earlier block. Like all times of the log, the span counts from State::stamp if that
  /// is later than now.
  static Verdict block(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept;
  /// Removes the newest units of the log, reserved ones first. Output as of refund(), but the
  /// number counts only units that some window still held.
  static Verdict reward(const StateView& state, const RuleRequest& request, Word now,
                        Effects& effects) noexcept;
  /// Clears the state, including a block.
  static Verdict reset(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept;

  /// allowed (1), or the negative code of arguments that can never be admitted.
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
