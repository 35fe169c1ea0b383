// A grant that can be cancelled, refunded or settled. A plain value.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "sluice/decision.hpp"
#include "sluice/key.hpp"
#include "sluice/quota.hpp"

namespace sluice {

/// Units that are granted, now or at a later time, and that can be taken back: a decision that its
/// limiter can undo. Every limiter whose reserve() returns one has these calls, each at most one
/// store operation:
///
///     limiter.settle(key, grant, actual);   // the true cost: refunds, or charges the difference
///     limiter.refund(key, grant, amount);   // a part was not used
///     limiter.cancel(key, grant);           // nothing was used
///
/// They update the reservation, so that nothing is refunded twice; how much a limiter can give back
/// is said there. Use the limiter that has made it, or one of the same name and limit, and the same
/// key: with another name or key they fail with Errc::invalid_argument. Copies are the same grant:
/// change one of them.
///
/// Worked example, 10 a second with burst 5, all spent: reserve(key, 2, 1s) answers `wait() ==
/// 200 ms`, and no later request gets an earlier time.
struct [[nodiscard]] Reservation : Decision {
  /// Units that are charged; fewer after refund(), zero when refused.
  Word granted = 0;
  /// Units that settle() charged in addition.
  Word settled = 0;
  /// Only for the limiter: what a refund needs.
  std::array<Word, 4> state{};
  /// Only for the limiter: a hash of the key and the limiter's name; 0: not known, as of a plan's.
  std::uint64_t key_mark = 0;

  Reservation() = default;
  /// From the decision on a reserving step, what it charged, and the words for `state`.
  Reservation(const Decision& decision, Word charged, std::span<const Word> words = {}) noexcept
      : Decision(decision) {
    if (!allowed) return;
    granted = charged;
    std::copy_n(words.begin(), std::min(words.size(), state.size()), state.begin());
  }

  /// The wait from Decision::at until the units may be used; of a refusal, for another attempt.
  [[nodiscard]] Span wait() const noexcept { return retry_after; }
  /// When the units may be used, by the store's clock.
  [[nodiscard]] Time ready_at() const noexcept { return at + retry_after; }
};

namespace detail {
/// True of a reservation that was granted for another key.
[[nodiscard]] inline bool is_of_another_key(const Reservation& grant, const Key& key) noexcept {
  return grant.key_mark != 0 && grant.key_mark != key_mark(key);
}

/// True if a decision charged nothing in the primary store: it was refused or degraded, or there is
/// no limit.
[[nodiscard]] inline bool charged_nothing(const Decision& taken) noexcept {
  return !taken.allowed || is_degraded(taken.source) || taken.limit == unlimited;
}
}  // namespace detail

/// The result of settle(), in whole units.
struct Settlement {
  Word refunded = 0;
  /// Fewer than the difference where the rest is not counted: of a token bucket beyond a debt of
  /// longest(), of a FixedWindow beyond 2^43 - 1 units or before a block's end, of a
  /// SlidingWindowCounter beyond 2^40, of sliding windows beyond 2^51 or once the grant has left.
  Word charged = 0;
};

}  // namespace sluice
