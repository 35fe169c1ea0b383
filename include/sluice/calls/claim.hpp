// Claim: what one call takes of one limiter, for calls that stand under several limits.
#pragma once

#include <algorithm>
#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "sluice/calls/estimator.hpp"
#include "sluice/detail/claimed_limit.hpp"

namespace sluice {

class Gates;
class Scope;

/// A cost that is not known before the call, and is settled afterwards; see Call.
struct Estimate {
  Cost cost;
};

/// A cost of one key of a limiter, a place of a ConcurrencyLimiter, a slot of a SlotLock or a
/// passage through a gate. Made in place:
///
///     acquire({{requests, "alice"}, {tokens, "alice", 800}, {gates, account}}, 10s)
///
/// A value that keeps a copy of the limiter, but does not own its store. A claim of a
/// SharedSlidingWindow counts as two.
class Claim {
 public:
  /// Of any limiter over keys that has acquire(), and of a SlotLock. Throws std::bad_alloc.
  template <class L>
  Claim(const L& limiter, const KeyArg& key, Cost cost = 1)
      : limit_(L::Verbs::claim(limiter, key, cost)) {}
  /// Of a limiter that has settle().
  template <class L>
  requires detail::Settled<L> Claim(const L& limiter, const KeyArg& key, Estimate estimate)
      : Claim(limiter, key, estimate.cost) {
    is_estimate_ = true;
  }
  /// An estimate that is learned: each call is charged that of its time, or what the limiter grants
  /// at most if that is less (unless the limit is in the store), and settles and teaches it with
  /// its true cost.
  template <class L>
  requires detail::Settled<L> Claim(const L& limiter, const KeyArg& key, LearnedEstimate estimate)
      : Claim(limiter, key, Estimate{estimate.cost()}) {
    learned_ = std::move(estimate);
  }
  /// Of a passage through a gate.
  template <std::same_as<Gates> G>
  Claim(const G& gates, const Scope& scope) : limit_(G::Verbs::claim(gates, scope)) {}

  [[nodiscard]] bool is_estimate() const noexcept { return is_estimate_; }
  /// For implementations of waits and calls.
  [[nodiscard]] const detail::ClaimedLimit& limit() const noexcept { return *limit_; }
  [[nodiscard]] std::unique_ptr<detail::ClaimedLimit> fresh() const {
    return limit_->fresh(learned_ ? std::min(learned_->cost().value(), limit_->most_units())
                                  : limit_->units());
  }
  void learn(Cost actual) const {
    if (learned_) learned_->learn(actual);
  }

 private:
  std::shared_ptr<const detail::ClaimedLimit> limit_;
  bool is_estimate_ = false;
  std::optional<LearnedEstimate> learned_{};
};

namespace detail {

/// Throws std::invalid_argument unless there are 1 to Plan::max_steps, which also have no more
/// steps, all on one store.
void require_one_store(std::span<const Claim> claims);
/// The same claims, for a wait. Throws as require_one_store().
[[nodiscard]] ClaimedLimits limits_of(std::span<const Claim> claims);

}  // namespace detail

}  // namespace sluice
