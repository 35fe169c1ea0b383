// Copying an outcome. All memory is allocated before the plan is executed.
#include "sluice/owned_outcome.hpp"
#include "sluice/extend/operation.hpp"

#include <algorithm>
#include <numeric>

namespace sluice {

OwnedOutcome::OwnedOutcome(std::span<const Step> steps) {
  const std::size_t used = std::min(steps.size(), counts_.size());
  std::size_t words = 0;
  for (std::size_t i = 0; i < used; ++i) {
    const std::size_t count = output_count(*steps[i].operation, steps[i].table.size());
    counts_[i] = static_cast<std::uint8_t>(count);
    words += count;
  }
  steps_.reserve(used);
  output_.reserve(words);
}

void OwnedOutcome::assign(const Outcome& outcome) noexcept {
  decision_ = outcome.decision;
  steps_.assign(outcome.steps.begin(), outcome.steps.end());
  output_.assign(outcome.output.begin(), outcome.output.end());
}

std::span<const Word> OwnedOutcome::output_of(std::size_t index) const noexcept {
  const auto* const place = counts_.begin() + index;
  const std::size_t first = std::accumulate(counts_.begin(), place, std::size_t{0});
  if (first + *place > output_.size()) return {};
  return std::span(output_).subspan(first, *place);
}

}  // namespace sluice
