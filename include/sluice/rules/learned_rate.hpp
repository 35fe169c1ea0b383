// Learned rate: a rate limit that nobody knows, found by what is refused.
//
// Units are granted at `rate`, and what was not used is saved for `saved`, or as much as two
// requests of the same cost need. While that is used, the rate grows; a call that was granted and
// then refused by the API lowers it:
//
//     empty:   when nothing was left
//     need     = ceil(cost / rate)
//     allowed  iff  now >= max(empty, now - max(2 * need, saved)) + need
//     grows:   rate += dt * max(|peak - rate| / (below the peak ? 6 s : 20 s), peak / 100 s)
//     falls:   rate *= 19 / 20
//              peak = max(rate before, min(peak, accepted in the last minute))
//
// So the rate returns to where it fell quickly, passes that slowly, and leaves it faster and
// faster: the shape of CUBIC (RFC 9438) in the form of its predecessor BIC, which needs no cube
// root. Before the first fall it grows by a factor e in 3 s. It only grows where a grant leaves
// less than the same again, by at most `step` a grant: a rate that is not used is not explored, and
// a slow API is asked a hundred times or more between two refusals.
//
// All refusals of calls that were granted before the last fall are of its episode: one fall. If the
// first grant behind a fall is refused as well, nothing fits at present: the rate halves, down to
// 1/16 of the peak, and the peak is at most what was accepted in the last minute. Where that was
// less than 1/8 of the peak, it tells nothing of the limit: the peak stays, and the rate halves
// down to `least`.
//
// What an API tells of its limit is a ceiling, and the new peak; of what remains, nothing more is
// granted before its window ends.
#pragma once

#include "sluice/extend/operation.hpp"

namespace sluice {

/// The rule, as pure functions. Users call the class LearnedRate
/// (sluice/limiters/learned_rate.hpp). Rates are in millionths of a unit a second. O(1).
struct LearnedRateRule {
  /// Absent, or idle for `forget`: the rate is `initial`, and all that can be saved is.
  struct State {
    Word stamp = 0;       ///< the last write, in microseconds since the epoch; at least 1
    Word rate = 0;        ///< at least 1
    Word peak = 0;        ///< where it fell, or what the API told; 0: neither yet
    Word empty = 0;       ///< when nothing was left; ahead while there is a debt
    Word grown = 0;       ///< until when time has made the rate grow
    Word fell = 0;        ///< the last fall; 0: none
    Word first = 0;       ///< the first grant behind it; 0: none yet
    Word start = 0;       ///< of the minute that is counted
    Word current = 0;     ///< units granted in it and not refused, 0 to max_count
    Word previous = 0;    ///< of the minute before, plus 1; 0: it was not counted
    Word ceiling = 0;     ///< told by the API
    Word told_until = 0;  ///< ... which holds so long
    Word left = 0;        ///< units, told by the API
    Word left_until = 0;  ///< ... which hold so long
    Word closed = 0;      ///< the end of a block
  };

  /// What comes first in the arguments of every operation but reset.
  struct Pace {
    Word limit;    ///< 1 or more: what decisions report, and the most that remains
    Word initial;  ///< least to most
    Word least;    ///< 1 or more
    Word most;     ///< up to max_rate
    Word forget;   ///< microseconds, min_forget to max_forget
  };
  struct Args {
    Pace pace;
    Word cost;  ///< units, 0 to max_cost; 0 writes nothing
  };
  /// The API has refused units of a grant. Output: 1 if the rate fell, else 0.
  struct LimitedArgs {
    Pace pace;
    Word amount;   ///< 0 to max_cost
    Word granted;  ///< when, by the store's clock
  };
  enum class Change : Word { refund = 0, charge = 1 };
  /// Output: the units that were given back or charged.
  struct AdjustArgs {
    Pace pace;
    Word amount;  ///< 0 to max_cost
    Word change;  ///< a Change
  };
  struct ToldArgs {
    Pace pace;
    Word ceiling;    ///< 0 to max_rate; 0: not told
    Word remaining;  ///< units; word_limit: not told
    Word reset;      ///< microseconds until there are more, 0 to max_block
  };
  struct BlockArgs {
    Pace pace;
    Word length;  ///< microseconds, 0 to max_block; 0 changes nothing
  };

  static constexpr Word max_rate = 1'000'000'000'000;  ///< a million units a second
  static constexpr Word max_cost = Word{1} << 40;
  static constexpr Word max_need = Word{1} << 42;  ///< of a cost at the least rate: 50 days
  static constexpr Word max_count = Word{1} << 32;
  static constexpr Word min_forget = 60'000'000;
  static constexpr Word max_forget = 365 * Word{86'400'000'000};
  static constexpr Word max_block = max_forget;
  static constexpr Word max_debt = 60'000'000;
  static constexpr Word saved = 100'000;      ///< microseconds
  static constexpr Word step = 100;           ///< milliseconds of growth a grant, at most
  static constexpr Word minute = 60'000'000;  ///< microseconds

  /// How far the stamp may be ahead of the clock after the clock was set back. Up to this, time
  /// stands still for the key. Beyond it, time restarts: the rate and its peak stay, and one
  /// request is granted at once.
  static constexpr Word max_ahead = 60'000'000;

  /// ceil(cost / rate) in microseconds, at most max_need.
  [[nodiscard]] static Word need(Word cost, Word rate) noexcept;
};

/// Rows of the table of operations. The output of peek is the rate and its peak.
extern const Operation learned_rate_acquire;
extern const Operation learned_rate_peek;
extern const Operation learned_rate_limited;
extern const Operation learned_rate_adjust;
extern const Operation learned_rate_told;
extern const Operation learned_rate_block;
extern const Operation learned_rate_reset;

}  // namespace sluice
