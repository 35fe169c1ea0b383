// What Arrivals share. Threading: immutable.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sim/fixed_point.hpp"
#include "sluice/sim/arrivals.hpp"

namespace sluice::sim {

/// A quotient in lowest terms, of numbers below 2^63: rounded if that is not enough.
struct Quotient {
  std::uint64_t num = 0;
  std::uint64_t den = 1;

  static Quotient of(fixed::Wide num, fixed::Wide den) noexcept;
  [[nodiscard]] double value() const noexcept {
    return static_cast<double>(num) / static_cast<double>(den);
  }
};

struct Arrivals::Model {
  enum class Kind : std::uint8_t { constant, poisson, trace };

  /// A part of a Poisson process with a constant rate.
  struct Piece {
    Piece(Quotient calls_per_us, Word us);
    Quotient rate;          // calls per microsecond
    Word length;            // 0: for ever
    fixed::Wide calls_q72;  // per microsecond
    fixed::Wide gap_q32;    // microseconds per call
  };

  explicit Model(Kind which) noexcept : kind(which) {}
  /// Makes a Poisson process; one whose last piece does not end, or a pattern.
  explicit Model(std::vector<Piece> all);

  Kind kind;
  std::vector<Piece> pieces;         // of a Poisson process
  Word period = 0;                   // of a pattern; else 0
  fixed::Wide period_calls_q72 = 0;  // the expected number in a period, at most 2^126
  std::optional<SeededRng> phases;   // of mmpp(): the lengths of the pieces are means
  Quotient rate;                     // of a constant rate
  std::shared_ptr<const std::vector<Span>> offsets;
  Quotient copies{1, 1};    // of each call of a trace
  std::uint64_t first = 0;  // every stride-th call from this one on; not of a Poisson process
  std::uint64_t stride = 1;
};

}  // namespace sluice::sim
