// Shared sliding window: a rate limit whose configuration is stored under a key: a number of
// permits in any interval, for all clients together or for each. The spent permits are the log of a
// sliding window, under another key of the same tag; a request is one plan of two steps, `expect`
// here and a step of the log.
//
//     expect  allowed  iff  a rate is set, its version is the caller's, permits <= rate,
//                           and no window that the caller uses has ended (see below)
//
// A caller with another version reads the configuration again. A configuration that starts afresh
// names a new log (by its generation), so that no log of any client has to be found and cleared.
//
// A shorter interval does not look back as far as the one before it. So an update from L permits in
// S to l in s, with L > l and S > s, keeps a window of the old rate in addition to the new one, and
// both must admit a request:
//
//     span  = min(S, s * ceil(L / l))      beyond it the new rate allows as much as the old
//     limit = max(L, l * ceil(span / s))
//
// With it, no interval of S holds more than max(L, l * ceil(S / s)), the larger of what the two
// rates allow. It is kept until all units admitted before the change have left it: for its span,
// and max_reserved longer, because reservations may be ahead. Units admitted by the new rate alone
// never fill it, so that hints do not depend on when it ends.
//
// Under a rate of 0, and an unlimited one, the log is as it was. Windows are kept over a rate of 0,
// which grants nothing, for the rate after it.
//
// A longer interval needs no such window: the units that the log has dropped count in it as if the
// old rate had been used up (SlidingWindowRule::max_assumed).
#pragma once

#include "sluice/extend/operation.hpp"

namespace sluice {

struct SharedSlidingWindowRule {
  /// Absent: no rate was configured.
  struct State {
    Word version;     ///< never repeats: rises with each change, and with time
    Word generation;  ///< the version that started the log
    Word rate;        ///< permits in any interval; 0 or unlimited: the log is not asked
    Word interval;    ///< microseconds
    Word per_client;  ///< 0: all clients share one log; 1: each has its own
    Word touched;     ///< the latest recorded use, microseconds since the epoch
    Word keep_alive;  ///< how long it is kept after that, microseconds
  };
  /// A window of an earlier rate that an update keeps: three words each after the seven above.
  /// Absent: zeros.
  struct Kept {
    Word limit;
    Word span;   ///< microseconds
    Word until;  ///< when it ends, microseconds since the epoch
  };
  /// Limited by the output words of shared_sliding_window_config. If an update needs one more, the
  /// one that ends first is dropped.
  static constexpr std::size_t max_kept = 3;
  static constexpr std::size_t state_words = 7 + 3 * max_kept;
  static constexpr std::size_t read_output = 6 + 2 * max_kept;

  /// How far ahead reservations at an update still count in the window that it keeps.
  static constexpr Word max_reserved = 3'600'000'000;

  /// What configure does with an existing rate.
  enum class Mode : Word {
    if_absent = 0,  ///< keeps it
    reset = 1,      ///< starts a new log: nothing is spent
    update = 2,     ///< keeps the log: what is spent stays spent
  };

  static constexpr Word max_rate = 65'536;                                 ///< as a window's limit
  static constexpr Word max_interval = Word{366} * 24 * 3600 * 1'000'000;  ///< as a window's span
  static constexpr Word max_keep_alive = word_limit / 2;
};

/// Arguments: rate, interval, per_client, Mode, and how long after its last use the configuration
/// is kept, at least the interval. Output: version, and 1 if it is new.
extern const Operation shared_sliding_window_configure;
/// Arguments: the limit to report, the version, permits, keep_alive, and when the first of the kept
/// windows ends, or 0. Errors: not_configured, config_changed, cost_exceeds_capacity. From time to
/// time it records that the configuration is in use.
extern const Operation shared_sliding_window_expect;
/// Arguments: the limit to report, and a keep_alive that must be in range. Output: version,
/// generation, rate, interval, per_client, then limit and span of each kept window (zeros: none),
/// then when the first of them ends, or 0. Errc::not_configured without a rate.
extern const Operation shared_sliding_window_config;

}  // namespace sluice
