// Exceptions of calls: NotGranted by the limiter, RateLimited by the API, Transient by anything
// that may pass, NotSettled and LeaseLost behind a call, NotEnded by the time that it may take.
#pragma once

#include <cstddef>
#include <cstdint>
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

/// After it, a Call may be tried again: a RateLimited or a Transient.
class Retriable : public std::runtime_error {
 public:
  /// The wait that the API asks for. Unknown unless it is above zero: an API that refuses and says
  /// "now" has not said when.
  [[nodiscard]] const std::optional<Span>& retry_after() const noexcept { return retry_after_; }

 protected:
  Retriable(std::optional<Span> retry_after, const std::string& what)
      : std::runtime_error(what),
        retry_after_(retry_after && *retry_after > Span{0} ? retry_after : std::nullopt) {}

 private:
  std::optional<Span> retry_after_;
};

/// The API answered "too many requests". The function of a Call throws it, or a class derived from
/// it.
///
///     if (response.status == 429) throw RateLimited(feedback.wait());
class RateLimited : public Retriable {
 public:
  /// `scope`: the index of the scope that the refusal is about, among the gates of the call.
  explicit RateLimited(std::optional<Span> retry_after = {}, std::size_t scope = 0,
                       const std::string& what = "the API's rate limit is exceeded")
      : Retriable(retry_after, what), scope_(scope) {}
  [[nodiscard]] std::size_t scope() const noexcept { return scope_; }

 private:
  std::size_t scope_;
};

/// Whether the API may have served a call that failed.
enum class Served : std::uint8_t {
  perhaps,  ///< what was granted stays charged
  no,       ///< all of it is refunded
};

/// The call failed in a way that may pass: 503, a connection that was reset, a timeout. The
/// function of a Call throws it, or a class derived from it, if it may be called again. It closes
/// no gate.
///
///     if (response.status == 503) throw Transient(Served::perhaps, feedback.wait());
///     ...
///     } catch (const http::ConnectFailed&) {
///       std::throw_with_nested(Transient(Served::no));  // the last one keeps the cause
///     }
class Transient : public Retriable {
 public:
  explicit Transient(Served served = Served::perhaps, std::optional<Span> retry_after = {},
                     const std::string& what = "the call failed, and may succeed later")
      : Retriable(retry_after, what), served_(served) {}
  [[nodiscard]] Served served() const noexcept { return served_; }

 private:
  Served served_;
};

/// The call was served, and its cost could not be charged: the failure, with the result, which
/// would be lost otherwise. Nothing is settled or learned if code() is Errc::invalid_cost (it is
/// out of the range of Costed::cost) or Errc::invalid_argument (the function has settled an
/// Estimate itself). Otherwise the store failed, and the estimate stays charged, or its replacement
/// is unknown: Failure of code() tells.
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
  [[nodiscard]] const T& result() const noexcept { return result_; }

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
  /// The error that NotSettled would tell; none: nothing failed.
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
  [[nodiscard]] const T& result() const noexcept { return result_; }

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
