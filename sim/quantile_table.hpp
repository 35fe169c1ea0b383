// QuantileTable: the inverse of a distribution function, for drawing. Threading: immutable.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/fixed_point.hpp"
#include "sluice/time.hpp"

namespace sluice::sim {

/// Quantiles on straight lines between points that are dense in both tails: 64 in each octave of
/// the tail probability, P(X <= x) or P(X > x), from 1/2 to 2^-58. Probabilities are in units of
/// 2^-64, quantiles in units of 2^-12 us. 57 KiB.
class QuantileTable {
 public:
  enum class Tail : std::uint8_t { lower, upper };
  static constexpr int value_bits = 12;

  /// quantile(tail, p) is called for ascending p, 0 to 2^63, of the lower, then of the upper tail.
  template <class Quantile>
  explicit QuantileTable(Quantile quantile) {
    values_.reserve(2 * nodes);
    for (const Tail tail : {Tail::lower, Tail::upper}) {
      for (std::size_t i = 0; i < nodes; ++i) values_.push_back(quantile(tail, probability(i)));
    }
  }

  /// The quantile that a uniform draw stands for, in microseconds. The low bits of the draw round
  /// it.
  [[nodiscard]] Word at(std::uint64_t draw) const noexcept {
    const std::uint64_t p = draw << 1 >> 1;
    const std::uint64_t* const side = values_.data() + (draw >> 63) * nodes;
    const int bit = p < octave ? 6 : 57 - std::countl_zero(p);  // a cell is 2^bit wide
    const std::size_t i = p < octave ? 0 : static_cast<std::size_t>(bit) * octave + (p >> bit) - 63;
    const std::uint64_t rest = p & ((std::uint64_t{1} << bit) - 1);
    const auto step = static_cast<fixed::SignedWide>(side[i + 1]) - side[i];
    const auto value = side[i] + static_cast<std::uint64_t>(step * rest >> bit);
    return static_cast<Word>((value + (draw & mask)) >> value_bits);
  }

  [[nodiscard]] Word min() const noexcept { return static_cast<Word>(values_[0] >> value_bits); }
  [[nodiscard]] Word max() const noexcept {
    return static_cast<Word>((values_[nodes] + mask) >> value_bits);
  }
  /// In nanoseconds: the mean of at() for a uniform draw.
  [[nodiscard]] Word mean() const noexcept {
    fixed::Wide sum = 0;  // twice the integral
    for (const std::size_t side : {std::size_t{0}, nodes}) {
      for (std::size_t i = 0; i + 1 < nodes; ++i) {
        sum += fixed::Wide{values_[side + i] + values_[side + i + 1]} *
               (probability(i + 1) - probability(i));
      }
    }
    constexpr int rest = 64 + 1 + value_bits - 20;
    return static_cast<Word>(((sum >> 20) * 1'000 + (fixed::Wide{1} << (rest - 1))) >> rest);
  }

 private:
  static constexpr std::uint64_t octave = 64;
  static constexpr std::size_t nodes = 57 * octave + 2;
  static constexpr std::uint64_t mask = (std::uint64_t{1} << value_bits) - 1;

  /// 0, then 64, 65... 127, 128, 130... 2^63.
  static constexpr std::uint64_t probability(std::size_t node) noexcept {
    return node == 0 ? 0 : (octave + (node - 1) % octave) << (node - 1) / octave;
  }

  std::vector<std::uint64_t> values_;
};

}  // namespace sluice::sim
