// Whose "no" it was: the limiter's, or the API's. Two types, so that a program can tell.
#pragma once

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>

#include "sluice/decision.hpp"

namespace sluice {

/// The limiter refused: nothing was called. decision().retry_after says when it would have granted.
class NotGranted : public std::runtime_error {
 public:
  NotGranted(const std::string& what, const Decision& decision)
      : std::runtime_error(what), decision_(decision) {}
  [[nodiscard]] const Decision& decision() const noexcept { return decision_; }

 private:
  Decision decision_;
};

/// The API was called and answered "too many requests": a function that with_backoff() calls throws
/// it, or something derived from it.
class RateLimited : public std::runtime_error {
 public:
  /// `retry_after`: what the API says, if it does. `scope`: which of the scopes it is about.
  explicit RateLimited(std::optional<Span> retry_after = {}, std::size_t scope = 0,
                       const std::string& what = "the API's rate limit is exceeded")
      : std::runtime_error(what), retry_after_(retry_after), scope_(scope) {}
  [[nodiscard]] const std::optional<Span>& retry_after() const noexcept { return retry_after_; }
  [[nodiscard]] std::size_t scope() const noexcept { return scope_; }

 private:
  std::optional<Span> retry_after_;
  std::size_t scope_;
};

}  // namespace sluice
