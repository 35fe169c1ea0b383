// Exceptions of calls: NotGranted by the limiter, RateLimited by the API, NotSettled and LeaseLost
// behind a call, NotEnded by the time that it may take.
#pragma once

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "sluice/decision.hpp"

namespace sluice {

/// The limiter refused, and the function was not called. decision().retry_after is when it could
/// have been granted.
class NotGranted : public std::runtime_error {
 public:
  NotGranted(const std::string& what, const Decision& decision)
      : std::runtime_error(what), decision_(decision) {}
  [[nodiscard]] const Decision& decision() const noexcept { return decision_; }

 private:
  Decision decision_;
};

/// The API answered "too many requests". Functions that with_backoff() calls throw it, or a class
/// derived from it.
class RateLimited : public std::runtime_error {
 public:
  /// `retry_after`: the wait that the API asks for, if any. `scope`: the index of the scope that
  /// the refusal is about.
  explicit RateLimited(std::optional<Span> retry_after = {}, std::size_t scope = 0,
                       const std::string& what = "the API's rate limit is exceeded")
      : std::runtime_error(what), retry_after_(retry_after), scope_(scope) {}
  [[nodiscard]] const std::optional<Span>& retry_after() const noexcept { return retry_after_; }
  [[nodiscard]] std::size_t scope() const noexcept { return scope_; }

 private:
  std::optional<Span> retry_after_;
  std::size_t scope_;
};

/// The call was served, and its cost could not be charged: the store's failure, with the result,
/// which would be lost otherwise. The estimate stays charged, or its replacement is unknown:
/// Failure of code() tells.
///
///     try {
///       return ask(send);
///     } catch (NotSettled<std::string>& late) {
///       log(late.what());
///       return std::move(late.result());
///     }
template <class T>
class NotSettled : public std::system_error {
 public:
  NotSettled(const std::system_error& why, T result)
      : std::system_error(why), result_(std::move(result)) {}
  [[nodiscard]] T& result() noexcept { return result_; }

 private:
  T result_;
};

/// The function has returned, but a lease of its call was lost before that: another holder may have
/// had the place at the same time. If the function has a result, this is a LeaseLostWith<T>. What
/// the call cost was settled, unless not_settled() says otherwise.
class LeaseLost : public std::runtime_error {
 public:
  explicit LeaseLost(const std::string& what, std::error_code not_settled = {})
      : std::runtime_error(what), not_settled_(not_settled) {}
  /// The error of the store that NotSettled would tell; none: nothing failed.
  [[nodiscard]] const std::error_code& not_settled() const noexcept { return not_settled_; }

 private:
  std::error_code not_settled_;
};

/// LeaseLost with the result of the function, which would be lost otherwise.
///
///     try {
///       return write(job);
///     } catch (LeaseLostWith<Receipt>& lost) {
///       return check_twice(std::move(lost.result()));
///     }
template <class T>
class LeaseLostWith : public LeaseLost {
 public:
  LeaseLostWith(const std::string& what, std::error_code not_settled, T result)
      : LeaseLost(what, not_settled), result_(std::move(result)) {}
  [[nodiscard]] T& result() noexcept { return result_; }

 private:
  T result_;
};

/// A coroutine was cancelled at BackoffOptions::end_by, and has ended without a result. The API may
/// have served it: what it was granted stays charged, and its leases are released.
class NotEnded : public std::runtime_error {
 public:
  NotEnded() : std::runtime_error("the call did not end by BackoffOptions::end_by") {}
};

}  // namespace sluice
