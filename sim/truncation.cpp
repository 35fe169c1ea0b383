#include "sluice/sim/truncation.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include "sim/fixed_point.hpp"

namespace sluice::sim {
namespace {

using fixed::Wide;

constexpr unsigned value_bits = 36;

/// The square of a standard error: `deviation` / `count`^3.
struct Error {
  Wide deviation;  // count * (sum of squares) - (sum)^2, below 2^97
  Wide count;      // below 2^10

  [[nodiscard]] bool is_below(const Error& other) const noexcept {
    return deviation * cube(other.count) < other.deviation * cube(count);
  }
  static Wide cube(Wide value) noexcept { return value * value * value; }
};

std::vector<std::uint64_t> batches_of(std::span<const std::uint64_t> series) {
  std::vector<std::uint64_t> batches(series.size() / Truncation::batch);
  if (batches.size() < Truncation::fewest_batches || batches.size() > Truncation::most_batches) {
    throw std::invalid_argument("mser5: a series must have 100 to 5004 values, got " +
                                std::to_string(series.size()));
  }
  for (std::size_t i = 0; i < batches.size() * Truncation::batch; ++i) {
    if (series[i] >> value_bits != 0) {
      throw std::invalid_argument("mser5: values must be below 2^36, got " +
                                  std::to_string(series[i]) + " at index " + std::to_string(i));
    }
    batches[i / Truncation::batch] += series[i];
  }
  return batches;
}

}  // namespace

Truncation mser5(std::span<const std::uint64_t> series) {
  const std::vector<std::uint64_t> batches = batches_of(series);
  Truncation result{batches.size(), 0};
  const std::size_t most = result.batches * 3 / 4;
  // From the end on, so that each cut adds one batch to the sums of the one before.
  Wide sum = 0;
  Wide squares = 0;
  Error least{};
  for (std::size_t cut = result.batches; cut-- > 0;) {
    sum += batches[cut];
    squares += Wide{batches[cut]} * batches[cut];
    if (cut > most) continue;
    const Wide count = result.batches - cut;
    const Error error{count * squares - sum * sum, count};
    if (cut < most && least.is_below(error)) continue;
    least = error;
    result.cut = cut;
  }
  return result;
}

}  // namespace sluice::sim
