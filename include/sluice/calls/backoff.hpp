// How long to stay away after the API's refusals, and how often to come back.
#pragma once

#include <atomic>
#include <cstdint>

#include "sluice/rng.hpp"
#include "sluice/time.hpp"

namespace sluice {

/// How the waits of many clients are kept apart, when the API does not say how long. With
/// v = min(cap, base * 2^n) for the n-th refusal in a row, from 0:
enum class Jitter : std::uint8_t {
  full,          ///< uniform in [0, v]
  equal,         ///< v/2 and uniform in [0, v/2]
  decorrelated,  ///< uniform in [base, 3 * the wait before], at most cap
};

/// The waits of one job. A plain value. Source of the formulas: M. Brooker, "Exponential Backoff
/// And Jitter", AWS Architecture Blog, 2015.
class Backoff {
 public:
  /// Throws std::invalid_argument unless 1 us <= base <= cap <= 1 day.
  Backoff(Span base, Span cap, Jitter jitter);

  /// The wait after one more refusal, in [0, cap].
  [[nodiscard]] Span next(Rng& rng);

 private:
  Span base_;
  Span cap_;
  Jitter jitter_;
  Span most_;  // v of the next refusal; decorrelated: the wait before
};

/// Bounds the retries of a program to a part of its calls, so that an outage is not answered with a
/// multiple of the traffic. Thread-safe; one for all calls to one API.
class RetryBudget {
 public:
  /// `percent` of the calls may be retries, 0 to 1000, and `burst` retries more at once, 0 to 10^6:
  /// so few calls may be retried as well. Throws std::invalid_argument.
  explicit RetryBudget(int percent = 20, int burst = 10);

  /// Counts a first call.
  void note_call() noexcept;
  /// True if there may be a retry, which is counted.
  [[nodiscard]] bool take_retry() noexcept;

 private:
  std::int64_t percent_;
  std::int64_t most_;
  std::atomic<std::int64_t> left_;  // in hundredths of a retry
};

}  // namespace sluice
