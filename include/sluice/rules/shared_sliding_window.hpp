// Shared sliding window: the setting of a rate limit that lives in the store: so many permits in
// any interval of so long, for all clients together or for each. What is spent is a sliding
// window's log under another key of the same tag; a request is one plan of two steps, `expect` here
// and the log's own.
//
//     expect  allowed  iff  a rate is set, its version is the caller's, permits <= rate,
//                           and no window that the caller asks under has ended (see below)
//
// Whoever finds another version reads the setting again. A setting that starts afresh names a new
// log (by its generation), so that no log of any client has to be found and emptied.
//
// A shorter interval does not look back as far as the one before it. So an update from L permits in
// S to l in s, with L > l and S > s, keeps a window of the old rate beside the new one, and both
// decide, the stricter one each time:
//
//     span  = min(S, s * ceil(L / l))      from there on the new rate allows as much as the old
//     limit = max(L, l * ceil(span / s))
//
// With it no interval of S holds more than max(L, l * ceil(S / s)), the larger of what the two
// rates allow. It is kept until what was admitted before the change has left it: for its span, and
// max_reserved longer, since reservations may lie ahead. What is admitted by the new rate alone
// never fills it, so that no hint has to know when it ends.
//
// A longer interval needs no such window: what the log has dropped counts in it as if the old rate
// had been used up (SlidingWindowRule::max_assumed).
#pragma once

#include "sluice/extend/operation.hpp"

namespace sluice {

struct SharedSlidingWindowRule {
  /// Absent means that no rate was set.
  struct State {
    Word version;     ///< never the same twice: rises with each change, and with time
    Word generation;  ///< the version that started the log
    Word rate;        ///< permits in any interval
    Word interval;    ///< microseconds
    Word per_client;  ///< 0: all clients share one log; 1: each has its own
    Word touched;     ///< when it was last known to be in use, microseconds since the epoch
    Word keep_alive;  ///< for how long after that it is kept, microseconds
  };
  /// A window that an update keeps beside the rate, three words each behind those. Absent: zeros.
  struct Kept {
    Word limit;
    Word span;   ///< microseconds
    Word until;  ///< when it ends, microseconds since the epoch
  };
  /// As many as a reading can tell. If a further update needs one more, the first to end goes.
  static constexpr std::size_t max_kept = 3;
  static constexpr std::size_t state_words = 7 + 3 * max_kept;
  static constexpr std::size_t read_output = 6 + 2 * max_kept;

  /// Reservations that lie ahead at an update count in the window that it keeps up to here.
  static constexpr Word max_reserved = 3'600'000'000;

  /// What set does with a rate that is there.
  enum class Mode : Word {
    if_absent = 0,  ///< leaves it alone
    reset = 1,      ///< a new log: nothing is spent
    update = 2,     ///< the same log: what is spent stays spent
  };

  static constexpr Word max_rate = 65'536;                                 ///< as a window's limit
  static constexpr Word max_interval = Word{366} * 24 * 3600 * 1'000'000;  ///< as a window's span
  static constexpr Word max_keep_alive = word_limit / 2;
};

/// Arguments: rate, interval, per_client, Mode, and for how long after its last use the setting is
/// kept, at least as long as the interval. Output: version, and 1 if it is new.
extern const Operation shared_sliding_window_configure;
/// Arguments: the limit to report, the version, permits, keep_alive, and when the first of the kept
/// windows ends, or 0. Errors: not_configured,
/// config_changed, cost_exceeds_capacity. It notes that the setting is in use, now and then.
extern const Operation shared_sliding_window_expect;
/// Arguments: the limit to report, and a keep_alive that must be in range. Output: version,
/// generation, rate, interval, per_client, then limit and span of each window that is kept (zeros:
/// none), then when the first of them ends, or 0. Errc::not_configured without a rate.
extern const Operation shared_sliding_window_config;

}  // namespace sluice
