// Backoff and RetryBudget: how long to wait after an API's refusals, and how many retries are
// allowed.
#pragma once

#include <atomic>
#include <cstdint>

#include "sluice/rng.hpp"
#include "sluice/time.hpp"

namespace sluice {

/// How random waits keep many clients apart when the API gives no time. With v = min(cap, base *
/// 2^n) for the n-th refusal in a row, from 0:
enum class Jitter : std::uint8_t {
  full,          ///< uniform in [0, v]
  equal,         ///< v/2 plus uniform in [0, v/2]
  decorrelated,  ///< uniform in [base, 3 * the previous wait], at most cap
};

/// The sequence of waits of one job. A plain value. Source of the formulas: M. Brooker,
/// "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
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
  Span most_;  // v of the next refusal; decorrelated: the previous wait
};

/// Limits retries to a share of a program's calls, so that an outage does not multiply the traffic.
/// Thread-safe; use one for all calls to one API.
class RetryBudget {
 public:
  /// `percent` of the calls may be retried, 0 to 1000, and `burst` more retries are available at
  /// once, 0 to 10^6, so that programs with few calls can retry too. Throws std::invalid_argument.
  explicit RetryBudget(int percent = 20, int burst = 10);

  /// Counts a first call.
  void note_call() noexcept;
  /// True if a retry is allowed; it is then counted.
  [[nodiscard]] bool take_retry() noexcept;

 private:
  std::int64_t percent_;
  std::int64_t most_;
  std::atomic<std::int64_t> left_;  // in hundredths of a retry
};

}  // namespace sluice
