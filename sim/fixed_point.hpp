// Logarithms and powers in integers, the same on every platform. Q32 is a number in units of 2^-32.
// Threading: pure functions.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace sluice::sim::fixed {

__extension__ using Wide = unsigned __int128;
__extension__ using SignedWide = __int128;

inline constexpr std::uint64_t one_q32 = std::uint64_t{1} << 32;
inline constexpr std::uint64_t ln2_q32 = 2'977'044'472;    // round(ln 2 * 2^32)
inline constexpr std::uint64_t log2e_q32 = 6'196'328'019;  // round(2^32 / ln 2)

/// a * b / 2^bits.
constexpr std::uint64_t scaled(std::uint64_t a, std::uint64_t b, int bits) noexcept {
  return static_cast<std::uint64_t>(Wide{a} * b >> bits);
}

/// The digits of log2(x) for x in [1, 2), given in Q62: square it, and a result of 2 or more is
/// a 1.
constexpr std::uint64_t digits_of_log2(std::uint64_t x) noexcept {
  std::uint64_t digits = 0;
  for (int i = 0; i < 32; ++i) {
    x = scaled(x, x, 62);
    digits <<= 1;
    if (x >> 63 != 0) {
      x >>= 1;
      digits |= 1;
    }
  }
  return digits;
}

constexpr std::uint64_t square_root_q62(std::uint64_t x) noexcept {
  std::uint64_t root = 0;
  for (int bit = 62; bit >= 0; --bit) {
    const std::uint64_t tried = root | std::uint64_t{1} << bit;
    if (Wide{tried} * tried <= Wide{x} << 62) root = tried;
  }
  return root;
}

/// 2^(1/2), 2^(1/4), 2^(1/8)... in Q62.
inline constexpr auto roots_of_2 = [] {
  std::array<std::uint64_t, 32> roots{};
  std::uint64_t root = std::uint64_t{1} << 63;  // 2
  for (auto& r : roots) r = root = square_root_q62(root);
  return roots;
}();

/// 2^fraction in Q62, for a fraction in Q32. Exact to 2^-55.
constexpr std::uint64_t exp2_q62(std::uint32_t fraction) noexcept {
  std::uint64_t power = std::uint64_t{1} << 62;
  for (std::size_t bit = 0; bit < roots_of_2.size(); ++bit) {
    if ((fraction >> (31 - bit) & 1) != 0) power = scaled(power, roots_of_2[bit], 62);
  }
  return power;
}

/// factor * 2^exponent in units of 2^-bits, rounded, for an exponent in Q32; at most `most`.
/// REQUIRES: 0 <= bits <= 62.
constexpr std::uint64_t times_exp2(std::uint64_t factor, std::int64_t exponent, int bits,
                                   std::uint64_t most) noexcept {
  const Wide product = Wide{factor} * exp2_q62(static_cast<std::uint32_t>(exponent));
  const std::int64_t right = 62 - bits - (exponent >> 32);
  if (right > 127) return 0;
  if (right <= -64 || (right < 0 && product > Wide{most} >> -right)) return most;
  if (right <= 0)
    return product << -right > most ? most : static_cast<std::uint64_t>(product << -right);
  const Wide rounded = (product + (Wide{1} << (right - 1))) >> right;
  return rounded > most ? most : static_cast<std::uint64_t>(rounded);
}

/// log2(x) in Q32 for x >= 1, rounded down.
constexpr std::uint64_t log2_exact(std::uint64_t x) noexcept {
  const int shift = std::countl_zero(x);
  return (static_cast<std::uint64_t>(63 - shift) << 32) + digits_of_log2(x << shift >> 1);
}

/// A function at 0, 1/256, 2/256... 1.
using Table = std::array<std::uint64_t, 257>;

/// log2(1 + i / 256) in Q32.
inline constexpr Table log2_table = [] {
  Table table{};
  for (std::size_t i = 0; i < 256; ++i) table[i] = digits_of_log2((256 + i) << 54);
  table[256] = one_q32;
  return table;
}();

/// 2^(i / 256) in Q32.
inline constexpr Table exp2_table = [] {
  Table table{};
  for (std::size_t i = 0; i < 256; ++i)
    table[i] = exp2_q62(static_cast<std::uint32_t>(i << 24)) >> 30;
  table[256] = 2 * one_q32;
  return table;
}();

/// The table's value at `fraction`, in Q32, on the straight line between its neighbours.
constexpr std::uint64_t interpolated(const Table& table, std::uint64_t fraction) noexcept {
  const std::size_t i = fraction >> 24;
  const std::uint64_t rest = fraction & 0xffffff;
  return table[i] + ((table[i + 1] - table[i]) * rest >> 24);
}

/// log2(x) in Q32 for x >= 1, quickly: at most 2.8 * 10^-6 too small.
constexpr std::uint64_t log2_quick(std::uint64_t x) noexcept {
  const int shift = std::countl_zero(x);
  const std::uint64_t mantissa = (x << shift << 1) >> 32;
  return (static_cast<std::uint64_t>(63 - shift) << 32) + interpolated(log2_table, mantissa);
}

/// -ln(u) in Q32 for the u in (0, 1) that a draw stands for: an exponential draw of mean 1.
constexpr std::uint64_t exponential_q32(std::uint64_t draw) noexcept {
  return scaled((std::uint64_t{64} << 32) - log2_quick(draw | 1), ln2_q32, 32);
}

/// A number of 0 to 2^20 in Q32, rounded. Multiplication by a power of two is exact.
inline std::uint64_t to_q32(double value) noexcept {
  return static_cast<std::uint64_t>(value * 4294967296.0 + 0.5);
}

}  // namespace sluice::sim::fixed
