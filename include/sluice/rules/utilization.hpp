// Utilization shedding: after a long overload, the least important calls are refused.
//
// Samples of the utilization u move a level. Above `bad` it rises, in proportion to the excess;
// below `good` it falls; in the dead zone between them it falls slowly. The first `grace` of the
// level sheds nothing, the rest is the amount of shedding:
//
//     speed(u)  =  (u - bad) / (1 - bad)              u > bad       1 at u = 1
//              =  -max(decay, 1 - u / good)           u < good     -1 at u = 0
//              =  -decay                              else
//     level'    =  clamp(level + min(now - stamp, max_gap) * speed(u), 0, grace + full_after)
//     amount    =  max(0, level - grace) / full_after              0 to 1
//     tier i of T (0 is the most critical) is shed with probability clamp(amount * T - (T - i), 0,
//     1)
//
// At u = 1 from rest, the first call, of tier T, is shed after `grace`, and tier 1 completely after
// `full_after` more; tier 0 never is. With grace 28 s and full_after 120 s this is the worker
// utilization shedder of Stripe's "Scaling your API with rate limiters" (2017). Speeds are whole
// millionths, rounded towards zero, so that the level is a whole number of microseconds times
// millionths.
//
// Without samples, the level falls by `decay` from `max_gap` after the last sample on, until it is
// at rest.
#pragma once

#include "sluice/extend/operation.hpp"

namespace sluice {

/// The rule, as pure functions. Users call the class UtilizationShedder
/// (sluice/limiters/utilization_shedder.hpp).
struct UtilizationRule {
  /// The unit of utilization, speeds and probabilities: millionths.
  static constexpr Word one = 1'000'000;
  /// The upper bound of every span but the TTL of the state: an hour, which keeps products within
  /// 2^52.
  static constexpr Word max_span = 3'600'000'000;
  /// The most tiers that can be shed, which is the range of Decision::part; one more, the most
  /// critical, is never shed.
  static constexpr Word max_tiers = 65'535;
  /// How far a stamp may be ahead of the clock after the clock was set back: samples then change
  /// nothing until the clock has caught up. A state with a later stamp counts as absent.
  static constexpr Word max_ahead = 60'000'000;

  /// Absent: at rest, and never sampled.
  struct State {
    Word level = 0;  ///< at `stamp`, in us * millionths; 0 to (grace + full_after) * one
    Word stamp = 0;  ///< the last sample's time, in microseconds since the epoch; at least 1
  };

  /// The arguments that move the level, which come first in every operation but reset. All spans
  /// are in microseconds.
  struct Pace {
    Word limit = one;  ///< always `one`; becomes Decision::limit
    Word grace;        ///< 0 to max_span - full_after
    Word full_after;   ///< 1 to max_span
    Word decay;        ///< millionths, 1 to one
    Word max_gap;      ///< a longer gap between samples counts as this long; 1 to max_span
  };

  struct SampleArgs {
    Pace pace;
    Word good;         ///< millionths; 1 <= good <= bad
    Word bad;          ///< millionths; bad < one
    Word utilization;  ///< millionths, 0 to one
  };

  struct ShedArgs {
    Pace pace;
    Word tiers;  ///< T, the number of tiers that can be shed: 1 to max_tiers
    Word tier;   ///< 0, the most critical, to tiers
    Word draw;   ///< uniform from [0, full_after): shed if it is below probability * full_after
  };

  /// Moves the level; always allowed. The first sample only sets the time, and so does one after
  /// the level has come to rest without samples. A second sample at the same instant changes
  /// nothing. Remaining: the part of the traffic of all tiers but the first that is not shed, in
  /// millionths. Output: the level in whole microseconds, and the time of the last sample.
  static Verdict sample(const StateView& state, const SampleArgs& args, Word now,
                        Effects& effects) noexcept;

  /// Sheds (refuses) or admits one call; changes nothing, so that calls do not affect the level.
  /// Remaining: the part of this tier that is not shed, in millionths. There is no time to wait
  /// for: retry_after is 0 also when refused. Output: the tier, its probability in millionths, the
  /// level in whole microseconds, and the time of the last sample.
  static Verdict shed(const StateView& state, const ShedArgs& args, Word now,
                      Effects& effects) noexcept;

  /// shed() without `draw`: refuses only if the tier is shed completely.
  static Verdict peek(const StateView& state, const ShedArgs& args, Word now,
                      Effects& effects) noexcept;

  /// The probability, times full_after, with which a tier is shed at a level in whole microseconds.
  [[nodiscard]] static Word shed_span(const Pace& pace, Word tiers, Word tier,
                                      Word level_us) noexcept;

  /// The microseconds after a sample at which its state becomes equivalent to an absent one.
  [[nodiscard]] static Word ttl(const Pace& pace) noexcept;

  [[nodiscard]] static Word check(const SampleArgs& args) noexcept;
  [[nodiscard]] static Word check(const ShedArgs& args) noexcept;
};

/// Rows of the table of operations. utilization_reset has the limit as its only argument, and sets
/// the level to rest as if there had been no sample.
extern const Operation utilization_sample;
extern const Operation utilization_shed;
extern const Operation utilization_peek;
extern const Operation utilization_reset;

}  // namespace sluice
