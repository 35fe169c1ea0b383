// Delay: distributions of delays in a simulation.
//
// All draws are integer arithmetic: the distributions of <random> and the functions of <cmath>
// differ between standard libraries, and a simulation must not. Plain values; a Delay may be drawn
// from on several threads, each with its own generator. A DelayProcess belongs to one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sluice/rng.hpp"
#include "sluice/time.hpp"

namespace sluice::sim {

/// A distribution of delays in microseconds. Copying is cheap: tables are shared. Every function
/// that makes one throws std::invalid_argument, with the value and the range, if an argument is out
/// of range; each Span is at most `longest`.
///
/// normal, gamma, pareto, weibull and empirical follow a table of the inverse distribution
/// function, on straight lines between its points: 64 in each octave of either tail probability
/// from 1/2 to 2^-58, those that were given for empirical. Their real parameters are rounded to
/// multiples of 2^-32. A draw between two microseconds becomes one of both at random, so that the
/// mean is kept however short the delays are. Delays of more than `longest_draw` are cut to it. A
/// table takes 57 KiB, and up to 1.5 ms to make. Formulas: Johnson, Kotz, Balakrishnan, Continuous
/// Univariate Distributions (1994); docs/models.md states each exactly.
class Delay {
 public:
  static constexpr Span longest = std::chrono::hours{30 * 24};  ///< 30 days
  static constexpr Span longest_draw{Word{1} << 47};            ///< 4.4 years

  /// Always `span`. REQUIRES: 0 <= span.
  static Delay constant(Span span);
  /// Uniform from `low` to `high`, both included. REQUIRES: 0 <= low <= high.
  static Delay uniform(Span low, Span high);
  /// Exponential: P(X > x) = exp(-x / mean), rounded down to whole microseconds; at most 44.4 times
  /// the mean. REQUIRES: 1 us <= mean.
  static Delay exponential(Span mean);
  /// Approximately log-normal: half of the draws are below `p50`, 99 of 100 below `p99`. The
  /// logarithm is a sum of twelve uniform draws, which is normal except that its tails end at 6
  /// sigma: the longest delay is max(). Rounded down to whole microseconds. REQUIRES: 1 us <= p50
  /// <= p99 <= 64 * p50.
  static Delay log_normal(Span p50, Span p99);
  /// Normal with this mean and standard deviation, as far as it lies within 6 sigma of the mean
  /// and is not negative: what is beyond these bounds is cut to them, so that mean() exceeds `mean`
  /// if mean < 4 * sd. REQUIRES: 0 <= mean, 0 <= sd.
  static Delay normal(Span mean, Span sd);
  /// Gamma with density x^(shape - 1) * exp(-x / scale), scale = mean / shape. A whole shape k is
  /// the Erlang distribution of k stages; 1 is exponential; below 1 it has a long tail. REQUIRES:
  /// 1 us <= mean, 0.05 <= shape <= 1000.
  static Delay gamma(Span mean, double shape);
  /// Pareto, bounded by `most`: P(X > x) = ((min / x)^alpha - q) / (1 - q), q = (min / most)^alpha,
  /// for min <= x <= most. REQUIRES: 1 us <= min < most, 0.1 <= alpha <= 100.
  static Delay pareto(Span min, double alpha, Span most = longest);
  /// Weibull: P(X > x) = exp(-(x / scale)^shape). REQUIRES: 1 us <= scale, 0.1 <= shape <= 100.
  static Delay weibull(Span scale, double shape);

  /// The `share` of the draws that do not exceed `delay`.
  struct Point {
    double share;
    Span delay;
  };
  /// The distribution whose quantiles lie on straight lines between these points. Two points of one
  /// share are a gap without draws, two of one delay a delay with a probability of its own.
  /// REQUIRES: 2 to 65536 points, both members ascending (equal neighbours allowed), from share 0
  /// (the shortest) to share 1 (the longest).
  static Delay empirical(const std::vector<Point>& points);

  struct Part;
  /// Each draw comes from one of the parts, chosen in proportion to their weights. REQUIRES: 1 to
  /// 4096 parts, 0 <= weight <= 2^20 in multiples of 2^-32, at least one of them positive. A part
  /// may be a mixture.
  static Delay mixture(const std::vector<Part>& parts);

  /// Correlated delays: from `fast` and from `slow` in turn, each for an exponential time with the
  /// mean `fast_for` or `slow_for`. A draw at a time that does not depend on the delays is slow
  /// with the probability slow_for / (fast_for + slow_for). The state persists in a DelayProcess;
  /// sample() draws it each time anew. REQUIRES: 1 ms <= fast_for, slow_for; neither of both delays
  /// has a state.
  static Delay phases(const Delay& fast, Span fast_for, const Delay& slow, Span slow_for);
  /// The same by draws: after each, the state changes with the probability 1 / fast_calls or
  /// 1 / slow_calls, so that runs of fast and slow ones have these mean lengths. A share slow_calls
  /// / (fast_calls + slow_calls) of the draws is slow. REQUIRES: 1 <= fast_calls, slow_calls <=
  /// 2^20, in multiples of 2^-32; neither of both delays has a state.
  static Delay runs(const Delay& fast, double fast_calls, const Delay& slow, double slow_calls);
  /// Whether it is one of phases() or runs().
  [[nodiscard]] bool has_state() const noexcept { return kind_ == Kind::states; }

  /// One draw, in [min(), max()]. Uses the generator 0 to 3 times; a mixture once more.
  [[nodiscard]] Span sample(Rng& rng) const;
  [[nodiscard]] Span min() const noexcept;
  [[nodiscard]] Span max() const noexcept;

  /// The mean of sample(), including all rounding and cutting, to within 0.05 % and 1 ns. Takes 40
  /// us for log_normal, 10 us for a table.
  [[nodiscard]] std::chrono::nanoseconds mean() const;

  /// Whether both are one, or copies of one. Of distributions without a table (constant, uniform,
  /// exponential, log_normal) also: whether they have the same parameters.
  friend bool operator==(const Delay&, const Delay&) = default;

 private:
  enum class Kind : std::uint8_t {
    constant,
    uniform,
    exponential,
    log_normal,
    quantiles,
    empirical,
    mixture,
    states,
  };
  struct States;
  friend class DelayProcess;
  Delay(Kind kind, Word a, Word b) noexcept : kind_(kind), a_(a), b_(b) {}
  Delay(Kind kind, Word low, Word high, std::shared_ptr<const void> table) noexcept
      : kind_(kind), a_(low), b_(high), table_(std::move(table)) {}
  [[nodiscard]] Word stretched(std::int64_t bell) const noexcept;
  [[nodiscard]] Word mean_of_log_normal() const;
  static Delay with_states(States states);
  [[nodiscard]] const States& states() const noexcept;

  Kind kind_;
  Word a_;  // the constant, the mean, the median; else the lowest
  Word b_;  // log2(p99 / p50) in units of 2^-32; else the highest
  std::shared_ptr<const void> table_;
};

struct Delay::Part {
  double weight;
  Delay delay;
};

/// The draws of a Delay by one entity, one after the other: the state of phases() and runs()
/// persists.
class DelayProcess {
 public:
  /// `states`: draws the states, and nothing else.
  DelayProcess(const Delay& delay, const SeededRng& states) : delay_(delay), states_(states) {}

  /// A draw at this time; phases begin with the first. REQUIRES: ascending times.
  [[nodiscard]] Span sample(Time now, Rng& rng) {
    return delay_.has_state() ? delay_in_state(now).sample(rng) : delay_.sample(rng);
  }
  [[nodiscard]] const Delay& delay() const noexcept { return delay_; }

 private:
  const Delay& delay_in_state(Time now);
  void begin_phase(Time at);

  Delay delay_;
  SeededRng states_;
  bool has_begun_ = false;
  bool is_slow_ = false;
  Time until_{};  // the end of a phase
};

}  // namespace sluice::sim
