// AdaptiveRate: the client paces itself, by what the API has answered of late: the adaptive retry
// mode of the AWS SDKs. Source: botocore, `retries/throttling.py` and `retries/bucket.py`. The SDKs
// of other languages have the same constants. Threading: one run.
#pragma once

#include "sluice/time.hpp"

namespace sluice::sim::scenario {

/// It does nothing before the first refusal. Then a bucket paces requests: it refills at a rate
/// that falls to 0.7 of what was sent, and grows by CUBIC, scale * (t - k)^3 + w, with t in seconds
/// since the fall, w the rate before it, and k where the curve has that rate. Requests are counted
/// when they are answered, in half seconds, smoothed by 0.8; the rate is at most twice that, and at
/// least 0.5 a second.
class AdaptiveRate {
 public:
  /// When a request may be sent that comes now; those that came before go first. If that is not
  /// before `end`, it is not sent. Times must not go back, here and below.
  [[nodiscard]] Time reserve(Time now, Time end = Time::max());
  void answered(Time now, bool is_refused);

  /// Of the bucket, a second. 0: there was no refusal.
  [[nodiscard]] double rate() const noexcept { return rate_; }
  [[nodiscard]] double measured() const noexcept { return measured_; }

 private:
  void count(Time now);
  void refill(Time now);

  // What was sent:
  Time bucket_began_{};
  int counted_ = 0;
  double measured_ = 0;  // a second
  // The curve:
  double before_ = 0;  // w
  double k_ = 0;       // seconds
  Time fell_at_{};
  // The bucket:
  double rate_ = 0;
  double level_ = 0;  // below zero: that much is reserved
  double capacity_ = 1;
  Time filled_at_{};
};

}  // namespace sluice::sim::scenario
