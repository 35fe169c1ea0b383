// How old a server's count is, and which limiter it still says something about. Plain values; no
// threading rule.
#pragma once

#include <algorithm>
#include <system_error>

#include "sluice/decision.hpp"
#include "sluice/http/feedback.hpp"
#include "sluice/key.hpp"

namespace sluice::http::detail {

/// A count, and when it was made.
struct Counted {
  const Window& window;
  Time made;

  /// Of a limiter with this limit.
  [[nodiscard]] Word left_of(Word limit) const noexcept {
    return std::max(window.remaining ? *window.remaining : limit - *window.used, Word{0});
  }
};

/// The longest time for which the limiter remembers what a key has spent.
template <class Limiter>
[[nodiscard]] Span memory_of(const Limiter& limiter, const Key& key) noexcept {
  if constexpr (requires { limiter.windows(); }) {
    Span longest{0};
    for (const auto& each : limiter.windows()) longest = std::max(longest, each.span);
    return longest;
  } else if constexpr (requires { limiter.window().span; }) {
    return limiter.window().span;
  } else if constexpr (requires { limiter.quota(key).full_after(); }) {
    return limiter.quota(key).full_after();
  } else {
    return Span::max();
  }
}

/// True if the count says nothing about what the limiter had when it decided at `now`, by the time
/// of its store. Asked behind the decision, so that the age is not below that at the decision.
template <class Limiter>
[[nodiscard]] bool is_over(const Limiter& limiter, const Key& key, const Counted& counted,
                           Time now) noexcept {
  const Span age = std::max(limiter.store().clock().now() - counted.made, Span{0});
  const auto& reset = counted.window.reset;
  if constexpr (requires { limiter.calendar(); }) {
    const auto present = limiter.calendar().window(now);
    const Span half = (present.end - present.begin) / 2;
    return age > now - present.begin || (reset && *reset - age <= present.end - now - half);
  } else {
    return (reset && age >= *reset) || age >= memory_of(limiter, key);
  }
}

/// Spends the units; what was spent in a window that began meanwhile goes back.
template <class Limiter>
Decision spend(const Limiter& limiter, const KeyArg& key, Word units, const Counted& counted,
               std::error_code& error) noexcept {
  if constexpr (requires { limiter.calendar(); }) {
    auto spent = limiter.reserve(key, units, error);
    if (error || !spent || !is_over(limiter, key, counted, spent.at)) return spent;
    limiter.cancel(key, spent, error);
    return limiter.peek(key, 1, error);
  } else {
    return limiter.try_acquire(key, units, error);
  }
}

}  // namespace sluice::http::detail
