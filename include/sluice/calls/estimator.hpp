// Estimator: learns what calls of a class cost, for calls whose cost comes with their answer.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "sluice/quota.hpp"

namespace sluice {

namespace detail {
class LearnedCosts;
}

struct EstimatorOptions {
  /// The share of calls that cost no more than their estimate. Above 0, up to 1.
  double quantile = 0.95;
  /// The costs of a class that are remembered: a change of them is learned after about as many
  /// calls. 100 to 1,000,000.
  std::size_t window = 1'000;
  /// The costs of a class that must be known before an estimate follows from them. 1 to `window`.
  std::size_t least = 20;
  /// The most classes, of which each takes 2.5 KB; beyond it, the one that was asked for least
  /// recently is forgotten. 1 to 100,000.
  std::size_t max_classes = 1'000;
};

/// What is known of the costs of one class; see Estimator::of(). Copies share it. Thread-safe.
class LearnedEstimate {
 public:
  static constexpr Word max_cost = Word{1} << 40;  ///< the most that a call may have cost

  /// The estimate at present, lock-free.
  [[nodiscard]] Cost cost() const noexcept;
  /// Adds the true cost of a call. Throws std::system_error (Errc::invalid_cost), and learns
  /// nothing, unless it is 0 to max_cost. O(buckets): some 600 additions.
  void learn(Cost actual) const;

 private:
  friend class Estimator;
  LearnedEstimate(std::shared_ptr<detail::LearnedCosts> costs, Cost unknown) noexcept
      : costs_(std::move(costs)), unknown_(unknown) {}

  std::shared_ptr<detail::LearnedCosts> costs_;
  Cost unknown_;
};

/// The distribution of true costs by class, such as a model or an endpoint; one for a process:
///
///     Estimator estimator;
///     const Call ask({{tokens, "key", estimator.of("gpt-4o", 1400)}, {gates, account}});
///     ask([&] { return Costed<Text>{text, tokens_used}; });   // settles, and learns
///
/// A class keeps counts of costs in buckets: an estimate is at most 1/16 above the least cost which
/// `quantile` of the remembered costs do not exceed, and not below it; exact below 32. When twice
/// `window` costs are counted, all counts are halved. The same costs in the same order give the
/// same estimates, whatever the time. Thread-safe.
class Estimator {
 public:
  /// Throws std::invalid_argument if an option is out of range.
  explicit Estimator(const EstimatorOptions& options = {});
  ~Estimator();
  Estimator(const Estimator&) = delete;
  Estimator& operator=(const Estimator&) = delete;

  /// For a Claim, which asks anew for each call. `unknown` is the estimate before `least` costs of
  /// the class are known. O(1) on average. Throws std::bad_alloc.
  [[nodiscard]] LearnedEstimate of(std::string_view name, Cost unknown);
  /// The number of classes that are known.
  [[nodiscard]] std::size_t classes() const;

 private:
  class Table;
  std::unique_ptr<Table> table_;
};

}  // namespace sluice
