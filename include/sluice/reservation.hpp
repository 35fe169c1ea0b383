// A grant of a token bucket that can be cancelled, refunded or settled. A plain value.
#pragma once

#include <algorithm>
#include <span>

#include "sluice/decision.hpp"
#include "sluice/quota.hpp"

namespace sluice {

/// Units that are granted now or at a later time. Worked example, 10 a second with burst 5, all
/// spent: reserve(key, 2, 1s) answers `wait() == 200 ms`, and no later request gets an earlier
/// time.
///
/// Cancel, refund or settle a reservation under the key that it was granted for. The reservation
/// does not store the key, so that another key's bucket in the same state would accept it.
struct [[nodiscard]] Reservation {
  Decision decision{};
  /// Units that are charged; fewer after refund(), zero when refused.
  Word granted = 0;
  /// Units that settle() charged in addition.
  Word settled = 0;
  // The state of the bucket before the grant, which a refund needs.
  Word level = 0;
  Word stamp = 0;
  Word version = 0;  // of the quota of a SharedTokenBucket
  Word spent = 0;    // the units spent before the grant, if there is a version

  Reservation() = default;
  /// From the decision on a reserving step and the output words of that step.
  Reservation(const Decision& answer, std::span<const Word> output) noexcept : decision(answer) {
    if (!answer.allowed || output.size() < 3) return;
    granted = output[0];
    level = output[1];
    stamp = output[2];
    if (output.size() < 5) return;
    version = output[3];
    spent = output[4];
  }

  [[nodiscard]] explicit operator bool() const noexcept { return decision.allowed; }
  /// The wait from decision.at until the reserved time.
  [[nodiscard]] Span wait() const noexcept { return decision.retry_after; }
  /// The reserved time, by the store's clock.
  [[nodiscard]] Time at() const noexcept { return decision.at + decision.retry_after; }
};

/// The two costs that settle() needs where a Decision does not contain what it charged.
struct SettledCost {
  Cost estimated;  ///< what the decision, and settle() since, has charged
  Cost actual;
};

namespace detail {
/// True if a decision charged nothing in the primary store: it was refused or degraded.
[[nodiscard]] inline bool charged_nothing(const Decision& taken) noexcept {
  return !taken.allowed || is_degraded(taken.source);
}
/// The same for settle(), which still reports an invalid cost.
[[nodiscard]] inline bool nothing_to_settle(const Decision& taken,
                                            const SettledCost& cost) noexcept {
  return charged_nothing(taken) && cost.estimated.value() >= 0 && cost.actual.value() >= 0;
}
}  // namespace detail

/// The result of settle(), in whole units.
struct Settlement {
  Word given_back = 0;
  /// Fewer than the difference where the rest is not counted: of a token bucket beyond a debt of
  /// longest(), of a FixedWindow beyond 2^43 - 1 units or before a block's end, of a
  /// SlidingWindowCounter beyond 2^40.
  Word charged = 0;
};

}  // namespace sluice
