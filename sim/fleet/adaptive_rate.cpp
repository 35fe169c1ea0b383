#include "sim/fleet/adaptive_rate.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace sluice::sim::scenario {
namespace {

using namespace std::chrono_literals;

constexpr double beta = 0.7;
constexpr double scale = 0.4;
constexpr double smoothing = 0.8;
constexpr double least_rate = 0.5;
constexpr double most_of_measured = 2;
constexpr Span half_second = 500ms;

double seconds(Span span) { return static_cast<double>(span.count()) / 1e6; }

}  // namespace

/// A rate is known when a new half second has begun.
void AdaptiveRate::count(Time now) {
  ++counted_;
  const Time bucket = now - now.time_since_epoch() % half_second;
  if (bucket <= bucket_began_) return;
  const double rate = counted_ / seconds(bucket - bucket_began_);
  measured_ = smoothing * rate + (1 - smoothing) * measured_;
  counted_ = 0;
  bucket_began_ = bucket;
}

void AdaptiveRate::refill(Time now) {
  level_ = std::min(capacity_, level_ + rate_ * seconds(now - filled_at_));
  filled_at_ = now;
}

Time AdaptiveRate::reserve(Time now, Time end) {
  if (rate_ == 0) return now;
  refill(now);
  const double missing = std::max(0.0, 1 - level_);
  const Time when = now + Span{static_cast<Word>(std::ceil(missing / rate_ * 1e6))};
  if (when < end) level_ -= 1;
  return when;
}

void AdaptiveRate::answered(Time now, bool is_refused) {
  count(now);
  if (!is_refused && rate_ == 0) return;
  double next = 0;
  if (is_refused) {
    before_ = rate_ == 0 ? measured_ : std::min(measured_, rate_);
    k_ = std::cbrt(before_ * (1 - beta) / scale);
    fell_at_ = now;
    next = before_ * beta;
  } else {
    const double t = seconds(now - fell_at_) - k_;
    next = scale * t * t * t + before_;
  }
  if (rate_ == 0) filled_at_ = now;
  refill(now);
  rate_ = std::max(std::min(next, most_of_measured * measured_), least_rate);
  capacity_ = std::max(rate_, 1.0);
  level_ = std::min(level_, capacity_);
}

}  // namespace sluice::sim::scenario
