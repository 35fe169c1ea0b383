// FirstOf: alternatives, of which a call takes the first that grants it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sluice/calls/claim.hpp"

namespace sluice {

/// Keys, accounts, regions or deployments, one of which is enough. Each alternative has claims of
/// its own, which are granted at one instant, or not at all.
///
///     const auto accounts = first_of({
///         {{requests, "account-a"}, {tokens, "account-a", 800}},
///         {{requests, "account-b"}, {tokens, "account-b", 800}},
///     });
///     const Grants granted = acquire(accounts, 10s);  // granted.alternative() is 0 or 1
///
/// They are asked in this order, or in one that is drawn by weights for each call, in one round
/// trip: the first that grants is taken, and the others are not charged. On a cluster, and on
/// stores that say so, those behind it are asked one after the other. If none grants, the call
/// stands in the queue of each, and takes the first grant. An alternative that fails, or that
/// cannot grant by the deadline, is left out; the call fails if none is left.
///
/// A value, which keeps copies of the claims.
class FirstOf {
 public:
  static constexpr std::size_t max_alternatives = 16;
  static constexpr int largest_weight = 1000;

  /// The order is drawn for each call: an alternative comes first in proportion to its weight, and
  /// one of weight 0 last. Throws std::invalid_argument unless there is a weight for each, 0 to
  /// largest_weight, and not all are 0.
  [[nodiscard]] FirstOf by_weight(std::vector<int> weights) const;

  [[nodiscard]] std::size_t size() const noexcept { return alternatives_.size(); }
  /// REQUIRES: alternative < size().
  [[nodiscard]] std::span<const Claim> claims(std::size_t alternative) const noexcept {
    return alternatives_[alternative];
  }

  // For implementations of waits.
  [[nodiscard]] detail::Alternatives limits() const;

 private:
  friend class Call;
  friend FirstOf first_of(std::vector<std::vector<Claim>> alternatives);
  /// One alternative. Throws as detail::require_one_store().
  explicit FirstOf(std::span<const Claim> claims) : alternatives_{{claims.begin(), claims.end()}} {
    detail::require_one_store(claims);
  }
  explicit FirstOf(std::vector<std::vector<Claim>> alternatives);

  [[nodiscard]] std::vector<std::size_t> order() const;

  std::vector<std::vector<Claim>> alternatives_;
  std::vector<int> weights_;  // none: in order
};

/// Throws std::invalid_argument unless there are 1 to max_alternatives, each with claims as for
/// acquire(), and all on one store.
[[nodiscard]] FirstOf first_of(std::vector<std::vector<Claim>> alternatives);

}  // namespace sluice
