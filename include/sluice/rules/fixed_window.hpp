// Fixed window: so many units in each window of a calendar.
//
// Windows follow each other without a gap. All have one width, counted from an origin, or they lie
// between the boundaries of a calendar: days of a time zone, months. A request fits if what would
// then be used of the present window is within the limit; a new window begins with nothing used.
//
//     window  = the one that holds now: [begin, end)
//     used'   = used if the stored window is this one, else 0
//     allowed iff used' + cost <= limit;   then used = used' + cost of this window
//     retry_after = end - now
//
// Around the end of a window up to twice the limit may be admitted within the width of one.
//
// Limiters that share a key have the same calendar, and may have different limits: what was used
// stays used.
//
// A block takes the place of the stored window. Nothing is admitted until it ends; of the window
// that it ends in as much is used then as if nobody had asked since it began.
//
// The state names where its window begins, and that only moves forward unless the clock is set
// back: a window is opened once. Two processes may know one time zone by different versions of its
// database, so a stored window may begin within the caller's: its use counts in the caller's
// window, and its begin stays. So from one stored begin to the next, at most the limit is admitted.
#pragma once

#include "sluice/extend/operation.hpp"

namespace sluice {

/// The rule's shapes and bounds. Use the class FixedWindow (sluice/limiters/fixed_window.hpp) to
/// limit.
struct FixedWindowRule {
  /// Absent means that nothing was used.
  struct State {
    Word begin = 0;  ///< of the stored window, or the end of a block: microseconds since the epoch
    Word used = 0;   ///< units of cost * 2; and 1 for a block: of the window that it ends in
  };

  /// Boundaries of four windows.
  static constexpr std::size_t boundaries = 5;

  /// Of fixed_window.acquire, which spends, and fixed_window.peek, which answers the same and
  /// changes nothing. Worked example, limit 2 a minute, both used at 12:00:10: refused with
  /// retry_after 50 s; at 12:01:00 allowed with remaining 1. If no window of the calendar holds the
  /// instant: Errc::outside_calendar.
  struct Args {
    Word limit;
    Word width;  ///< microseconds, up to max_width; 0: the boundaries count
    /// Each begins a window that ends with the next, none before its predecessor. Under a width,
    /// the first is the origin, from 0 to below the width, and the others are not read.
    Word boundary[boundaries];
    Word cost;  ///< 0 is decided as any other, and writes nothing
  };

  /// Of fixed_window.refund: gives units of one window back if it is still the present one, the
  /// stored one begins in it and something is used of it, else refuses. Never gives back more than
  /// is used.
  /// Output: the units given back.
  struct RefundArgs {
    Word limit;
    Word begin;  ///< of the window that the units were taken in
    Word end;    ///< up to word_limit
    Word cost;   ///< 0 to word_limit
  };

  /// Of fixed_window.adjust: charges `amount` units to the present window, whatever is used of it,
  /// up to max_used; or gives -amount units of it back, as many as are used. Errors as of Args.
  struct AdjustArgs {
    Word limit;
    Word width;
    Word boundary[boundaries];
    Word amount;  ///< from -word_limit to word_limit
  };

  /// Of fixed_window.block: nothing is admitted until `span` from now; a later block stands.
  /// Errors as of Args.
  struct BlockArgs {
    Word limit;  ///< from 1
    Word width;
    Word boundary[boundaries];
    Word span;  ///< microseconds, 0 to max_block; 0 changes nothing
  };

  static constexpr Word max_block = 365 * Word{86'400'000'000};
  static constexpr Word max_width = word_limit / 2;
  static constexpr Word max_limit = Word{1} << 42;
  static constexpr Word max_used = (Word{1} << 43) - 1;

  /// How far the stored window may begin ahead of the clock. Up to this far the clock was
  /// corrected, and the stored window counts until its end. Beyond it the clock was set back: the
  /// window of the clock counts, with what was used of the stored one, but one request is admitted
  /// whatever that is. No unit but its own is minted, and no key waits longer than a window.
  static constexpr Word max_ahead = 60'000'000;
};

/// Rows of the table of operations.
extern const Operation fixed_window_acquire;
extern const Operation fixed_window_peek;
extern const Operation fixed_window_refund;
extern const Operation fixed_window_reset;
extern const Operation fixed_window_adjust;
extern const Operation fixed_window_block;

}  // namespace sluice
