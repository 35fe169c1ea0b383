// OwnedOutcome: the outcome of a plan as a value.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sluice/store.hpp"

namespace sluice {

/// A copy of an Outcome: the decision on a plan, the decision on each step, and the output words,
/// of which limiters make what they grant:
///
///     const OwnedOutcome outcome = co_await asio::async_execute(store, steps);
///     if (outcome) {
///       Reservation tokens = bucket.reservation(outcome.steps()[0], outcome.output_of(0));
///       Lease place = jobs.adopt(key, id, 1, outcome.steps()[1], outcome.output_of(1), asked_at);
///     }
///
/// Movable and copyable; two allocations.
class OwnedOutcome {
 public:
  OwnedOutcome() = default;  ///< not allowed, without steps
  /// Room for the outcome of these steps, at most Plan::max_steps of which are used, so that
  /// assign() allocates nothing.
  explicit OwnedOutcome(std::span<const Step> steps);

  /// Copies an outcome of those steps.
  void assign(const Outcome& outcome) noexcept;

  /// The decision on the plan as a whole. After an error, only Decision::step is meaningful, and
  /// after Errc::wrong_kind Decision::part.
  [[nodiscard]] const Decision& decision() const noexcept { return decision_; }
  /// The decision on each step, in the order of the plan; empty after an error.
  [[nodiscard]] std::span<const Decision> steps() const noexcept { return steps_; }
  /// The output words of one step; empty after an error. REQUIRES: index < Plan::max_steps.
  [[nodiscard]] std::span<const Word> output_of(std::size_t index) const noexcept;

  /// The plan was allowed.
  [[nodiscard]] explicit operator bool() const noexcept { return decision_.allowed; }

 private:
  Decision decision_;
  std::vector<Decision> steps_;
  std::vector<Word> output_;
  std::array<std::uint8_t, Plan::max_steps> counts_{};  // output words of each step
};

}  // namespace sluice
