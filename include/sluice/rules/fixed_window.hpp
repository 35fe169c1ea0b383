// Fixed window: a limit of units in each window of a calendar.
//
// Windows follow each other without gaps. They have one width, counted from an origin, or are
// between the boundaries of a calendar: days of a time zone, months. A request fits if the use of
// the current window, including the request, is within the limit; a new window begins with no use.
//
//     window  = the one that contains now: [begin, end)
//     used'   = used if the stored window is this one, else 0
//     allowed iff used' + cost <= limit;   then used = used' + cost of this window
//     retry_after = end - now
//
// Across the end of a window, up to twice the limit may be admitted within one width.
//
// Limiters that share a key have the same calendar, and may have different limits: what was used
// stays used.
//
// A block replaces the stored window: nothing is admitted until it ends, and then the window in
// which it ends has the use that is stored with it.
//
// The state contains the begin of its window, which only moves forward unless the clock is set
// back: a window is opened once. Two processes may have different versions of a time zone, so that
// a stored window may begin within the caller's window: its use then counts in the caller's window,
// and its begin stays. So at most the limit is admitted from one stored begin to the next.
#pragma once

#include "sluice/extend/operation.hpp"

namespace sluice {

/// The shapes and bounds of the rule. Users call the class FixedWindow
/// (sluice/limiters/fixed_window.hpp).
struct FixedWindowRule {
  /// Absent: nothing was used.
  struct State {
    Word begin = 0;  ///< of the stored window, or the end of a block: microseconds since the epoch
    Word used = 0;   ///< units of cost * 2, plus 1 for a block: use of the window in which it ends
  };

  /// The boundaries of four windows.
  static constexpr std::size_t boundaries = 5;

  /// Arguments of fixed_window.acquire, which spends, and of fixed_window.peek, which decides the
  /// same and changes nothing. Worked example, limit 2 a minute, both used at 12:00:10: refused
  /// with retry_after 50 s; at 12:01:00 allowed with remaining 1. If no window contains the
  /// present: Errc::outside_calendar.
  struct Args {
    Word limit;
    Word width;  ///< microseconds, up to max_width; 0: the boundaries are used
    /// Each boundary begins a window that ends at the next one, in ascending order. With a width,
    /// the first one is the origin, from 0 to below the width, and the others are not read.
    Word boundary[boundaries];
    Word cost;  ///< 0 is decided like any other cost, and writes nothing
  };

  /// Arguments of fixed_window.refund, which refunds units of one window, at most its use. It
  /// refuses unless that window is the current one, the stored one begins in it and something of it
  /// is used. Output: the number of units refunded.
  struct RefundArgs {
    Word limit;
    Word begin;  ///< of the window in which the units were granted
    Word end;    ///< up to word_limit
    Word cost;   ///< 0 to word_limit
  };

  /// Arguments of fixed_window.adjust, which charges `amount` units to the current window, even
  /// beyond the limit, up to max_used; or refunds -amount units of it, at most its use. Output: the
  /// number of units charged or refunded. Errors as for Args.
  struct AdjustArgs {
    Word limit;
    Word width;
    Word boundary[boundaries];
    Word amount;  ///< from -word_limit to word_limit
  };

  /// Arguments of fixed_window.block: nothing is admitted until `span` from now, unless an earlier
  /// block ends later. Errors as for Args.
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

  /// How far the stored window may begin ahead of the clock. Up to this, the clock was corrected,
  /// and the stored window counts until its end. Beyond it, the clock was set back: the clock's
  /// window counts, with the use of the stored one, but one request is admitted whatever that is.
  /// Only that request exceeds the limit, and no key waits longer than a window.
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
