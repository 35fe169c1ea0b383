// Sliding window counter: about so many units in any window, in three words whatever the limit.
//
// Time is cut into aligned windows of `span`. Two of them are counted: the current one, and the one
// before, which weighs as much as the part of it that a sliding window would still cover:
//
//     elapsed  = now - start                                 since the current window began
//     estimate = current + ceil(previous * (span - elapsed) / span)
//     allowed  iff  estimate + cost <= limit
//
// A block refuses all until it ends, and changes no count.
//
// Limiters that share a key have the same span, and may have different limits: what was counted
// stays counted, and no interval of `span` holds more than the worst_case() of the largest limit.
//
// The weight is rounded up, so the estimate is never below what an even spread would give. It is
// an estimate: if all of the window before came at its end, a sliding window of `span` may hold up
// to worst_case() units; if it came at its beginning, units are refused that an exact log would
// admit. SlidingWindow is exact, at a word for each unit.
#pragma once

#include "sluice/extend/operation.hpp"

namespace sluice {

/// The rule. Pure functions; use the class SlidingWindowCounter
/// (sluice/limiters/sliding_window_counter.hpp) to limit. O(1) time and memory.
struct SlidingWindowCounterRule {
  /// All zero means that nothing was counted.
  struct State {
    Word start = 0;     ///< of the current window, microseconds since the epoch
    Word current = 0;   ///< units, 0 to max_limit
    Word previous = 0;  ///< units, 0 to max_limit
    Word closed = 0;    ///< the end of a block, written only by one, and zero by the next grant
  };

  /// What adjust does.
  enum class Change : Word {
    refund = 0,    ///< takes `amount` units off the window of `taken`, as far as it has them
    charge = 1,    ///< adds them to that window, whatever is there
    penalize = 2,  ///< adds them to the current window, whatever is there
    reward = 3,    ///< takes them off the current window, and the rest off the one before
  };

  struct Args {
    Word limit;  ///< units, 1 to max_limit
    Word span;   ///< microseconds, 1 to max_span
    Word cost;   ///< units; 0 is decided as any other, and writes nothing
  };

  struct BlockArgs {
    Word limit;
    Word span;
    Word length;  ///< of the block: microseconds, 0 to max_block; 0 changes nothing
  };

  static constexpr Word max_block = 365 * Word{86'400'000'000};
  /// 10^12 a window. Products are made ten bits at a time, so that they stay below 2^53.
  static constexpr Word max_limit = Word{1} << 40;
  /// 50 days and more.
  static constexpr Word max_span = Word{1} << 42;

  /// A window's start may lie ahead of the clock after the clock was set back. Up to this far, time
  /// stands still for the key at that start. Beyond it, one request is admitted whatever was
  /// counted, all of which then counts as admitted now, and time restarts.
  static constexpr Word max_ahead = 60'000'000;

  /// The most units that any interval of `span` holds: limit + floor(limit * (span - 2) / span).
  /// All of them in the last microsecond of one window, and then, of the next, what the estimate
  /// admits until that microsecond leaves the interval.
  [[nodiscard]] static Word worst_case(Word limit, Word span) noexcept;

  /// Worked example, 10 in 60 s: ten units at 59 s are allowed. At 60 s all ten count, and one more
  /// is refused with retry_after 6 s; at 66 s they count as nine, and it is allowed.
  static Verdict acquire(const StateView& state, const RuleRequest& request, Word now,
                         Effects& effects) noexcept;
  /// What acquire() would answer, with what remains now; changes nothing.
  static Verdict peek(const StateView& state, const RuleRequest& request, Word now,
                      Effects& effects) noexcept;
  /// Forgets everything.
  static Verdict reset(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept;

  /// Changes the counts by hand, between zero and max_limit. What was taken before the window
  /// before counts no more: nothing of it comes back, and nothing is charged to it.
  static Verdict adjust(const StateView& state, const RuleRequest& request, Word now,
                        Effects& effects) noexcept;

  /// Admits nothing until `length` from now; a later block stands. The counts stay as they are.
  static Verdict block(const StateView& state, const RuleRequest& request, Word now,
                       Effects& effects) noexcept;

  /// allowed (1), or the negative code of what can never be admitted.
  [[nodiscard]] static Word check(const Args& args) noexcept;
};

/// Rows of the table of operations.
extern const Operation sliding_window_counter_acquire;
extern const Operation sliding_window_counter_peek;
extern const Operation sliding_window_counter_reset;
/// Arguments: limit, span, amount, a Change, and when the units were taken. Detail: how many units
/// were taken off or added.
extern const Operation sliding_window_counter_adjust;
extern const Operation sliding_window_counter_block;

}  // namespace sluice
