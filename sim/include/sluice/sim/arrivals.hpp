// Arrivals: when calls come in a simulation. Arrivals are plain values; an ArrivalProcess belongs
// to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sluice/rng.hpp"
#include "sluice/time.hpp"

namespace sluice::sim {

/// A rate: so many events in each such time, `{9'000, 1s}`.
struct Rate {
  Word events = 0;
  Span per = std::chrono::seconds{1};

  [[nodiscard]] double per_second() const noexcept {
    return static_cast<double>(events) * 1e6 / static_cast<double>(per.count());
  }
  friend bool operator==(const Rate&, const Rate&) = default;
};

/// When calls come. All but traces follow a rate, whose integral m(t) is the expected number of
/// calls until t: the n-th call of constant() comes when m reaches n, the n-th of a Poisson process
/// when m reaches the sum of n exponential draws of mean 1 (inversion; no draw is discarded). Calls
/// are stamped with whole microseconds, rounded down; nothing accumulates from one to the next.
///
/// Copying is cheap. Every function that makes one throws std::invalid_argument, with the value and
/// the range, unless each rate is 0 to 10^8 events a second with 1 us <= per <= 365 days.
class Arrivals {
 public:
  /// At equal distances, to the microsecond: call n of 1, 2, 3... at floor(n * per / events).
  static Arrivals constant(Rate rate);
  /// A Poisson process of constant rate.
  static Arrivals poisson(Rate rate);

  /// One part of a pattern.
  struct Phase {
    Rate rate;
    Span length;
  };
  /// A Poisson process whose rate is that of the phases in turn, again and again, from the first.
  /// REQUIRES: 1 to 65536 phases, each 1 us to 365 days.
  static Arrivals pattern(const std::vector<Phase>& phases);
  /// pattern({{busy, phase}, {calm, phase}}).
  static Arrivals on_off(Rate busy, Rate calm, Span phase);
  /// A Markov-modulated Poisson process: two phases in turn, whose lengths are exponential with the
  /// means `busy.length` and `calm.length`, rounded down to microseconds (at least 1). At the
  /// start, each has the probability that it has in the long run. `draws` draws the phases, so that
  /// all parts of these arrivals, and all runs of them, change phase at the same times. next()
  /// takes time for each phase that it passes. REQUIRES: mean lengths of 1 ms to 365 days.
  static Arrivals mmpp(Phase busy, Phase calm, const SeededRng& draws);
  /// A Poisson process with the rate mean * (1 + swing * sin(2 pi t / period)), constant within
  /// each 288th of the period at its average there (5 minutes of a day): the mean rate first, then
  /// the peak after a quarter of the period. REQUIRES: 0 <= swing <= 1, 1 s <= period <= 365 days.
  static Arrivals diurnal(Rate mean, double swing, Span period);
  /// A Poisson process of the rate `base`, times `factor` from `from` until `from + length`.
  /// REQUIRES: 0 <= factor <= 10^6, 0 <= from, 1 us <= length, each at most 365 days.
  static Arrivals spike(Rate base, double factor, Span from, Span length);
  /// Calls at these offsets from the start. Takes 8 bytes a call, shared by all copies. Throws
  /// std::invalid_argument if one is before its predecessor (it names both and their positions,
  /// counted from 1) or outside [0, word_limit].
  static Arrivals trace(std::vector<Span> offsets);

  /// The same with num / den times the calls, for a load factor or a worker's share. The rate is
  /// multiplied. Of a trace, each call comes floor(num / den) times, and once more with the
  /// probability of the remainder, drawn from the process's generator. REQUIRES: 0 <= num <= 2^32,
  /// 1 <= den <= 2^32, and a rate of at most 10^8 a second results.
  [[nodiscard]] Arrivals scaled(Word num, Word den) const;
  /// One of `of` equal parts, which together are these arrivals. Poisson processes divide their
  /// rate; of constant() and trace(), part i of 0, 1, 2... has every of-th call from the i-th on.
  /// REQUIRES: index < of <= 2^20.
  [[nodiscard]] Arrivals part(std::uint32_t index, std::uint32_t of) const;

  /// The highest rate, in calls per second. Of a trace: of the busiest whole second of its offsets.
  [[nodiscard]] double peak() const;
  /// The rate in the long run, in calls per second: of a period of a pattern; of mmpp(), the rates
  /// weighted by the mean lengths; the base rate of a spike; of a trace, its calls in the time from
  /// the start to the last of them (at least 1 us).
  [[nodiscard]] double mean_rate() const;
  /// The expected number of calls with an offset below `length`, of mmpp() over all phases that can
  /// be drawn; of constant() and traces that are not scaled, the number.
  [[nodiscard]] double expected(Span length) const;
  /// The number of calls of a trace, before scaling and division; 0 for all others.
  [[nodiscard]] std::size_t trace_size() const noexcept;

 private:
  friend class ArrivalProcess;
  struct Model;
  explicit Arrivals(std::shared_ptr<const Model> model) noexcept : model_(std::move(model)) {}

  std::shared_ptr<const Model> model_;
};

/// The calls of one run of Arrivals.
///
///     ArrivalProcess calls(Arrivals::poisson({9'000, 1s}), stream(seed, worker, purpose));
///     while (const auto at = calls.next()) ...      // offsets from the start, ascending
class ArrivalProcess {
 public:
  /// `until`: no later call is looked for.
  ArrivalProcess(const Arrivals& arrivals, const SeededRng& rng, Span until = Span{word_limit});

  /// The offset of the next call from the start; equal offsets are possible. None after the end of
  /// a trace, if the rate is 0 from now on, or beyond `until`. O(1), amortised; constant() and
  /// traces that are not scaled draw nothing.
  std::optional<Span> next();
  /// The position in its trace, from 0, of the call that next() returned, for its key and its
  /// cost. REQUIRES: a trace.
  [[nodiscard]] std::size_t position() const noexcept { return position_; }

 private:
  std::optional<Span> next_of_rate();
  std::optional<Span> next_of_constant();
  std::optional<Span> next_of_trace();
  void begin_phase();

  Arrivals arrivals_;
  SeededRng rng_;
  SeededRng phases_;  // of mmpp()
  Word until_;
  std::uint64_t count_ = 0;    // calls of a constant rate; in a trace, the next position
  std::size_t position_ = 0;   // in a trace
  std::uint64_t repeats_ = 0;  // of the call at position_, that are left
  std::size_t phase_ = 0;      // of a pattern
  Word phase_start_ = 0;       // its offset
  Word phase_length_ = 0;      // 0: for ever
  std::uint64_t into_ = 0;     // how far into the phase, in microseconds
  std::uint32_t rest_ = 0;     // and 2^-32 us
};

}  // namespace sluice::sim
