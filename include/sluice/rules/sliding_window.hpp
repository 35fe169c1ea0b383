// Sliding windows: exact limits over several windows, decided together.
//
// A log contains an entry for each grant: its time and its units. A window (limit, span) covers, at
// an instant t, the half-open interval (t - span, t], so that an entry of time t counts until, but
// not at, t + span. A request of `cost` units is admitted at the first instant at which every
// window has room for all of it:
//
//     excess(k)          units within window k + cost - limit_k
//     room(k)            time(e) + span_k of the first entry e with which as many as excess(k) have
//                        left, or 0 if the cost fits
//     grant = max(now, newest, room(1), ... room(n))
//     allowed  iff  grant <= now + max_wait;    then an entry (grant, cost) is logged, and
//                                               retry_after = grant - now
//     else                                      retry_after = grant - max_wait - now
//
// The log is a ring of entries in the order of their times. It doubles while the oldest entry is
// within the longest window, and reuses that entry's words when it is not, so that nothing that
// counts is lost. A full log of max_entries has no words for a further entry: until its oldest
// entry leaves the longest window, every request with a cost is refused, and nothing remains of
// that window.
//
// An entry is known by its number and its time. Numbers ascend, so that an entry is found without a
// search. The newest entries whose units were all given back are taken out at once, and their
// numbers are used again.
//
// For each window the state stores a place: the units within it, and the oldest entry of them. A
// place moves over entries that leave. Places are in the order of the spans, so that requests may
// list their windows in any order.
//
// The spans of a limiter are part of its keys, because a log forgets what has left the longest
// window. Only a shared sliding window has logs under changing spans. If its longest window becomes
// longer, entries that the log no longer has may be within it. They count as if each interval
// before the log had been full: of `span` back to State::since, of State::older before.
//
// While a key is blocked until B, `grant` is at least B.
//
// A log is forgotten `longest` after its newest grant, and not before the end of a block: what it
// held is neither counted nor given back, whether or not a store has dropped the key.
#pragma once

#include "sluice/extend/operation.hpp"

namespace sluice {

/// The rule, as pure functions. Users call the class SlidingWindow
/// (sluice/limiters/sliding_window.hpp).
///
/// The output of acquire, peek and block: the part, the number and the time of the logged entry
/// (0: none), then what remains of each window. The part is the window with the longest wait, or
/// else the one with the least remaining; the number of windows if a block makes the request wait
/// longest. The output of settle and reward: the units changed, then what remains.
///
/// O(windows), and one step for each entry that has left a window since it last admitted, or that
/// must leave before a refused request fits. A refusal writes nothing, so that the next one takes
/// its steps again.
struct SlidingWindowRule {
  /// The words before the places. All zero: the key has no units.
  struct State {
    Word stamp = 0;     ///< when it was last written, microseconds since the epoch
    Word newest = 0;    ///< the time of the newest entry: later than `stamp` if it is reserved
    Word capacity = 0;  ///< entries of the ring, 0 to max_entries; 0: there is no log
    Word next = 0;      ///< the index in the ring of the next entry
    Word size = 0;      ///< entries in the ring
    Word sequence = 0;  ///< the number of the next entry, from 1
    Word until = 0;     ///< when the log is forgotten
    Word blocked = 0;   ///< the end of a block, or 0
    Word places = 0;    ///< 1 to max_windows: the most windows of a request
    Word span = 0;      ///< the longest window of the last request that was granted
    Word since = 0;     ///< all entries later than this were granted under windows of `span`
    Word older = 0;     ///< and all others under windows of this span at least
    Word limit = 0;     ///< the largest limit of a window
  };
  /// The places follow the head, then the ring, two words for each entry: its time, its units.
  struct Place {
    Word units = 0;  ///< within the window
    Word entry = 0;  ///< the number of the oldest entry within it; 0: the place is unknown
    Word first = 0;  ///< the time of that entry, and its units; 0 if there is none
    Word first_units = 0;
    Word edge = 0;  ///< all entries before it are at this time or older
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
    Word longest;   ///< how long an entry is kept: at least the longest span
  };
  /// Arguments of settle.
  struct SettleArgs {
    Word limit;
    Word units;   ///< 0 to 2^52; of a refund all that the entry has, if it has fewer
    Word entry;   ///< the number of the entry; 0: none
    Word time;    ///< its time
    Word change;  ///< see Change
    Word keep;    ///< the TTL of the log, microseconds
  };
  enum class Change : Word { refund = 0, charge = 1 };
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

  /// A window needs two words of a table and five of a state; eight cover a second, a minute, an
  /// hour, a day and more.
  static constexpr std::size_t max_windows = 8;
  /// With this, sums of all units stay far below 2^52.
  static constexpr Word max_limit = Word{1} << 40;
  /// A megabyte a key, which a script copies in about a millisecond when it must.
  static constexpr Word max_entries = 65'536;
  /// The entries of a new ring.
  static constexpr Word first_entries = 8;
  /// Up to this sum in the longest window, settle charges beyond the limits.
  static constexpr Word max_units = (Word{1} << 51) - 1;
  /// 366 days; 24 times that is far below 2^52.
  static constexpr Word max_span = Word{366} * 24 * 3600 * 1'000'000;
  /// The longest block.
  static constexpr Word max_block = max_span;
  /// The furthest reservation.
  static constexpr Word max_ahead_of_time = max_span;

  /// How far a stamp may be ahead of the clock after the clock was set back. Up to this, time
  /// stands still for the key until the clock has caught up. Beyond it, time restarts: one request
  /// is admitted whatever the log contains (unless a full log has no entry later than the clock),
  /// all entries later than the clock become one at that time, with the request, and a block ends.
  /// That costs at most the one request a key and step.
  static constexpr Word max_ahead = 60'000'000;

  /// So many full intervals are assumed where the longest window becomes longer; the last is as
  /// full as the largest limit if there were more.
  static constexpr Word max_assumed = 24;

  /// Worked example, {2, 5 s} and {3, 60 s}: two units at 0 are allowed, a third is refused with
  /// retry_after 5 s by window 0. Allowed at 5 s, the next is refused for 55 s by window 1.
  static Verdict acquire(const StateView& state, const RuleRequest& request, Word now,
                         Effects& effects) noexcept;
  /// The verdict of acquire(), with what remains now; changes nothing.
  static Verdict peek(const StateView& state, const RuleRequest& request, Word now,
                      Effects& effects) noexcept;
  /// Takes units off an entry, or adds units to it, wherever it is in the log. A charge counts as
  /// if it had been requested with the entry, beyond the limits if need be, so that later requests
  /// wait. An entry that no window holds, or that is not in the log any more, changes nothing.
  static Verdict settle(const StateView& state, const RuleRequest& request, Word now,
                        Effects& effects) noexcept;
  /// Schedules no new grant before the end of the span; existing grants stay, and so does a later
  /// end of an earlier block. Like all times of the log, the span counts from State::stamp if that
  /// is later than now.
  static Verdict block(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept;
  /// Takes units off the newest entries that some window holds, reserved ones first.
  static Verdict reward(const StateView& state, const RuleRequest& request, Word now,
                        Effects& effects) noexcept;
  /// Clears the state, including a block.
  static Verdict reset(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept;

  /// allowed (1), or the negative code of arguments that can never be admitted.
  [[nodiscard]] static Word check(const Args& args) noexcept;
  [[nodiscard]] static Word check(const SettleArgs& args) noexcept;
  [[nodiscard]] static Word check(const BlockArgs& args) noexcept;
  [[nodiscard]] static Word check(const RewardArgs& args) noexcept;
};

/// Rows of the table of operations.
extern const Operation sliding_window_acquire;
extern const Operation sliding_window_peek;
extern const Operation sliding_window_settle;
extern const Operation sliding_window_reset;
extern const Operation sliding_window_block;
extern const Operation sliding_window_reward;

}  // namespace sluice
