// Bins: one per microsecond below 128, then 64 for every doubling.
#include "sluice/sim/histogram.hpp"

#include <algorithm>
#include <bit>

namespace sluice::sim {
namespace {

constexpr int bits = 6;  // 2^6 bins a doubling
constexpr std::size_t bin_count = (52 - bits + 1) * (std::size_t{1} << bits) + 64 + 1;

std::size_t bin_of(std::uint64_t value) noexcept {
  if (value < 128) return value;
  const auto shift = static_cast<int>(std::bit_width(value)) - (bits + 1);
  return (static_cast<std::size_t>(shift) << bits) + (value >> shift);
}

Word upper_end(std::size_t bin) noexcept {
  if (bin < 128) return static_cast<Word>(bin);
  const std::size_t shift = (bin >> bits) - 1;
  const std::size_t mantissa = bin - (shift << bits);
  return static_cast<Word>(((mantissa + 1) << shift) - 1);
}

}  // namespace

Histogram::Histogram() : bins_(bin_count) {}

void Histogram::add(Span value) noexcept {
  const Word clamped = std::clamp(value.count(), Word{0}, word_limit);
  ++bins_[bin_of(static_cast<std::uint64_t>(clamped))];
  ++count_;
  max_ = std::max(max_, clamped);
}

Span Histogram::quantile(std::uint64_t parts, std::uint64_t of) const noexcept {
  std::uint64_t seen = 0;
  for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
    seen += bins_[bin];
    if (bins_[bin] != 0 && seen * of >= count_ * parts) return Span{std::min(upper_end(bin), max_)};
  }
  return Span{0};
}

}  // namespace sluice::sim
