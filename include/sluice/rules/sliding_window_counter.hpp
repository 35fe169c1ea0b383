// Sliding window counter: an approximate limit of units in any window, with a few words of state
// whatever the limit.
//
// Time is divided into aligned windows of `span`. Two of them are counted: the current one, and the
// previous one, which is weighted by the part of it that a sliding window still covers:
//
//     elapsed  = now - start                                 since the current window began
//     estimate = current + ceil(previous * (span - elapsed) / span)
//     allowed  iff  estimate + cost <= limit
//
// A block refuses everything until it ends, and changes no count.
//
// Limiters that share a key have the same span, and may have different limits: what was counted
// stays counted, and no interval of `span` holds more than the worst_case() of the largest limit.
//
// The weight is rounded up, so that the estimate is never below that of an even spread. It is an
// estimate: if all units of the previous window came at its end, a sliding window of `span` may
// hold up to worst_case() units; if they came at its beginning, units are refused that an exact log
// would admit. SlidingWindow is exact, with a word for each unit.
#pragma once

#include "sluice/extend/operation.hpp"

namespace sluice {

/// The rule, as pure functions. Users call the class SlidingWindowCounter
/// (sluice/limiters/sliding_window_counter.hpp). O(1) time and memory.
struct SlidingWindowCounterRule {
  /// All zero: nothing was counted.
  struct State {
    Word start = 0;     ///< of the current window, microseconds since the epoch
    Word current = 0;   ///< units, 0 to max_limit
    Word previous = 0;  ///< units, 0 to max_limit
    Word closed = 0;    ///< the end of a block; the next grant sets it to zero
  };

  /// The changes of sliding_window_counter.adjust.
  enum class Change : Word {
    refund = 0,    ///< subtracts `amount` units from the window of `taken`, down to zero
    charge = 1,    ///< adds them to that window, even beyond the limit
    penalize = 2,  ///< adds them to the current window, even beyond the limit
    reward = 3,    ///< subtracts them from the current window, and the rest from the previous one
  };

  struct Args {
    Word limit;  ///< units, 1 to max_limit
    Word span;   ///< microseconds, 1 to max_span
    Word cost;   ///< units; 0 is decided like any other cost, and writes nothing
  };

  struct BlockArgs {
    Word limit;
    Word span;
    Word length;  ///< of the block: microseconds, 0 to max_block; 0 changes nothing
  };

  static constexpr Word max_block = 365 * Word{86'400'000'000};
  /// About 10^12 units a window. Products are computed ten bits at a time, so that they stay below
  /// 2^53.
  static constexpr Word max_limit = Word{1} << 40;
  /// 50.9 days.
  static constexpr Word max_span = Word{1} << 42;

  /// How far the start of a window may be ahead of the clock after the clock was set back. Up to
  /// this, time stands still for the key at that start. Beyond it, one request is admitted whatever
  /// was counted, all of which then counts as admitted now, and time restarts.
  static constexpr Word max_ahead = 60'000'000;

  /// The most units that any interval of `span` can hold: limit + floor(limit * (span - 2) / span).
  /// The limit comes in the last microsecond of one window; the rest is what the estimate admits in
  /// the next window until that microsecond leaves the interval.
  [[nodiscard]] static Word worst_case(Word limit, Word span) noexcept;

  /// Worked example, 10 in 60 s: ten units at 59 s are allowed. At 60 s all ten count, and one more
  /// is refused with retry_after 6 s; at 66 s they count as nine, and it is allowed.
  static Verdict acquire(const StateView& state, const RuleRequest& request, Word now,
                         Effects& effects) noexcept;
  /// The verdict of acquire(), with what remains now; changes nothing.
  static Verdict peek(const StateView& state, const RuleRequest& request, Word now,
                      Effects& effects) noexcept;
  /// Clears the state.
  static Verdict reset(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept;

  /// Adjusts the counts, within zero and max_limit. Units of a window before the previous one are
  /// no longer counted: they are neither refunded nor charged.
  static Verdict adjust(const StateView& state, const RuleRequest& request, Word now,
                        Effects& effects) noexcept;

  /// Admits nothing until `length` from now, unless an earlier block ends later. The counts stay as
  /// they are.
  static Verdict block(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept;

  /// allowed (1), or the negative code of arguments that can never be admitted.
  [[nodiscard]] static Word check(const Args& args) noexcept;
};

/// Rows of the table of operations.
extern const Operation sliding_window_counter_acquire;
extern const Operation sliding_window_counter_peek;
extern const Operation sliding_window_counter_reset;
/// Arguments: limit, span, amount, a Change, and when the units were granted. Output: the number of
/// units subtracted or added.
extern const Operation sliding_window_counter_adjust;
extern const Operation sliding_window_counter_block;

}  // namespace sluice
