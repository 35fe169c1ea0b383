#include "sluice/calls/first_of.hpp"

#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "sluice/clock.hpp"

namespace sluice {
namespace {

void require_alternatives(std::span<const std::vector<Claim>> alternatives) {
  if (alternatives.empty() || alternatives.size() > FirstOf::max_alternatives) {
    throw std::invalid_argument("first_of: " + std::to_string(alternatives.size()) +
                                " alternatives, allowed 1 to " +
                                std::to_string(FirstOf::max_alternatives));
  }
  std::vector<Claim> firsts;
  for (const auto& claims : alternatives) {
    detail::require_one_store(claims);
    firsts.push_back(claims.front());
  }
  detail::require_one_store(firsts);
}

void require_weights(std::span<const int> weights, std::size_t alternatives) {
  if (weights.size() != alternatives) {
    throw std::invalid_argument("FirstOf::by_weight: " + std::to_string(weights.size()) +
                                " weights for " + std::to_string(alternatives) + " alternatives");
  }
  for (const int weight : weights) {
    if (weight >= 0 && weight <= FirstOf::largest_weight) continue;
    throw std::invalid_argument("FirstOf::by_weight: a weight must be 0 to " +
                                std::to_string(FirstOf::largest_weight) + ", got " +
                                std::to_string(weight));
  }
  if (std::accumulate(weights.begin(), weights.end(), 0) == 0) {
    throw std::invalid_argument("FirstOf::by_weight: all weights are 0");
  }
}

}  // namespace

FirstOf first_of(std::vector<std::vector<Claim>> alternatives) {
  return FirstOf(std::move(alternatives));
}

FirstOf::FirstOf(std::vector<std::vector<Claim>> alternatives)
    : alternatives_(std::move(alternatives)) {
  require_alternatives(alternatives_);
}

FirstOf FirstOf::by_weight(std::vector<int> weights) const {
  require_weights(weights, size());
  FirstOf weighted = *this;
  weighted.weights_ = std::move(weights);
  return weighted;
}

/// Drawn without replacement, so that the second choice is by weight as well. Those of weight 0
/// come last, in their order.
std::vector<std::size_t> FirstOf::order() const {
  std::vector<std::size_t> left(size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  int sum = std::accumulate(weights_.begin(), weights_.end(), 0);
  if (sum == 0) return left;
  Rng& rng = rng_of(alternatives_.front().front().limit().store().clock(), DrawFor::alternatives);
  std::vector<std::size_t> drawn;
  while (sum > 0) {
    auto rest = static_cast<int>(rng.below(static_cast<std::uint64_t>(sum)));
    auto chosen = left.begin();
    while (rest >= weights_[*chosen]) rest -= weights_[*chosen++];
    sum -= weights_[*chosen];
    drawn.push_back(*chosen);
    left.erase(chosen);
  }
  drawn.insert(drawn.end(), left.begin(), left.end());
  return drawn;
}

detail::Alternatives FirstOf::limits() const {
  detail::Alternatives all{{}, order()};
  for (const auto& claims : alternatives_) all.limits.push_back(detail::limits_of(claims));
  return all;
}

}  // namespace sluice
