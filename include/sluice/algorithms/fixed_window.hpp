// Fixed window: so many units in each window of a calendar.
//
// Windows follow each other without a gap. All have one width, counted from an origin, or they lie
// between the boundaries of a calendar: days of a time zone, months. A request fits if what would
// then be used of the present window is within the limit; a new window begins with nothing used.
//
//     window  = the one that holds now: [begin, end)
//     used'   = used if start >= begin, else 0
//     allowed iff used' + cost <= limit;   then start = begin, used = used' + cost
//     retry_after = end - now
//
// Around the end of a window up to twice the limit may be admitted within the width of one.
#pragma once

#include "sluice/operation.hpp"

namespace sluice {

/// The rule's shapes and bounds. Use the class FixedWindow (sluice/fixed_window.hpp) to limit.
struct FixedWindowRule {
  /// Absent means that nothing was used.
  struct State {
    Word start = 0;  ///< when the window began: microseconds since the epoch
    Word used = 0;   ///< units of cost
  };

  /// Boundaries of four windows.
  static constexpr std::size_t boundaries = 5;

  /// Of fixed_window.take, which spends, and fixed_window.peek, which answers the same and changes
  /// nothing. Worked example, limit 2 a minute, both used at 12:00:10: refused with retry_after
  /// 50 s; at 12:01:00 allowed with remaining 1. If no window of the calendar holds the instant:
  /// Errc::outside_calendar.
  struct Args {
    Word limit;
    Word width;  ///< microseconds, up to max_width; 0: the boundaries count
    /// Each begins a window that ends with the next, none before its predecessor. Under a width,
    /// the first is the origin, from 0 to below the width, and the others are not read.
    Word boundary[boundaries];
    Word cost;  ///< 0 asks without spending
  };

  /// Of fixed_window.give_back: gives units of one window back if it is still the present one and
  /// something is used of it, else refuses. Never gives back more than is used.
  struct GiveBackArgs {
    Word limit;
    Word begin;  ///< of the window that the units were taken in
    Word end;    ///< up to word_limit
    Word cost;
  };

  static constexpr Word max_width = word_limit / 2;

  /// How far the stored window may begin ahead of the clock. Up to this far the clock was
  /// corrected, and the stored window counts until its end. Beyond it the clock was set back: the
  /// window of the clock counts, with what was used of the stored one, but one request is admitted
  /// whatever that is. No unit but its own is minted, and no key waits longer than a window.
  static constexpr Word max_ahead = 60'000'000;
};

/// Rows of the table of operations.
extern const Operation fixed_window_take;
extern const Operation fixed_window_peek;
extern const Operation fixed_window_give_back;
extern const Operation fixed_window_reset;

}  // namespace sluice
