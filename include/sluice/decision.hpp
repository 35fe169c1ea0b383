// The answer to one request. A plain value.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include "sluice/time.hpp"

namespace sluice {

/// Where an answer came from.
enum class Source : std::uint8_t {
  memory,
  virtual_store,
  redis,
  other,
  fallback,  ///< another store, because the first could not decide; see FallbackStore
  policy,    ///< no store: what was chosen for that case
};

/// True if the answer was given without the store whose limit it is; see FallbackStore.
[[nodiscard]] constexpr bool is_degraded(Source source) noexcept {
  return source == Source::fallback || source == Source::policy;
}

/// "memory", "virtual", "redis", "other", "fallback" or "policy".
[[nodiscard]] std::string_view to_string(Source source) noexcept;
std::ostream& operator<<(std::ostream& out, Source source);

/// May the call go ahead, and if not, when? Worked example, 10 a second with burst 5, all spent:
/// `{allowed = false, limit = 5, remaining = 0, retry_after = 100 ms, reset_after = 500 ms}`.
struct Decision {
  /// The call may go ahead, and its cost has been charged.
  bool allowed = false;
  Source source = Source::other;
  /// Which step of the plan this answer is about, counted from 0. Refused: the step that must be
  /// waited for longest. Allowed: the step with the least remaining. Failed: the step at fault.
  std::uint16_t step = 0;
  /// Which part of that step decided, counted from 0, where an algorithm has parts: a window, a
  /// tier. Else 0. Of a call that failed with Errc::wrong_kind: the StateKind that lies under the
  /// key of that step, 0 if the store does not tell.
  std::uint16_t part = 0;
  /// The most that can be spent at once, in units of cost.
  Word limit = 0;
  /// What could still be spent at once after this answer, in whole units of cost, 0 to limit.
  Word remaining = 0;
  /// Exact: asked again alone, the same request is refused 1 us before `at + retry_after` and
  /// allowed at it. Zero when allowed, but for a reservation: then it is how long to wait until
  /// the grant's time.
  Span retry_after{0};
  /// From `at` until nothing is spent any more, if nothing else is asked.
  Span reset_after{0};
  /// When it was decided, by the store's clock.
  Time at{};

  [[nodiscard]] explicit operator bool() const noexcept { return allowed; }
  friend bool operator==(const Decision&, const Decision&) = default;
};

/// For a line of a log: "allowed, 4 of 5 left, reset after 100 ms, from redis", or
/// "refused, 0 of 5 left, retry after 100 ms, reset after 500 ms, from redis". A grant that lies
/// ahead is "allowed in 2 s". What is zero is left out: waits, and behind them the step and the
/// part ("step 1, part 2"). No time is rounded.
[[nodiscard]] std::string to_string(const Decision& decision);
/// Writes to_string(). As every `operator<<` of this library it needs `<ostream>` only where it is
/// used.
std::ostream& operator<<(std::ostream& out, const Decision& decision);

}  // namespace sluice
