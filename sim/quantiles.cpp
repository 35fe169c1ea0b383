// Closed forms where there are some; else the density is summed up and inverted.
#include "sim/quantiles.hpp"

#include <algorithm>
#include <array>

#include "sluice/sim/delay.hpp"

namespace sluice::sim {
namespace {

using fixed::one_q32;
using fixed::SignedWide;
using fixed::Wide;
using Tail = QuantileTable::Tail;

constexpr int bits = QuantileTable::value_bits;
constexpr std::uint64_t longest = static_cast<std::uint64_t>(Delay::longest_draw.count()) << bits;

/// Sums of a density from the far end of a tail, at points of equal distance: the inverse of the
/// tail probability as a position among the points, in Q32.
class TailSums {
 public:
  /// `density` at the points in the order in which they are summed up, from the far end; `before`:
  /// the mass beyond the first.
  template <class Densities>
  TailSums(const Densities& density, Wide before) {
    sums_.reserve(density.size());
    sums_.push_back(before);
    for (std::size_t i = 1; i < density.size(); ++i) {
      sums_.push_back(sums_.back() + (Wide{density[i - 1]} + density[i]) / 2);
    }
  }

  [[nodiscard]] Wide total() const noexcept { return sums_.back(); }

  /// REQUIRES: ascending `mass`, at most total().
  [[nodiscard]] std::uint64_t position(Wide mass) noexcept {
    while (at_ + 1 < sums_.size() && sums_[at_ + 1] < mass) ++at_;
    if (mass <= sums_[at_] || at_ + 1 == sums_.size()) return at_ * one_q32;
    return at_ * one_q32 +
           static_cast<std::uint64_t>(((mass - sums_[at_]) << 32) / (sums_[at_ + 1] - sums_[at_]));
  }

 private:
  std::vector<Wide> sums_;
  std::size_t at_ = 0;
};

/// a * b / 2^32 for numbers in Q32.
constexpr std::int64_t product_q32(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(SignedWide{a} * b >> 32);
}

constexpr std::int64_t quotient_q32(std::int64_t a, std::uint64_t b) noexcept {
  return static_cast<std::int64_t>(SignedWide{a} * one_q32 / b);
}

std::int64_t log2_of(std::uint64_t x) noexcept {
  return static_cast<std::int64_t>(fixed::log2_exact(x));
}

}  // namespace

/// The density of the half line in 256 points a sigma, up to 6 sigma.
QuantileTable normal_quantiles(Word mean, Word sd) {
  constexpr std::size_t points = 6 * 256 + 1;
  std::array<std::uint64_t, points> density{};
  for (std::size_t i = 0; i < points; ++i) {
    const std::size_t z = points - 1 - i;  // in 256ths
    const auto exponent = static_cast<std::int64_t>(z * z * fixed::log2e_q32 >> 17);
    density[i] = fixed::times_exp2(one_q32, -exponent, 28, ~std::uint64_t{0});
  }
  std::array<TailSums, 2> sums{TailSums(density, 0), TailSums(density, 0)};
  return QuantileTable([&](Tail tail, std::uint64_t p) -> std::uint64_t {
    TailSums& half = sums[tail == Tail::lower ? 0 : 1];
    const std::uint64_t position = half.position(half.total() * (p >> 31) >> 32);
    const std::uint64_t z = (points - 1) * one_q32 - position;  // in 256ths, in Q32
    const auto distance =
        (Wide{static_cast<std::uint64_t>(sd)} * z + (Wide{1} << (39 - bits))) >> (40 - bits);
    const auto middle = Wide{static_cast<std::uint64_t>(mean)} << bits;
    if (tail == Tail::lower)
      return distance > middle ? 0 : static_cast<std::uint64_t>(middle - distance);
    return static_cast<std::uint64_t>(std::min<Wide>(middle + distance, longest));
  });
}

/// In y = log2(x / scale) the density is in proportion to 2^E(y), E(y) = shape * y - 2^y / ln 2,
/// which has one peak, at the mean, for every shape.
QuantileTable gamma_quantiles(Word mean, std::uint64_t shape) {
  const auto k = static_cast<std::int64_t>(shape);
  const auto exponent = [k](std::int64_t y) {
    const auto x = static_cast<std::int64_t>(fixed::times_exp2(1, y, 32, std::uint64_t{1} << 50));
    return product_q32(k, y) - product_q32(x, std::int64_t{fixed::log2e_q32});
  };
  const std::int64_t peak = log2_of(shape) - 32 * std::int64_t{one_q32};
  const std::int64_t highest = exponent(peak);
  const auto is_negligible = [&](std::int64_t y) {
    return highest - exponent(y) > 62 * std::int64_t{one_q32};
  };
  // Below 2^-40 of the scale nothing matters but the mass.
  constexpr std::int64_t step = one_q32 / 64;
  const std::int64_t lowest = std::min<std::int64_t>(peak, 0) - 40 * std::int64_t{one_q32};
  std::int64_t low = peak;
  while (low > lowest && !is_negligible(low)) low -= step;
  std::int64_t high = peak;
  while (!is_negligible(high)) high += step;

  constexpr std::size_t points = 4096 + 1;
  std::vector<std::uint64_t> density(points);
  const auto at = [&](Wide position) {  // y at a position in Q32
    return low + static_cast<std::int64_t>(Wide(high - low) * position / (points - 1) >> 32);
  };
  for (std::size_t i = 0; i < points; ++i) {
    density[i] = fixed::times_exp2(1, exponent(at(Wide{i} << 32)) - highest, 62, ~std::uint64_t{0});
  }
  // The integral of 2^(shape * y) up to `low`, in steps of the points.
  const Wide per_step = Wide(fixed::scaled(shape, fixed::ln2_q32, 32)) *
                        static_cast<std::uint64_t>((high - low) / Word{points - 1});  // Q64
  const Wide below = per_step == 0 ? 0 : (Wide{density[0]} << 64) / per_step;

  TailSums lower(density, below);
  std::reverse(density.begin(), density.end());
  TailSums upper(density, 0);
  const Wide total = lower.total();
  return QuantileTable([&](Tail tail, std::uint64_t p) -> std::uint64_t {
    const Wide mass = total * (p >> 32) >> 32;
    if (tail == Tail::lower && mass <= below) return 0;
    const std::uint64_t position =
        tail == Tail::lower ? lower.position(mass) : (points - 1) * one_q32 - upper.position(mass);
    return fixed::times_exp2(static_cast<std::uint64_t>(mean), at(position) - peak, bits, longest);
  });
}

/// P(X > x) = ((least / x)^alpha - q) / (1 - q): x = least * (q + (1 - q) * P)^(-1 / alpha).
QuantileTable pareto_quantiles(Word least, std::uint64_t alpha, Word most) {
  const std::int64_t ratio =
      log2_of(static_cast<std::uint64_t>(most)) - log2_of(static_cast<std::uint64_t>(least));
  const SignedWide octaves = SignedWide{ratio} * alpha >> 32;
  const std::uint64_t q =  // in units of 2^-64
      octaves > SignedWide{64} << 32
          ? 0
          : fixed::times_exp2(1, (std::int64_t{64} << 32) - static_cast<std::int64_t>(octaves), 0,
                              ~std::uint64_t{0});
  const std::uint64_t bound = static_cast<std::uint64_t>(most) << bits;
  return QuantileTable([&](Tail tail, std::uint64_t p) -> std::uint64_t {
    const std::uint64_t part = p - fixed::scaled(p, q, 64);  // (1 - q) * p
    if (tail == Tail::lower && part == 0) return static_cast<std::uint64_t>(least) << bits;
    const std::uint64_t mass = tail == Tail::lower ? 0 - part : q + part;
    if (p == 0 || mass == 0) return bound;
    const std::int64_t exponent = 64 * std::int64_t{one_q32} - log2_of(mass);
    const std::uint64_t value = fixed::times_exp2(static_cast<std::uint64_t>(least),
                                                  quotient_q32(exponent, alpha), bits, bound);
    return std::max(value, static_cast<std::uint64_t>(least) << bits);
  });
}

/// x = scale * (-ln P(X > x))^(1 / shape).
QuantileTable weibull_quantiles(Word scale, std::uint64_t shape) {
  return QuantileTable([&](Tail tail, std::uint64_t p) -> std::uint64_t {
    if (tail == Tail::lower && p == 0) return 0;
    std::int64_t log = 0;  // log2(-ln P(X > x))
    if (tail == Tail::lower && p >> 54 == 0) {
      // -ln(1 - p) = p * (1 + p / 2 + ...)
      log = log2_of(p) - 64 * std::int64_t{one_q32} +
            static_cast<std::int64_t>(fixed::scaled(p >> 33, fixed::log2e_q32, 32));
    } else {
      const std::uint64_t mass = tail == Tail::lower ? 0 - p : std::max<std::uint64_t>(p, 1);
      const std::uint64_t minus_log2 = (std::uint64_t{64} << 32) - fixed::log2_exact(mass);
      log = log2_of(fixed::scaled(minus_log2, fixed::ln2_q32, 32)) - 32 * std::int64_t{one_q32};
    }
    return fixed::times_exp2(static_cast<std::uint64_t>(scale), quotient_q32(log, shape), bits,
                             longest);
  });
}

}  // namespace sluice::sim
