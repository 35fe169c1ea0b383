// What a limiter granted, in a form that can be given back. A plain value.
#pragma once

#include <algorithm>
#include <span>

#include "sluice/decision.hpp"
#include "sluice/quota.hpp"

namespace sluice {

/// A grant: now, or at a time ahead. Worked example, 10 a second with burst 5, all spent:
/// reserve(key, 2, 1s) answers `wait() == 200 ms`; nobody who asks later has an earlier time.
/// Give it back under the key that it was granted for: it does not know which, and another key's
/// bucket that stands as this one did would take it for its own.
struct [[nodiscard]] Reservation {
  Decision decision{};
  /// Units that are charged; less after some were given back. Zero when refused.
  Word granted = 0;
  /// Units that settle() charged beyond it.
  Word settled = 0;
  // How the bucket stood before it, for the limiter that gives it back.
  Word level = 0;
  Word stamp = 0;
  Word version = 0;  // of a quota that lives in the store
  Word spent = 0;    // what was truly spent then, if there is a version

  Reservation() = default;
  /// From the answer to a step that reserves: its decision and its own output words.
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
  /// How long to wait, from decision.at, until the grant's time.
  [[nodiscard]] Span wait() const noexcept { return decision.retry_after; }
  /// The grant's time, by the store's clock.
  [[nodiscard]] Time at() const noexcept { return decision.at + decision.retry_after; }
};

/// What settle() is told where a decision does not know what it charged.
struct SettledCost {
  Cost estimated;  ///< what the decision charged, and settle() since
  Cost actual;
};

namespace detail {
/// True if a decision charged nothing that could be settled, whatever the cost: it was refused, or
/// granted without the store.
[[nodiscard]] inline bool charged_nothing(const Decision& taken) noexcept {
  return !taken.allowed || is_degraded(taken.source);
}
/// The same for settle(), which says what is wrong with a cost all the same.
[[nodiscard]] inline bool nothing_to_settle(const Decision& taken,
                                            const SettledCost& cost) noexcept {
  return charged_nothing(taken) && cost.estimated.value() >= 0 && cost.actual.value() >= 0;
}
}  // namespace detail

/// What settle() changed, in whole units.
struct Settlement {
  Word given_back = 0;
  Word charged = 0;  ///< asked for; a debt ends at the limiter's longest()
};

}  // namespace sluice
