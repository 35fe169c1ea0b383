// Streams and delays in fixed point: Q32 is a number in units of 2^-32.
#include "sluice/sim/random.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
#include <string>

namespace sluice::sim {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr Word longest = Word{30} * 86'400 * 1'000'000;
constexpr std::uint64_t ln2_q32 = 2'977'044'472;  // round(ln 2 * 2^32)
// A sum of twelve draws from 0 to 65535: its middle, and how far above it the 99 % quantile lies
// (2.302228 of the 6 that are the farthest possible).
constexpr std::int64_t bell_middle = std::int64_t{6} * 65'535;
constexpr std::int64_t bell_p99 = 150'879;

using Table = std::array<std::uint64_t, 257>;

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

/// log2(1 + i / 256) in Q32.
constexpr Table log2_table = [] {
  Table table{};
  for (std::size_t i = 0; i < 256; ++i) table[i] = digits_of_log2((256 + i) << 54);
  table[256] = std::uint64_t{1} << 32;
  return table;
}();

constexpr std::uint64_t square_root_q62(std::uint64_t x) noexcept {
  std::uint64_t root = 0;
  for (int bit = 62; bit >= 0; --bit) {
    const std::uint64_t tried = root | std::uint64_t{1} << bit;
    if (Wide{tried} * tried <= Wide{x} << 62) root = tried;
  }
  return root;
}

/// 2^(i / 256) in Q32: products of the square roots of 2.
constexpr Table exp2_table = [] {
  std::array<std::uint64_t, 8> roots{};
  std::uint64_t root = std::uint64_t{1} << 63;  // 2 in Q62
  for (auto& r : roots) r = root = square_root_q62(root);
  Table table{};
  for (std::size_t i = 0; i < 256; ++i) {
    std::uint64_t power = std::uint64_t{1} << 62;
    for (std::size_t bit = 0; bit < 8; ++bit) {
      if ((i >> (7 - bit) & 1) != 0) power = scaled(power, roots[bit], 62);
    }
    table[i] = power >> 30;
  }
  table[256] = std::uint64_t{2} << 32;
  return table;
}();

/// The table's value at `fraction`, in Q32, on the straight line between its neighbours.
std::uint64_t interpolated(const Table& table, std::uint64_t fraction) noexcept {
  const std::size_t i = fraction >> 24;
  const std::uint64_t rest = fraction & 0xffffff;
  return table[i] + ((table[i + 1] - table[i]) * rest >> 24);
}

/// log2(x) in Q32 for x >= 1.
std::uint64_t log2_q32(std::uint64_t x) noexcept {
  const int shift = std::countl_zero(x);
  const std::uint64_t mantissa = (x << shift << 1) >> 32;
  return (static_cast<std::uint64_t>(63 - shift) << 32) + interpolated(log2_table, mantissa);
}

std::string us(Word value) { return std::to_string(value) + " us"; }

void require_range(const char* what, Span span, Word least) {
  if (span.count() >= least && span.count() <= longest) return;
  throw std::invalid_argument(std::string(what) + " must be " + us(least) + " to 30 days, got " +
                              us(span.count()));
}

}  // namespace

SeededRng stream(std::uint64_t seed, std::uint64_t entity, std::uint64_t purpose) {
  std::uint64_t state = seed;
  for (const std::uint64_t word : {entity, purpose}) {
    state = SeededRng(state).next() ^ (word + 0x9e3779b97f4a7c15);
  }
  return SeededRng(state);
}

Delay Delay::constant(Span span) {
  require_range("a delay", span, 0);
  return {Kind::constant, span.count(), span.count()};
}

Delay Delay::uniform(Span low, Span high) {
  require_range("the lowest delay", low, 0);
  require_range("the highest delay", high, low.count());
  return {Kind::uniform, low.count(), high.count()};
}

Delay Delay::exponential(Span mean) {
  require_range("the mean delay", mean, 1);
  return {Kind::exponential, mean.count(), 0};
}

Delay Delay::log_normal(Span p50, Span p99) {
  require_range("p50", p50, 1);
  require_range("p99", p99, p50.count());
  if (p99.count() > 64 * p50.count()) {
    throw std::invalid_argument("p99 must be at most 64 * p50 = " + us(64 * p50.count()) +
                                ", got " + us(p99.count()));
  }
  const std::uint64_t ratio = log2_q32(static_cast<std::uint64_t>(p99.count())) -
                              log2_q32(static_cast<std::uint64_t>(p50.count()));
  return {Kind::log_normal, p50.count(), static_cast<Word>(ratio)};
}

/// a * 2^(b * bell / bell_p99).
Word Delay::stretched(std::int64_t bell) const noexcept {
  const std::int64_t exponent = b_ * bell / bell_p99;  // Q32, of either sign
  const std::int64_t whole = exponent >> 32;
  const std::uint64_t power =
      interpolated(exp2_table, static_cast<std::uint64_t>(exponent) & 0xffffffff);
  const Wide product = Wide{static_cast<std::uint64_t>(a_)} * power;
  return static_cast<Word>(product >> (32 - whole));
}

Span Delay::sample(Rng& rng) const {
  switch (kind_) {
    case Kind::constant:
      break;
    case Kind::uniform:
      return Span{a_ + static_cast<Word>(rng.below(static_cast<std::uint64_t>(b_ - a_) + 1))};
    case Kind::exponential: {
      // -ln(u) for u in (0, 1).
      const std::uint64_t log = (std::uint64_t{64} << 32) - log2_q32(rng.next() | 1);
      return Span{
          static_cast<Word>(scaled(static_cast<std::uint64_t>(a_), scaled(log, ln2_q32, 32), 32))};
    }
    case Kind::log_normal: {
      std::int64_t bell = -bell_middle;
      for (int i = 0; i < 3; ++i) {
        const std::uint64_t draw = rng.next();
        for (int shift = 0; shift < 64; shift += 16) {
          bell += static_cast<std::int64_t>(draw >> shift & 0xffff);
        }
      }
      return Span{stretched(bell)};
    }
  }
  return Span{a_};
}

Span Delay::min() const noexcept {
  switch (kind_) {
    case Kind::constant:
    case Kind::uniform:
      break;
    case Kind::exponential:
      return Span{0};
    case Kind::log_normal:
      return Span{stretched(-bell_middle)};
  }
  return Span{a_};
}

Span Delay::max() const noexcept {
  switch (kind_) {
    case Kind::constant:
    case Kind::uniform:
      break;
    case Kind::exponential:
      return Span{static_cast<Word>(scaled(static_cast<std::uint64_t>(a_),
                                           scaled(std::uint64_t{64} << 32, ln2_q32, 32), 32))};
    case Kind::log_normal:
      return Span{stretched(bell_middle)};
  }
  return Span{b_};
}

}  // namespace sluice::sim
