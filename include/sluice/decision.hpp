// The decision on one request. A plain value.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include "sluice/time.hpp"

namespace sluice {

/// The limit of a limiter that allows everything and charges nothing: see docs/composing.md. What
/// remains of it is as much.
inline constexpr Word unlimited = word_limit;

/// Which store made a decision.
enum class Source : std::uint8_t {
  memory,
  virtual_store,
  redis,
  other,
  fallback,    ///< the local store of a FallbackStore, because the primary could not decide
  policy,      ///< the FailurePolicy of a FallbackStore; no store decided
  prefetched,  ///< a PrefetchStore, by what the store behind it has told or granted
};

/// True if the decision was made without the primary store; see FallbackStore.
[[nodiscard]] constexpr bool is_degraded(Source source) noexcept {
  return source == Source::fallback || source == Source::policy;
}

/// "memory", "virtual", "redis", "other", "fallback", "policy" or "prefetched".
[[nodiscard]] std::string_view to_string(Source source) noexcept;
std::ostream& operator<<(std::ostream& out, Source source);

/// Whether a request is allowed, what remains, and when to retry. Worked example, 10 a second with
/// burst 5, all spent: `{allowed = false, limit = 5, remaining = 0, retry_after = 100 ms,
/// reset_after = 500 ms}`.
struct Decision {
  /// The request may proceed, and its cost has been charged.
  bool allowed = false;
  Source source = Source::other;
  /// The step of the plan that this decision is about, counted from 0. Refused: the step with the
  /// longest wait. Allowed: the step with the least remaining. Failed: the step at fault.
  std::uint16_t step = 0;
  /// The part of that step that decided, counted from 0, for algorithms with parts (a window, a
  /// tier); else 0. After Errc::wrong_kind: the StateKind found under the key of that step, 0 if
  /// the store does not report it.
  std::uint16_t part = 0;
  /// The most that can be spent at once, in units of cost.
  Word limit = 0;
  /// What can still be spent at once after this decision, in whole units of cost, 0 to limit.
  Word remaining = 0;
  /// How long to wait before a retry. It is exact: without other requests, the same request is
  /// refused 1 us before `at + retry_after` and allowed at it. Zero when allowed, except for a
  /// reservation: then it is the wait until the reserved time. `never` of a limit of 0.
  Span retry_after{0};
  /// The `retry_after` of a limit of 0: no wait helps.
  static constexpr Span never{word_limit};
  /// From `at` until nothing is spent any more, without further requests.
  Span reset_after{0};
  /// The time of the decision by the store's clock, as it was read when the decision began. Of two
  /// threads that decide about one key, the one that is decided later may have read it earlier, and
  /// the blocking calls of a bound key may read a coarse clock (Clock::coarse_lag): order decisions
  /// by what they decide, not by `at`.
  Time at{};

  [[nodiscard]] explicit operator bool() const noexcept { return allowed; }
  friend bool operator==(const Decision&, const Decision&) = default;
};

/// A line for logs: "allowed, 4 of 5 left, reset after 100 ms, from redis", or "refused, 0 of 5
/// left, retry after 100 ms, reset after 500 ms, from redis". A reservation for a later time is
/// "allowed in 2 s". Zero waits are omitted; a step or part other than 0 follows ("step 1, part
/// 2"). Times are not rounded.
[[nodiscard]] std::string to_string(const Decision& decision);
/// Writes to_string(). This header, like all of the library, includes only `<iosfwd>`; the caller
/// includes `<ostream>`.
std::ostream& operator<<(std::ostream& out, const Decision& decision);

}  // namespace sluice
